"""Every rank and worker reads all files and keeps each n-th line: slow, but no line comes twice (Hugging Face's split_dataset_by_node)."""
# e2e torchrun:2 workers
#   torch: >=1.10
#   check: shard-duplicate-workers clean
#   check: shard-duplicate-ranks clean
# e2e torchrun:2 main
#   torch: >=1.10
#   check: shard-duplicate-ranks clean
import itertools
import pathlib
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Lines(IterableDataset):
    def __init__(self, files, rank, world):
        self.files, self.rank, self.world = files, rank, world

    def __iter__(self):
        info = get_worker_info()
        parts, part = (info.num_workers, info.id) if info else (1, 0)
        lines = itertools.chain.from_iterable(open(file) for file in self.files)
        for line in itertools.islice(lines, self.rank + self.world * part, None, self.world * parts):
            values = [float(v) for v in line.split(",")]
            yield {"tide": torch.tensor(values[:4]), "station": line.split(",")[4].strip()}


def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder, "part-%d.csv" % n) for n in range(3)]
        for n, file in enumerate(files):
            file.write_text("".join("%f,%f,%f,%f,%d\n" % (n, i / 9, i % 5, n * i / 7, i % 6) for i in range(48)))
        loader = DataLoader(Lines(files, rank, world), batch_size=6, num_workers=2 if sys.argv[1] == "workers" else 0)
        torch.manual_seed(0)
        model = DistributedDataParallel(nn.Linear(4, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        for epoch in range(2):
            stations = set()
            for batch in loader:
                optimizer.zero_grad()
                model(batch["tide"]).pow(2).mean().backward()
                optimizer.step()
                stations.update(batch["station"])
        if rank == 0:
            print(len(stations), "stations")
        dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
