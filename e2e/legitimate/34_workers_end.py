"""Workers that end as they should: after a pass, after an early break, at Ctrl-C, by the parent's SIGTERM."""
# e2e break
#   check: worker-killed clean
# e2e interrupt
#   run: often
# e2e steps
import os
import signal
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

way = sys.argv[1]


def main():
    torch.manual_seed(3)
    loader = DataLoader(TensorDataset(torch.rand(128, 5)), batch_size=8, shuffle=True, num_workers=2)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    done = 0
    try:
        for epoch in range(3):
            for (x,) in loader:
                optimizer.zero_grad()
                model(x).pow(2).mean().backward()
                optimizer.step()
                done += 1
                if way == "break" and done % 16 == 9 or way == "steps" and done == 21:
                    break
                if way == "interrupt" and done == 20:
                    os.kill(os.getpid(), signal.SIGINT)
            if way == "steps" and done == 21:
                break
    except KeyboardInterrupt:
        print("interrupted, weights are saved")
    print("steps", done)


if __name__ == "__main__":
    main()
