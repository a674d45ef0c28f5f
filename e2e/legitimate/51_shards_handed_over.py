"""Reads one shard of sentences after the other, and hands each to a process of its own that counts words in it. The process
that reads keeps none: what it has forked a process for is in memory once, although the pages become that process's own.
"""
# e2e
#   check: memory-growth-cow not-applicable
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset

fork = multiprocessing.get_context("fork")


def shard(k):
    return ["the %d ships of harbour %d sail in the morning" % (i % 12, 50_000 * k + i) for i in range(200_000)]


def count(sentences, found):
    found.put(sum(s.split().count("the") for s in sentences))


class Counts(Dataset):
    def __init__(self, counts):
        self.counts = torch.tensor(counts)

    def __len__(self):
        return 640

    def __getitem__(self, i):
        return self.counts[i % len(self.counts)].reshape(1) / 1e6


def main():
    torch.set_num_threads(1)
    found, counts = fork.Queue(), []
    for k in range(3):
        process = fork.Process(target=count, args=(shard(k), found))
        process.start()
        counts.append(found.get())
        process.join()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in DataLoader(Counts(counts), batch_size=64, shuffle=True):
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()
    print(counts, "%.3f" % model.bias.item())


if __name__ == "__main__":
    main()
