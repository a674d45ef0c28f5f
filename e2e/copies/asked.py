"""A training on a device that is written in Python (torch 2.11 and later), with `dptrace record --copies`.

usage: asked.py WAY
"""
import sys
import time

import torch
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from torch.utils.data import DataLoader, Dataset

WAY = sys.argv[1]
BATCHES, BATCH = 40, 8
_setup_privateuseone_for_python_backend("npu")
lib = torch.library.Library("aten", "IMPL")
made, pins, blocks, turns, asked = torch._C._acc.create_empty_tensor, set(), [], [0], [0]


def implements(name, key="PrivateUse1"):
    return lambda f: lib.impl(name, f, key)


@implements("empty.memory_format")
def empty(size, dtype=None, layout=None, device=None, pin_memory=None, memory_format=None):
    return made(tuple(size), dtype or torch.get_default_dtype())


@implements("empty_strided")
def empty_strided(size, stride, dtype=None, layout=None, device=None, pin_memory=None):
    return made(tuple(size), dtype or torch.get_default_dtype())


@implements("_copy_from")
def copy_from(source, target, non_blocking=False):
    """What CUDA's does: it goes on at once where the memory is pinned and nobody wants it to wait."""
    asked[0] += 1
    pageable = source.data_ptr() not in pins or not source.is_contiguous() or source.dtype != target.dtype
    if pageable or not non_blocking:
        time.sleep(0.01)
    return target


@implements("is_pinned", "CPU")
def is_pinned(tensor, device=None):
    return tensor.data_ptr() in pins


@implements("_pin_memory", "CPU")
def pin_memory(tensor, device=None):
    """In one of a few blocks, as torch's allocator has them: they are never given back."""
    if len(blocks) < 16:
        blocks.append(torch.empty(1 << 21, dtype=torch.uint8))
        pins.add(blocks[-1].data_ptr())
    block = blocks[turns[0] % len(blocks)]
    turns[0] += 1
    there = block[:tensor.numel() * tensor.element_size()].view(tensor.dtype).view(tensor.shape)
    return there.copy_(tensor)


if hasattr(torch, "accelerator"):
    torch.accelerator.set_device_index = lambda device: None
    torch.accelerator.current_device_index = lambda: 0


class Images(Dataset):
    def __len__(self):
        return BATCHES * BATCH

    def __getitem__(self, i):
        return torch.full((16, 4096), float(i))


def collate(samples):
    images = torch.stack(samples)
    return {"image": images, "more": [images[:, :1].clone()]} if WAY == "nested" else images


def move(batch):
    if WAY == "nested":
        return {"image": batch["image"].to("npu", non_blocking=True), "more": [m.to("npu") for m in batch["more"]]}
    if WAY == "cast":
        return batch.to("npu", torch.float16)
    if WAY == "strided":
        return batch[:, ::2].to("npu", non_blocking=True)
    if WAY == "into":
        return torch.empty(batch.shape, device="npu").copy_(batch)
    if WAY == "compiled":
        return compiled(batch)
    with torch.no_grad():
        return batch.to("npu", non_blocking=WAY in ("good", "unhelped", "nested"))


compiled = torch.compile(lambda batch: batch.to("npu"), backend="eager") if WAY == "compiled" else None


def main():
    torch.manual_seed(5)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    pin = WAY not in ("pageable", "unhelped", "into", "compiled")
    loader = DataLoader(Images(), batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=collate, pin_memory=pin)
    for _ in range(2):
        for batch in loader:
            image = batch["image"] if WAY == "nested" else batch
            if WAY != "none":
                move(batch)
            time.sleep(0.005)
            optimizer.zero_grad()
            model(image[:, 0, :8] / 320).pow(2).mean().backward()
            optimizer.step()
    print("loss %.17g" % sum(p.sum().item() for p in model.parameters()), asked[0])


if __name__ == "__main__":
    main()
