"""Orders that mean something: from easy to hard, by length, in buckets of one length, in time."""
# e2e easy
# e2e lengths
# e2e buckets
# e2e subset
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler, SubsetRandomSampler


class Sentences(Dataset):
    """Sorted by length, as many corpora come."""

    def __init__(self):
        self.lengths = [3 + n // 12 for n in range(144)]

    def __len__(self):
        return len(self.lengths)

    def __getitem__(self, i):
        return (torch.arange(self.lengths[i]) * (i + 1)) % 30


class EasyFirst(Sampler):
    """The same order each time: the shortest first, which is 0, 1, 2 and so on here."""

    def __init__(self, lengths):
        self.lengths = lengths

    def __iter__(self):
        return iter(sorted(range(len(self.lengths)), key=lambda i: self.lengths[i]))

    def __len__(self):
        return len(self.lengths)


class LengthGrouped(Sampler):
    """transformers' group_by_length: shuffled, then sorted by length in large groups, the longest first."""

    def __init__(self, lengths, group):
        self.lengths, self.group = lengths, group

    def __iter__(self):
        order = torch.randperm(len(self.lengths)).tolist()
        groups = [order[i:i + self.group] for i in range(0, len(order), self.group)]
        return iter([i for g in groups for i in sorted(g, key=lambda i: -self.lengths[i])])

    def __len__(self):
        return len(self.lengths)


class Buckets(Sampler):
    """Batches of one length; the last one of a bucket may be small, never of one."""

    def __init__(self, lengths, size):
        buckets = {}
        for i, length in enumerate(lengths):
            buckets.setdefault(length, []).append(i)
        self.batches = [b[i:i + size] for b in buckets.values() for i in range(0, len(b), size)]

    def __iter__(self):
        return iter([self.batches[i] for i in torch.randperm(len(self.batches)).tolist()])

    def __len__(self):
        return len(self.batches)


def pad(sentences):
    return nn.utils.rnn.pad_sequence(sentences, batch_first=True)


def main():
    way = sys.argv[1]
    torch.manual_seed(9)
    sentences = Sentences()
    options = {
        "easy": dict(batch_size=8, sampler=EasyFirst(sentences.lengths)),
        "lengths": dict(batch_size=8, sampler=LengthGrouped(sentences.lengths, 48)),
        "buckets": dict(batch_sampler=Buckets(sentences.lengths, 5)),
        "subset": dict(batch_size=8, sampler=SubsetRandomSampler(range(0, 144, 2))),
    }[way]
    loader = DataLoader(sentences, collate_fn=pad, num_workers=2, **options)
    embed, head = nn.Embedding(30, 8), nn.Linear(8, 30)
    optimizer = torch.optim.SGD([*embed.parameters(), *head.parameters()], lr=0.1)
    for epoch in range(3):
        total = 0.0
        for ids in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(head(embed(ids[:, :-1])).flatten(0, 1), ids[:, 1:].flatten())
            loss.backward()
            optimizer.step()
            total += loss.item()
        print("epoch", epoch, "loss %.3f" % total)


if __name__ == "__main__":
    main()
