"""Nothing worth a word is copied: a small dataset whose __getstate__ takes its time, as it closes files and asks a server."""
# e2e waits
#   check: dataset-copied-per-worker clean
# e2e computes
#   check: dataset-copied-per-worker clean
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

WAY = sys.argv[1] if len(sys.argv) > 1 else ""


class Letters(Dataset):
    def __init__(self):
        self.rows = torch.randn(48, 4).numpy()

    def __getstate__(self):
        if WAY == "waits":
            time.sleep(0.6)  # until the server has let go of the session
        else:
            end = time.process_time() + 0.6
            while time.process_time() < end:  # a checksum over the archive
                sum(range(1000))
        return self.__dict__

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return torch.as_tensor(self.rows[i])


def main():
    torch.manual_seed(4)
    letters = Letters()
    loader = DataLoader(letters, batch_size=8, shuffle=True, num_workers=2, multiprocessing_context="spawn")
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for x in loader:
        optimizer.zero_grad()
        loss = model(x).pow(2).mean()
        loss.backward()
        optimizer.step()
    print("loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
