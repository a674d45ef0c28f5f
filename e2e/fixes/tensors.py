"""A batch is of more tensors than there are descriptors for the batches under way: none comes, or a worker says so."""
import torch
from torch.utils.data import DataLoader, Dataset


class Features(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, i):
        return {"feature %d" % k: torch.rand(4) for k in range(150)}


if __name__ == "__main__":
    # FIX line set_sharing_strategy
    for batch in DataLoader(Features(), batch_size=4, num_workers=3, timeout=20):
        pass
