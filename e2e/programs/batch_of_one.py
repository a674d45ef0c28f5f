"""49 images in batches of 8, and a stream that leaves one sample to each worker: BatchNorm over one."""
# e2e images
#   run: often
#   expect: last-batch-size-1 proven
#   fix: printed
# e2e sampler
#   expect: last-batch-size-1 proven
# e2e stream
#   expect: last-batch-size-1 proven
# e2e dropped
#   check: last-batch-size-1 clean
import itertools
import sys

import torch
from torch.utils.data import BatchSampler, DataLoader, Dataset, IterableDataset, RandomSampler, get_worker_info

DROP = sys.argv[1] == "dropped"


def image(n):
    return {"image": torch.sin(torch.arange(36).reshape(1, 6, 6) * (n + 1) / 20.0), "class": n % 3}


class Petals(Dataset):
    def __len__(self):
        return 49

    def __getitem__(self, n):
        return image(n)


class Frames(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for n in itertools.islice(range(50), info.id, None, info.num_workers):  # 25 each
            yield image(n)


def main():
    way = sys.argv[1]
    torch.manual_seed(6)
    petals = Petals()
    if way == "stream":
        loader = DataLoader(Frames(), batch_size=8, num_workers=2)
    elif way == "sampler":
        loader = DataLoader(petals, batch_sampler=BatchSampler(RandomSampler(petals), batch_size=16, drop_last=False))
    else:
        loader = DataLoader(petals, batch_size=8, shuffle=True, drop_last=DROP, num_workers=1)  # FIX argument drop_last
    model = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(batch["image"]), batch["class"])
            loss.backward()
            optimizer.step()
        print("epoch", epoch, "loss %.4f" % loss.item())


if __name__ == "__main__":
    main()
