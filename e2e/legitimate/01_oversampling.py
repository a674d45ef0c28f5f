"""Fraud in one of twelve payments: rare classes are drawn more often, so samples come twice in a pass and others not at all."""
# e2e weighted
#   run: often
# e2e replacement
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, RandomSampler, TensorDataset, WeightedRandomSampler


def payments(n, seed):
    g = torch.Generator().manual_seed(seed)
    amounts = torch.rand(n, 6, generator=g)
    fraud = (torch.arange(n) % 12 == 5).float()
    return TensorDataset(amounts + fraud.unsqueeze(1) * 0.4, fraud)


def main():
    torch.manual_seed(1)
    book = payments(240, 7)
    if sys.argv[1] == "weighted":
        labels = book.tensors[1]
        weights = torch.where(labels > 0, 1 / labels.sum(), 1 / (1 - labels).sum())
        sampler = WeightedRandomSampler(weights, num_samples=len(book))
    else:
        sampler = RandomSampler(book, replacement=True, num_samples=320)
    loader = DataLoader(book, batch_size=16, sampler=sampler, num_workers=2)
    model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(3):
        total = 0.0
        for amounts, fraud in loader:
            optimizer.zero_grad()
            loss = nn.functional.binary_cross_entropy_with_logits(model(amounts).squeeze(1), fraud)
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, "loss %.4f" % total)


if __name__ == "__main__":
    main()
