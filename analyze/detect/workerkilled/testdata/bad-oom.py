"""Bad: a worker takes more memory than the control group may use."""
# fixture: tier kernel
# fixture: memory 500M
import torch
from torch.utils.data import DataLoader, Dataset


class Points(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.zeros(2) if index != 20 else torch.ones(1 << 30)


if __name__ == "__main__":
    try:
        for points in DataLoader(Points(), batch_size=4, num_workers=2):
            pass
    except (RuntimeError, OSError, EOFError):
        pass
