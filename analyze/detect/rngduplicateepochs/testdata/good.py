"""Good: no two (epoch, worker) share a seed."""
import torch
from torch.utils.data import DataLoader, Dataset


class Noisy(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, i):
        return i + torch.randn(4)


class Seed:
    epoch = 0

    def __call__(self, worker):
        torch.manual_seed(100 + 1000 * self.epoch + worker)


def main():
    torch.manual_seed(0)
    seed = Seed()
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Noisy(), batch_size=4, num_workers=2, worker_init_fn=seed)
    for seed.epoch in range(2):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
