"""PyTorch Geometric: its DataLoader, which puts graphs of unequal size into one batch."""
# library: torch_geometric
#
# case: graphs
#   does: graph classification as in its examples: `DataLoader` for training and test, two helpers
#   loader: train train
#   loader: test eval
#
# case: augmented
#   does: `transform=` of the dataset with `T.RandomJitter` (torch's generator)
#   loader: train train
#   loader: test eval
#   check: rng-duplicate-workers@train clean
import sys

import torch
import torch_geometric.transforms as T
from torch.nn import BatchNorm1d, Linear
from torch_geometric.data import Data, Dataset
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GCNConv, global_mean_pool

HOW = sys.argv[1]


class Molecules(Dataset):
    def __init__(self, n, seed, transform=None):
        super().__init__(transform=transform)
        g = torch.Generator().manual_seed(seed)
        self.graphs = []
        for _ in range(n):
            nodes = int(torch.randint(4, 9, (1,), generator=g))
            edges = torch.randint(0, nodes, (2, 3 * nodes), generator=g)
            x = torch.randn(nodes, 5, generator=g)
            self.graphs.append(Data(x=x, edge_index=edges, pos=torch.rand(nodes, 3, generator=g), y=(x.sum() > 0).long().view(1)))

    def len(self):
        return len(self.graphs)

    def get(self, i):
        return self.graphs[i].clone()


class GCN(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.norm, self.lin = GCNConv(8, 12), GCNConv(12, 12), BatchNorm1d(12), Linear(12, 2)

    def forward(self, x, pos, edge_index, batch):
        x = self.conv1(torch.cat([x, pos], 1), edge_index).relu()
        x = self.conv2(self.norm(x), edge_index)
        return self.lin(global_mean_pool(x, batch))


def main():
    torch.manual_seed(12345)
    transform = T.RandomJitter(0.05) if HOW == "augmented" else None
    # 97 graphs: the last batch of training is one graph, and several rows for the BatchNorm over its nodes.
    train_loader = DataLoader(Molecules(97, 1, transform), batch_size=16, shuffle=True, num_workers=2)  # place: train
    test_loader = DataLoader(Molecules(40, 2), batch_size=16, shuffle=False, num_workers=2)  # place: test
    model, criterion = GCN(), torch.nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for epoch in range(2):
        model.train()
        for data in train_loader:
            loss = criterion(model(data.x, data.pos, data.edge_index, data.batch), data.y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        right = 0
        with torch.no_grad():
            for data in test_loader:
                right += int((model(data.x, data.pos, data.edge_index, data.batch).argmax(dim=1) == data.y).sum())
        print("epoch %d  loss %.4f  test %.3f" % (epoch, loss.item(), right / 40))


if __name__ == "__main__":
    main()
