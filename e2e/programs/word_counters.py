"""Trains on sentences while two processes of its own count words in them: each a Process with a run() of its own. They have
inherited the sentences by a name of the module, and copy them as they read.
"""
# e2e
#   expect: memory-growth-cow note 2 processes forked to run WordCounter MB of __main__.SENTENCES
import multiprocessing

import torch
from torch.utils.data import DataLoader, Dataset

fork = multiprocessing.get_context("fork")
SENTENCES = []
BOTH = fork.Barrier(2)  # they end together


class WordCounter(fork.Process):
    def __init__(self, words, found):
        super().__init__()
        self.words, self.found = words, found

    def run(self):
        self.found.put((self.words, sum(s.split().count(w) for s in SENTENCES for w in self.words)))
        BOTH.wait()


class Lengths(Dataset):
    def __len__(self):
        return 2000

    def __getitem__(self, i):
        return torch.tensor([len(SENTENCES[i]) / 100])


def main():
    torch.set_num_threads(1)
    SENTENCES.extend("the %d ships of harbour %d sail in the morning" % (i % 12, i) for i in range(250_000))
    found = fork.Queue()
    counters = [WordCounter(words, found) for words in (("the", "ships"), ("harbour",))]
    for counter in counters:
        counter.start()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for lengths in DataLoader(Lengths(), batch_size=100, shuffle=True):
        optimizer.zero_grad()
        model(lengths).pow(2).mean().backward()
        optimizer.step()
    for words, n in sorted(found.get() for _ in counters):
        print(*words, n)
    for counter in counters:
        counter.join()


if __name__ == "__main__":
    main()
