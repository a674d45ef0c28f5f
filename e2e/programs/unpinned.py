"""pin_memory=True, and batches into which torch does not look."""
# e2e dataclass
#   run: often
#   expect: pin-memory-noop proven Batch
#   fix: printed
# e2e frozen
#   expect: pin-memory-noop proven Frozen
#   fix: printed
# e2e plain
#   expect: pin-memory-noop proven Plain
#   fix: printed
# e2e nested
#   expect: pin-memory-noop proven Batch
#   fix: printed
# e2e beside
#   expect: pin-memory-noop likely
import dataclasses
import sys

import torch
from torch.utils.data import DataLoader, Dataset

WAY = sys.argv[1]


def simulate(module, **answers):
    """A GPU, as far as a loader asks for one."""
    for name, answer in answers.items():
        setattr(module, name, lambda *args, answer=answer, **more: answer)


simulate(torch.cuda, is_available=True, current_device=0, set_device=None)
if hasattr(torch, "accelerator"):
    simulate(torch.accelerator, is_available=True, current_accelerator=torch.device("cuda"), current_device_index=0, set_device_index=None)
torch.Tensor.pin_memory = lambda tensor, *device: tensor.clone()


@dataclasses.dataclass
class Batch:
    image: torch.Tensor
    # FIX from def pin_memory


@dataclasses.dataclass(frozen=True)
class Frozen:
    image: torch.Tensor
    # FIX from def pin_memory


class Plain:
    def __init__(self, image):
        self.image = image
    # FIX from def pin_memory


class Skies(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return torch.sin(torch.arange(12288.0).reshape(3, 64, 64) * (i + 1))


def collate(samples):
    images = torch.stack(samples)
    if WAY in ("dataclass", "frozen", "plain"):
        return {"dataclass": Batch, "frozen": Frozen, "plain": Plain}[WAY](images)
    if WAY == "nested":
        return [{"part": Batch(half)} for half in images.chunk(2)]
    return {"image": images, "before": Plain(images - 1)}


def images_of(batch):
    while not isinstance(batch, torch.Tensor):
        if isinstance(batch, list):
            batch = batch[0]
        elif isinstance(batch, dict):
            batch = batch["part" if WAY == "nested" else "image"]
        else:
            batch = batch.image
    return batch


def main():
    torch.manual_seed(3)
    model = torch.nn.Conv2d(3, 2, 5)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for batch in DataLoader(Skies(), batch_size=8, shuffle=True, num_workers=2, pin_memory=True, collate_fn=collate):
        optimizer.zero_grad()
        loss = model(images_of(batch)).pow(2).mean()
        loss.backward()
        optimizer.step()
    print("loss %.6f" % loss.item())


if __name__ == "__main__":
    main()
