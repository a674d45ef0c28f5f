"""A search over settings, each a training in a process of its own: one of them crashes, and its driver goes on without a word."""
# e2e processes
#   expect: swallowed-crash proven ValueError
# e2e commands
#   expect: swallowed-crash likely exit code 9
# e2e commands_last
#   expect: swallowed-crash proven exit code 9
# e2e system
#   run: often
#   expect: swallowed-crash proven SIGABRT did not look at its exit code
# e2e shell
#   expect: swallowed-crash proven exit code 9
# e2e caught
#   expect: swallowed-crash likely OSError ended pass 1
import multiprocessing
import os
import resource
import shlex
import subprocess
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Tides(Dataset):
    gone = None  # of the file server's

    def __len__(self):
        return 48

    def __getitem__(self, hour):
        if hour == self.gone:
            raise OSError("stale file handle")
        return torch.tensor([hour % 12 / 12, hour % 7 / 7])


def train(rate, how="", gap=None):
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    data = Tides()
    loader = DataLoader(data, batch_size=8, shuffle=True)
    for epoch in range(2):
        if epoch == 1 and gap is not None:
            data.gone = gap
        for step, x in enumerate(loader):
            optimizer.zero_grad()
            model(x).pow(2).mean().backward()
            optimizer.step()
            if rate > 1 and step == 3:
                if how == "raise":
                    raise ValueError("the loss is no number")
                if how == "abort":
                    os.abort()
                if how == "exit":
                    os._exit(9)  # "cannot happen"
    return model.weight.norm().item()


def main(way):
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    itself = [sys.executable, sys.argv[0], "one"]
    if way == "one":
        train(float(sys.argv[2]), sys.argv[3])
    elif way == "processes":
        trials = [multiprocessing.get_context("spawn").Process(target=train, args=(rate, "raise")) for rate in (0.1, 10.0)]
        for trial in trials:
            trial.start()
        for trial in trials:
            trial.join()
    elif way.startswith("commands"):  # of one that goes well after it nobody knows whether it takes its place
        for rate in ("0.1", "10") if way.endswith("last") else ("10", "0.1"):
            subprocess.run(itself + [rate, "exit"])
    elif way == "system":
        for rate in ("0.1", "10"):
            os.system(shlex.join(itself + [rate, "abort"]) + " 2>/dev/null")
    elif way == "shell":
        subprocess.run(["sh", "-c", shlex.join(itself + ["0.1", "exit"]) + "; " + shlex.join(itself + ["10", "exit"]) + " || true"], check=True)
    elif way == "caught":
        try:
            train(0.1, gap=30)
        except Exception as error:
            print("stopped early:", type(error).__name__)
    print("the search is over")


if __name__ == "__main__":
    main(sys.argv[1])
