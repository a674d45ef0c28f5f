"""litdata: chunks that the library splits by rank and by worker on its own."""
# library: litdata
#
# case: torchrun:2 streaming
#   does: `StreamingDataset(shuffle=True)` in `StreamingDataLoader`
#   check: shard-duplicate-ranks clean
#   check: shard-duplicate-workers clean
#
# case: torchrun:2 plain
#   does: `StreamingDataset(shuffle=True)` in torch's `DataLoader`
#   check: shard-duplicate-ranks clean
#   check: shard-duplicate-workers clean
import os
import subprocess
import sys

import litdata
import torch
from litdata.streaming.cache import Cache
from torch.utils.data import DataLoader

from training import WIDTH, fit, join, leave, shared


def write(folder):
    """As a script of its own: inside of a process group litdata waits for the parts of all ranks."""
    alone = {k: v for k, v in os.environ.items() if k not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")}
    subprocess.run([sys.executable, __file__, "write", folder], env=alone, check=True)


def chunks(folder):
    cache = Cache(folder, chunk_size=12)
    waves = torch.randn(96, WIDTH, generator=torch.Generator().manual_seed(14))
    for i, wave in enumerate(waves):
        cache[i] = {"buoy": i, "wave": wave}
    cache.done()
    cache.merge()


if __name__ == "__main__":
    if sys.argv[1] == "write":
        chunks(sys.argv[2])
        sys.exit()
    join()
    waves = litdata.StreamingDataset(shared(write), shuffle=True)
    Loader = litdata.StreamingDataLoader if sys.argv[1] == "streaming" else DataLoader
    fit(Loader(waves, batch_size=8, num_workers=2), lambda batch: batch["wave"])
    leave()
