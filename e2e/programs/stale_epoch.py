"""What the main process sets on the dataset or on its collate function never reaches persistent workers."""
# e2e strength
#   expect: stale-worker-state proven strength
# e2e collate
#   expect: stale-worker-state proven ratio
#   fix: printed
# e2e fresh
#   check: stale-worker-state not-applicable
# e2e tensor
#   check: stale-worker-state clean
import sys

import torch
from torch.utils.data import DataLoader, Dataset

way = sys.argv[1]
KEEP = way != "fresh"


class Jitter:
    def __init__(self):
        self.strength = torch.zeros(()).share_memory_() if way == "tensor" else 0.0

    def __call__(self, x):
        return x + float(self.strength) * torch.rand(x.shape)


class Notes(Dataset):
    def __init__(self):
        self.chords, self.augment = torch.rand(72, 8, generator=torch.Generator().manual_seed(2)), [Jitter()]

    def __len__(self):
        return len(self.chords)

    def __getitem__(self, i):
        x = self.chords[i]
        for step in self.augment:
            x = step(x)
        return x


class Masking:
    """Hides the last columns: ever more of them."""

    def __init__(self):
        self.ratio = 0.0

    def __call__(self, samples):
        x = torch.stack(samples)
        hidden = int(self.ratio * x.shape[1])
        x[:, x.shape[1] - hidden:] = 0
        return x


def main():
    torch.manual_seed(8)
    notes, masking = Notes(), Masking()
    options = dict(batch_size=9, shuffle=True, num_workers=2)
    loader = DataLoader(notes, collate_fn=masking, persistent_workers=KEEP, **options)  # FIX argument persistent_workers
    model = torch.nn.Linear(8, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        if way == "collate":
            masking.ratio = epoch / 4
        elif way == "tensor":
            notes.augment[0].strength.fill_(epoch / 10)
        else:
            notes.augment[0].strength = epoch / 10
        for x in loader:
            optimizer.zero_grad()
            loss = (model(x) - x).pow(2).mean()
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.5f" % loss.item())


if __name__ == "__main__":
    main()
