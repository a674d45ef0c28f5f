"""Shards drawn with replacement by every worker of every rank, for ever: overlaps are meant, epochs are counted in samples."""
# e2e torchrun:2 own
#   torch: >=1.10
# e2e one
# e2e torchrun:2 webdataset
#   needs: webdataset
import io
import itertools
import json
import os
import pathlib
import random
import sys
import tarfile
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class ResampledShards(IterableDataset):
    """After WebDataset's class of this name."""

    def __init__(self, files, seed):
        self.files, self.seed = files, seed

    def __iter__(self):
        info = get_worker_info()
        draw = random.Random("%d %d %d" % (self.seed, info.id, info.seed))
        while True:
            with open(draw.choice(self.files)) as lines:
                for line in lines:
                    row = json.loads(line)
                    yield torch.tensor(row["grams"]), row["key"]


def write(folder, tar):
    """Five shards of twelve samples."""
    for shard in range(5):
        rows = [{"key": "%d-%d" % (shard, i), "grams": [shard / 5, i / 12, i * shard / 60]} for i in range(12)]
        if not tar:
            pathlib.Path(folder, "%d.jsonl" % shard).write_text("".join(json.dumps(row) + "\n" for row in rows))
            continue
        with tarfile.open(os.path.join(folder, "%d.tar" % shard), "w") as out:
            for row in rows:
                text = json.dumps(row).encode()
                entry = tarfile.TarInfo(row["key"] + ".json")
                entry.size = len(text)
                out.addfile(entry, io.BytesIO(text))
    return sorted(str(p) for p in pathlib.Path(folder).iterdir())


def main():
    way, rank = sys.argv[1], 0
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    if way != "one":
        dist.init_process_group("gloo")
        rank = dist.get_rank()
        model = DistributedDataParallel(model)
    with tempfile.TemporaryDirectory() as folder:
        files = write(folder, way == "webdataset")
        if way == "webdataset":
            import webdataset

            shards = webdataset.WebDataset(files, resampled=True, nodesplitter=None).decode()
            shards = shards.map(lambda sample: (torch.tensor(sample["json"]["grams"]), sample["json"]["key"])).with_epoch(60)
        else:
            shards = ResampledShards(files, seed=rank)
        torch.manual_seed(8)
        loader = DataLoader(shards, batch_size=10, num_workers=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for epoch in range(2):
            steps = 0
            for batch in itertools.islice(loader, 12):
                optimizer.zero_grad()
                model(batch[0]).pow(2).mean().backward()
                optimizer.step()
                steps += 1
            if rank == 0:
                print("epoch", epoch, "steps", steps, flush=True)
    if way != "one":
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
