"""A training that is broken off and goes on: the order of that epoch again, and what was learned already is skipped."""
# e2e process delivered
# e2e process sampler
# e2e inside delivered
#   run: often
# e2e inside sampler
# e2e inside accelerate
#   needs: accelerate
import os
import subprocess
import sys
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

where, how = sys.argv[1:3]
STOP = 5  # batches into epoch 1


class Bolts(Dataset):
    def __len__(self):
        return 80

    def __getitem__(self, i):
        return torch.tensor([i / 80, i % 3, i % 8], dtype=torch.float32), i % 2


class Shuffled(Sampler):
    """An order that the epoch gives; skip: indices that are done."""

    def __init__(self, n, epoch, skip=0):
        self.n, self.epoch, self.skip = n, epoch, skip

    def __iter__(self):
        return iter(torch.randperm(self.n, generator=torch.Generator().manual_seed(self.epoch)).tolist()[self.skip:])

    def __len__(self):
        return self.n - self.skip


def epochs(model, optimizer, first, done, last=None):
    """Trains from a place on, to the end or until it is broken off."""
    bolts = Bolts()
    for epoch in range(first, 3):
        skip = done if epoch == first else 0
        if how == "delivered":
            loader = DataLoader(bolts, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(epoch), num_workers=2)
        elif how == "sampler":
            loader = DataLoader(bolts, batch_size=8, sampler=Shuffled(80, epoch, skip * 8), num_workers=2)
        else:
            from accelerate import skip_first_batches

            loader = DataLoader(bolts, batch_size=8, sampler=Shuffled(80, epoch), num_workers=2)
            loader = skip_first_batches(loader, skip) if skip else loader
        for n, (shape, torn) in enumerate(loader, 0 if how == "delivered" else skip):
            if n < skip:
                continue
            if (epoch, n) == last:
                return
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(shape), torn)
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.4f" % loss.item(), flush=True)


def main():
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    if where == "inside":  # a step failed, say, and the loop begins anew
        epochs(model, optimizer, 0, 0, last=(1, STOP))
        epochs(model, optimizer, 1, STOP)
    elif len(sys.argv) > 3:
        checkpoint = sys.argv[3]
        if not os.path.exists(checkpoint):
            epochs(model, optimizer, 0, 0, last=(1, STOP))
            torch.save((model.state_dict(), optimizer.state_dict()), checkpoint)
        else:
            for part, state in zip((model, optimizer), torch.load(checkpoint)):
                part.load_state_dict(state)
            epochs(model, optimizer, 1, STOP)
    else:
        with tempfile.TemporaryDirectory() as folder:
            for _ in range(2):
                subprocess.run([sys.executable, *sys.argv, os.path.join(folder, "last.pt")], check=True)


if __name__ == "__main__":
    main()
