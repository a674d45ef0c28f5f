"""The training that tools/bench measures as a whole: a small CNN on noisy images, two workers, trained and validated in turns.

About five seconds; the number of steps does not depend on the machine.
"""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.y = rng.integers(0, 10, n)
        self.x = (rng.normal(0, 40, (n, 3, 32, 32)) + 12 * self.y[:, None, None, None] + 64).clip(0, 255).astype(np.uint8)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        top, left = torch.randint(0, 5, (2,)).tolist()
        image = np.pad(self.x[i], ((0, 0), (2, 2), (2, 2)))[:, top:top + 32, left:left + 32]
        return torch.from_numpy(np.ascontiguousarray(image)).float() / 255, int(self.y[i])


def main():
    torch.manual_seed(1)
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Conv2d(3, 32, 3, 2), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 169, 10))
    optimizer, score = torch.optim.SGD(net.parameters(), lr=0.05), nn.CrossEntropyLoss()
    train = DataLoader(Images(3000, 1), batch_size=32, shuffle=True, num_workers=2)
    held_out = DataLoader(Images(500, 2), batch_size=32, num_workers=2)
    for epoch in range(4):
        net.train()
        for x, y in train:
            optimizer.zero_grad()
            loss = score(net(x), y)
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            right = sum((net(x).argmax(1) == y).sum().item() for x, y in held_out)
        print("epoch %d: loss %.3f, %.1f %% right" % (epoch, loss.item(), right / 5))


if __name__ == "__main__":
    main()
