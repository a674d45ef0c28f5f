"""The first epoch is slow: samples are decoded once and kept by the workers, and the first step compiles."""
# e2e
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Scenes(Dataset):
    def __init__(self):
        self.decoded = {}

    def __len__(self):
        return 60

    def __getitem__(self, i):
        if i not in self.decoded:
            time.sleep(0.004)
            self.decoded[i] = torch.sin(torch.arange(10) * (i + 1) / 6.0)
        return {"scene": self.decoded[i], "number": i}


def main():
    torch.manual_seed(2)
    loader = DataLoader(Scenes(), batch_size=6, shuffle=True, num_workers=2, persistent_workers=True)
    model, warm = nn.Linear(10, 1), False
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(3):
        for batch in loader:
            if not warm:
                time.sleep(0.3)
                warm = True
            optimizer.zero_grad()
            loss = (model(batch["scene"]).squeeze(1) - batch["number"] / 60).pow(2).mean()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
