"""pin_memory=True, and batches of builtin classes into which torch does not look."""
# e2e namespace
#   expect: pin-memory-noop proven SimpleNamespace
#   fix: printed
# e2e set
#   expect: pin-memory-noop proven set
#   fix: printed
# e2e array
#   expect: pin-memory-noop proven ndarray
#   fix: printed
import sys
import types

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


class Skies(Dataset):
    def __len__(self):
        return 40

    def __getitem__(self, i):
        return torch.sin(torch.arange(12288.0).reshape(3, 64, 64) * (i + 1))


def collate(samples):
    images = torch.stack(samples)
    batch = {"namespace": types.SimpleNamespace(image=images), "set": {images}, "array": images.numpy()}[WAY]
    return batch  # FIX line return


def images_of(batch):
    while not isinstance(batch, torch.Tensor):
        if hasattr(batch, "__array__"):
            batch = torch.from_numpy(batch)
        elif isinstance(batch, (list, set)):
            batch = next(iter(batch))
        elif isinstance(batch, dict):
            batch = batch["image"]
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
