"""Bad: a batch is of more tensors than there are descriptors for the batches under way."""
# fixture: exit 1
# fixture: tier kernel
import resource

import torch
from torch.utils.data import DataLoader, Dataset

resource.setrlimit(resource.RLIMIT_NOFILE, (400, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))


class Features(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, i):
        return {"feature %d" % k: torch.rand(4) for k in range(150)}


for batch in DataLoader(Features(), batch_size=4, num_workers=3):
    pass
