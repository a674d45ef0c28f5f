"""accelerate's seedable sampler: an order that each epoch and each rank agree on."""
# e2e
#   needs: accelerate
#   check: rng-duplicate-workers clean
import torch
from accelerate import Accelerator
from accelerate.utils import DataLoaderConfiguration
from torch.utils.data import DataLoader, Dataset

from engine import WIDTH


class Bees(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.rand(WIDTH) + i / 64


if __name__ == "__main__":
    torch.manual_seed(23)
    accelerator = Accelerator(cpu=True, dataloader_config=DataLoaderConfiguration(use_seedable_sampler=True))
    model = torch.nn.Linear(WIDTH, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(Bees(), batch_size=8, shuffle=True, num_workers=2))
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            loss = model(batch).pow(2).mean()
            accelerator.backward(loss)
            optimizer.step()
        print("epoch", epoch, "loss %.6f" % loss.item())
