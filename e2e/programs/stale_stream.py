"""A stream whose order is drawn from the epoch, which persistent workers are never told; and a list that is replaced."""
# e2e epoch
#   expect: stale-worker-state proven dataset.epoch
#   expect: order-repeats likely names a shuffle
#   fix: printed
# e2e list
#   expect: stale-worker-state proven dataset.hard (list of 96 items)
#   expect: order-repeats likely names a shuffle
import random
import sys

import torch
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Bells(IterableDataset):
    def __init__(self):
        self.strokes, self.hard = torch.rand(96, 5, generator=torch.Generator().manual_seed(6)), list(range(96))
        self.epoch = 0

    def __iter__(self):
        epoch = self.epoch  # FIX line epoch = int
        order, info = list(self.hard), get_worker_info()
        random.Random(epoch).shuffle(order)
        for i in order[info.id::info.num_workers]:
            yield self.strokes[i]


def main():
    torch.manual_seed(6)
    dataset = Bells()
    # FIX line share_memory_
    loader = DataLoader(dataset, batch_size=8, num_workers=2, persistent_workers=True)
    model = torch.nn.Linear(5, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for value in range(3):
        if sys.argv[1] == "list":
            dataset.hard = dataset.hard[::-1]
        else:
            dataset.epoch = value  # FIX line fill_
        for x in loader:
            optimizer.zero_grad()
            loss = (model(x) - x).pow(2).mean()
            loss.backward()
            optimizer.step()
        print("epoch", value, "loss %.5f" % loss.item())


if __name__ == "__main__":
    main()
