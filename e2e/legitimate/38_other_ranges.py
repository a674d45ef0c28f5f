"""Inputs that are not within 0 and 1: z-scores, log-mel, Hounsfield units, 16 bit, token ids, a mask."""
# e2e
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Visits(Dataset):
    def __init__(self, n, seed):
        draw = np.random.default_rng(seed)
        self.labs = draw.normal(size=(n, 6)).astype(np.float32)  # z-scored
        self.speech = np.log(draw.uniform(1e-5, 1, size=(n, 8))).astype(np.float32)
        self.scan = draw.integers(-1000, 2000, size=(n, 10)).astype(np.float32)
        self.depth = draw.integers(0, 65536, size=(n, 4)).astype(np.int32)
        self.note = draw.integers(0, 300, size=(n, 12))

    def __len__(self):
        return len(self.labs)

    def __getitem__(self, i):
        return {"labs": self.labs[i], "speech": self.speech[i], "scan": self.scan[i], "depth": self.depth[i],
                "note": self.note[i], "mask": self.note[i] > 20, "id": "visit-%04d" % i}


class Fusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.EmbeddingBag(300, 5), nn.Linear(6 + 8 + 10 + 4 + 5, 1)

    def forward(self, b):
        parts = [b["labs"], b["speech"] / 5, b["scan"] / 1000, b["depth"].float() / 65536, self.words(b["note"] * b["mask"])]
        return self.head(torch.cat(parts, 1))


def main():
    torch.manual_seed(6)
    train = DataLoader(Visits(96, 1), batch_size=12, shuffle=True, num_workers=2)
    held_out = DataLoader(Visits(24, 2), batch_size=12, num_workers=2)
    model = Fusion()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for batch in train:
            optimizer.zero_grad()
            (model(batch) - batch["labs"].mean(1, keepdim=True)).pow(2).mean().backward()
            optimizer.step()
        with torch.no_grad():
            print("epoch %d error %.4f" % (epoch, sum(model(b).abs().mean().item() for b in held_out)))


if __name__ == "__main__":
    main()
