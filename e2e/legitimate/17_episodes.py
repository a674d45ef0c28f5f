"""Few-shot episodes of N classes with K samples, and P classes by K for a triplet loss: batches that cover nothing in particular."""
# e2e episodes
# e2e triplets
# e2e fixed
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

CLASSES, PER_CLASS = 10, 12


class Glyphs(Dataset):
    def __init__(self):
        g = torch.Generator().manual_seed(5)
        self.strokes = torch.rand(CLASSES, 1, 9, generator=g) + 0.2 * torch.rand(CLASSES, PER_CLASS, 9, generator=g)

    def __len__(self):
        return CLASSES * PER_CLASS

    def __getitem__(self, i):
        return self.strokes[i // PER_CLASS, i % PER_CLASS], i // PER_CLASS


class Episodes(Sampler):
    """fixed: the same episodes in each pass, a benchmark that all papers share."""

    def __init__(self, ways, shots, number, seed, fixed=False):
        self.ways, self.shots, self.number, self.fixed = ways, shots, number, fixed
        self.generator, self.seed = torch.Generator().manual_seed(seed), seed

    def __len__(self):
        return self.number

    def __iter__(self):
        if self.fixed:
            self.generator.manual_seed(self.seed)
        for _ in range(self.number):
            ways = torch.randperm(CLASSES, generator=self.generator)[:self.ways].tolist()
            yield [w * PER_CLASS + s for w in ways for s in torch.randperm(PER_CLASS, generator=self.generator)[:self.shots].tolist()]


def prototypes(net, batch, ways, shots):
    x = net(batch[0]).view(ways, shots, -1)
    support, query = x[:, :shots // 2].mean(1), x[:, shots // 2:].reshape(-1, x.shape[-1])
    return nn.functional.cross_entropy(-torch.cdist(query, support), torch.arange(ways).repeat_interleave(shots - shots // 2))


def triplets(net, batch):
    x, kind = net(batch[0]), batch[1]
    far = torch.cdist(x, x) + 1e-3
    same = kind[:, None] == kind[None]
    return (far.masked_fill(~same, 0).max(1).values - far.masked_fill(same, 9).min(1).values + 0.5).clamp(min=0).mean()


def main():
    way = sys.argv[1]
    torch.manual_seed(0)
    ways, shots = (5, 4) if way == "triplets" else (4, 6)
    glyphs = Glyphs()
    train = DataLoader(glyphs, batch_sampler=Episodes(ways, shots, 20, 1, fixed=way == "fixed"), num_workers=2)
    net = nn.Sequential(nn.Linear(9, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(2):
        for batch in train:
            optimizer.zero_grad()
            loss = triplets(net, batch) if way == "triplets" else prototypes(net, batch, ways, shots)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
