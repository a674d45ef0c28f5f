"""Features that were computed once and fit in memory: persistent workers and prefetching gain nothing and harm nothing."""
# e2e
#   check: stale-worker-state clean
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Features(Dataset):
    def __init__(self, images, backbone):
        with torch.no_grad():
            self.cache = [(backbone(image.unsqueeze(0))[0].clone(), n % 5) for n, image in enumerate(images)]

    def __len__(self):
        return len(self.cache)

    def __getitem__(self, i):
        return self.cache[i]


def main():
    torch.manual_seed(5)
    backbone = nn.Sequential(nn.Conv2d(1, 4, 3), nn.AdaptiveAvgPool2d(2), nn.Flatten())
    features = Features(torch.rand(90, 1, 8, 8), backbone)
    loader = DataLoader(features, batch_size=10, shuffle=True, num_workers=2, persistent_workers=True, prefetch_factor=4)
    head = nn.Linear(16, 5)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.01)
    for epoch in range(4):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(head(x), y)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
