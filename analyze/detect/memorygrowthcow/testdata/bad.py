"""Bad: a list of dicts that both workers copy by reading it, in each pass again."""
# fixture: tier kernel
# fixture: memory 600M
import torch
from torch.utils.data import DataLoader, Dataset


class Photos(Dataset):
    def __init__(self):
        self.records = [{"path": "/data/%d.jpg" % i, "label": i + 1000} for i in range(200000)]

    def __len__(self):
        return len(self.records) // 100

    def __getitem__(self, i):  # an album
        return torch.tensor([float(r["label"]) for r in self.records[i::len(self)]]).mean(0, keepdim=True)


def main():
    torch.manual_seed(0)
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
    loader = DataLoader(Photos(), batch_size=20, shuffle=True, num_workers=2)
    for epoch in range(2):
        for x in loader:
            optimizer.zero_grad()
            model(x).mean().backward()
            optimizer.step()


if __name__ == "__main__":
    main()
