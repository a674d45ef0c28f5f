"""Near-miss: a dictionary is pinned; the dataclass in it holds little that is a tensor. The accelerator is simulated."""
import dataclasses

import torch
from torch.utils.data import DataLoader, Dataset

torch.cuda.is_available = lambda: True
torch.cuda.current_device = lambda: 0
torch.cuda.set_device = lambda device: None
torch.Tensor.pin_memory = lambda tensor, *device: tensor.clone()


@dataclasses.dataclass
class Origin:
    numbers: torch.Tensor
    place: str


class Images(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return torch.full((3, 64, 64), float(i)), torch.zeros(64, 64, dtype=torch.long)


def collate(samples):
    images, masks = zip(*samples)
    return {"image": torch.stack(images), "mask": torch.stack(masks), "origin": Origin(torch.arange(len(samples)), "here")}


def main():
    model = torch.nn.Conv2d(3, 2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    loader = DataLoader(Images(), batch_size=8, shuffle=True, num_workers=2, collate_fn=collate, pin_memory=True)
    for epoch in range(2):
        for batch in loader:
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(batch["image"]), batch["mask"]).backward()
            optimizer.step()


if __name__ == "__main__":
    main()
