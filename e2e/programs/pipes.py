"""A datapipe that shuffles and then shards: all workers shuffle alike, on purpose."""
# e2e
#   run: often
#   torch: >=1.12
#   needs: torch.utils.data.datapipes.iter
import torch
from torch.utils.data import DataLoader
from torch.utils.data.datapipes.iter import IterableWrapper

from engine import WIDTH, fit


def wave(number):
    return torch.full((WIDTH,), number / 64.0)


if __name__ == "__main__":
    torch.manual_seed(21)
    pipe = IterableWrapper(range(64)).shuffle(buffer_size=32).sharding_filter().map(wave)
    fit(DataLoader(pipe, batch_size=8, shuffle=True, num_workers=2))
