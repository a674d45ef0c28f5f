"""Hugging Face datasets, streamed from parquet files: what each rank and each worker reads."""
# library: datasets
#
# case: torchrun:2 4 unsplit
#   does: `load_dataset(streaming=True)` on 2 ranks, nothing splits it
#   expect: shard-duplicate-ranks proven
#   check: shard-duplicate-workers clean
#
# case: torchrun:2 4 split
#   does: `split_dataset_by_node`, 4 files for 2 ranks: each rank has files of its own
#   check: shard-duplicate-ranks clean
#   check: shard-duplicate-workers clean
#   check: idle-workers clean
#
# case: torchrun:2 3 split
#   does: `split_dataset_by_node`, 3 files for 2 ranks: each rank reads all files and skips every other example
#   check: shard-duplicate-ranks clean
#   check: shard-duplicate-workers clean
#
# case: torchrun:2 2 split
#   does: `split_dataset_by_node`, 2 files for 2 ranks with 2 workers each: one worker has no file
#   expect: idle-workers
#   check: shard-duplicate-ranks clean
#
# case: 4 alone persistent
#   does: one process, persistent workers, `set_epoch` (datasets keeps the epoch in shared memory)
#   check: shard-duplicate-workers clean
#   check: stale-worker-state clean
import os
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from datasets import load_dataset
from datasets.distributed import split_dataset_by_node
from torch.utils.data import DataLoader

from training import WIDTH, fit, join, leave, shared

FILES, HOW = int(sys.argv[1]), sys.argv[2]
ROWS = 48  # of each file


def write(folder):
    rng = np.random.default_rng(5)
    for n in range(FILES):
        spectra = rng.normal(size=(ROWS, WIDTH)).astype(np.float32)
        table = pa.table({"star": ["%d-%d" % (n, i) for i in range(ROWS)], "spectrum": spectra.tolist()})
        pq.write_table(table, os.path.join(folder, "stars-%02d.parquet" % n))


if __name__ == "__main__":
    rank, ranks = join()
    folder = shared(write)
    stars = load_dataset("parquet", data_files=os.path.join(folder, "*.parquet"), split="train", streaming=True,
                         cache_dir=os.path.join(folder, "cache-%d" % rank))
    stars = stars.shuffle(seed=42, buffer_size=24).with_format("torch")
    if HOW == "split":
        stars = split_dataset_by_node(stars, rank=rank, world_size=ranks)
    loader = DataLoader(stars, batch_size=8, num_workers=2, persistent_workers="persistent" in sys.argv)
    fit(loader, lambda batch: batch["spectrum"].float(), before=stars.set_epoch)
    leave()
