"""Pinned, or nothing that matters is not: batches that pin themselves, that torch goes into, that hold little, that go nowhere."""
# e2e itself
#   check: pin-memory-noop clean
# e2e mapping
#   check: pin-memory-noop clean
# e2e little
#   check: pin-memory-noop clean
# e2e nowhere
#   check: pin-memory-noop not-applicable
import collections
import dataclasses
import sys

import torch
from torch.utils.data import DataLoader, Dataset

WAY = sys.argv[1] if len(sys.argv) > 1 else ""

if WAY != "nowhere":  # stands for a GPU
    torch.cuda.is_available = lambda: True
    torch.cuda.current_device = lambda: 0
    torch.cuda.set_device = lambda device: None
    torch.Tensor.pin_memory = lambda tensor, *device: tensor.clone()
    if hasattr(torch, "accelerator"):
        torch.accelerator.is_available = lambda: True
        torch.accelerator.current_accelerator = lambda *args, **more: torch.device("cuda")
        torch.accelerator.current_device_index = lambda: 0
        torch.accelerator.set_device_index = lambda device: None


@dataclasses.dataclass
class Graphs:
    nodes: torch.Tensor
    edges: torch.Tensor

    def pin_memory(self):
        return Graphs(self.nodes.pin_memory(), self.edges.pin_memory())

    def __getitem__(self, name):
        return self.nodes


class Encoding(collections.UserDict):
    """As tokenizers give it."""


@dataclasses.dataclass
class Where:
    rows: torch.Tensor
    file: str


@dataclasses.dataclass
class Plain:
    nodes: torch.Tensor

    def __getitem__(self, name):
        return self.nodes


class Rows(Dataset):
    def __init__(self):
        self.rows = torch.randn(32, 64, 64)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return i, self.rows[i]


def collate(samples):
    indices, rows = zip(*samples)
    rows = torch.stack(rows)
    if WAY == "itself":
        return Graphs(rows, rows[:, :2].clone())
    if WAY == "mapping":
        return Encoding(nodes=rows, more=[rows + 1])
    if WAY == "little":
        return {"nodes": rows, "where": Where(torch.tensor(indices), "here")}
    return Plain(rows)


def main():
    torch.manual_seed(4)
    loader = DataLoader(Rows(), batch_size=8, shuffle=True, num_workers=2, collate_fn=collate, pin_memory=True)
    model = torch.nn.Linear(64, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in loader:
        optimizer.zero_grad()
        loss = model(batch["nodes"]).pow(2).mean()
        loss.backward()
        optimizer.step()
    print("loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
