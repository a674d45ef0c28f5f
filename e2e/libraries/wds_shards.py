"""WebDataset: tar files split by rank and by worker, or not."""
# library: webdataset
#
# case: torchrun:2 8 default
#   does: 2 ranks, no `nodesplitter`: WebDataset stops with an error of its own
#   exit: 1
#
# case: torchrun:2 8 unsplit
#   does: 2 ranks, `nodesplitter=None`
#   expect: shard-duplicate-ranks proven
#   check: shard-duplicate-workers clean
#
# case: torchrun:2 8 split
#   does: 2 ranks, `nodesplitter=wds.split_by_node`
#   check: shard-duplicate-ranks clean
#   check: shard-duplicate-workers clean
#   check: idle-workers clean
#
# case: torchrun:2 2 split
#   does: `wds.split_by_node`, 2 files for 2 ranks with 2 workers each, `empty_check=False`: one worker has no file
#   expect: idle-workers
#   check: shard-duplicate-ranks clean
#
# case: 4 workers
#   does: one process, 2 workers, `workersplitter=None`
#   expect: shard-duplicate-workers proven
#
# case: torchrun:2 4 resampled
#   does: 2 ranks, `resampled=True` and `with_epoch`
#
# case: torchrun:2 8 batched-unsplit
#   does: `nodesplitter=None`, shuffled, batches made in the dataset (`batched`, `batch_size=None`): a sample is no unit that dptrace sees
#   check: shard-duplicate-ranks cannot-tell
#
# case: torchrun:2 8 batched-split
#   does: `wds.split_by_node`, shuffled, `batched`, `WebLoader`
import os
import random
import sys
import warnings

import numpy as np
import torch
import webdataset as wds
from torch.utils.data import DataLoader

from training import WIDTH, fit, join, leave, shared

FILES, HOW = int(sys.argv[1]), sys.argv[2]
SAMPLES = 24  # of each file


def write(folder):
    rng = np.random.default_rng(6)
    for n in range(FILES):
        with wds.TarWriter(os.path.join(folder, "calls-%03d.tar" % n)) as tar:
            for i in range(SAMPLES):
                tar.write({"__key__": "%03d-%03d" % (n, i), "npy": rng.normal(size=WIDTH).astype(np.float32), "cls": int(rng.integers(4))})


def loaders(folder, rank):
    files = os.path.join(folder, "calls-{000..%03d}.tar" % (FILES - 1))
    if HOW == "default":
        return plain(wds.WebDataset(files, shardshuffle=False))
    if HOW == "unsplit":
        return plain(wds.WebDataset(files, shardshuffle=False, nodesplitter=None))
    if HOW == "split":
        return plain(wds.WebDataset(files, shardshuffle=FILES, nodesplitter=wds.split_by_node, empty_check=False).shuffle(16))
    if HOW == "workers":
        return plain(wds.WebDataset(files, shardshuffle=False, workersplitter=None))
    if HOW == "resampled":
        return plain(wds.WebDataset(files, resampled=True, nodesplitter=None, shardshuffle=False).shuffle(16), epoch=48)
    splitter = wds.split_by_node if HOW == "batched-split" else None
    calls = wds.WebDataset(files, shardshuffle=FILES, nodesplitter=splitter).shuffle(16).decode().to_tuple("npy", "cls").batched(8)
    return wds.WebLoader(calls, batch_size=None, num_workers=2)


def plain(calls, epoch=0):
    calls = calls.decode().to_tuple("npy", "cls")
    if epoch:
        calls = calls.with_epoch(epoch)
    return DataLoader(calls, batch_size=8, num_workers=2)


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    rank, _ = join()
    random.seed(rank)
    fit(loaders(shared(write), rank), lambda batch: torch.as_tensor(batch[0]))
    leave()
