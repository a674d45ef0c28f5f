"""num_workers=0, because the data are in memory: tables, a stream and a loader without batches."""
# e2e
import torch
from torch import nn
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, RandomSampler, TensorDataset


class Ticks(IterableDataset):
    def __init__(self, prices):
        self.prices = prices

    def __len__(self):
        return len(self.prices) - 4

    def __iter__(self):
        for t in range(len(self)):
            yield self.prices[t:t + 4], self.prices[t + 4]


def main():
    torch.manual_seed(8)
    prices = torch.cumsum(torch.randn(84), 0)
    table = TensorDataset(torch.rand(90, 4), torch.rand(90))
    whole = BatchSampler(RandomSampler(table), 15, drop_last=False)  # a list of indices asks the table once
    loaders = [DataLoader(table, batch_size=9, shuffle=True), DataLoader(Ticks(prices), batch_size=16), DataLoader(table, batch_size=None, sampler=whole)]
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    for epoch in range(2):
        for loader in loaders:
            for x, y in loader:
                optimizer.zero_grad()
                loss = (model(x).squeeze(1) - y).pow(2).mean()
                loss.backward()
                optimizer.step()
        print("epoch", epoch, "loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
