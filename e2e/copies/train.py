"""A training whose device is a stand-in for CUDA: what torch asks of the driver for `batch.to(device)`, asked by hand.

usage: train.py FOLDER WAY    FOLDER has libcuda.so.1 and libcudart.so.13 of probes/cuda/testdata/fake
"""
import ctypes
import dataclasses
import os
import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset

FOLDER, WAY = sys.argv[1:]
BATCHES, BATCH = 40, 8
cuda = ctypes.CDLL(os.path.join(FOLDER, "libcuda.so.1"), mode=ctypes.RTLD_GLOBAL)
runtime = ctypes.CDLL(os.path.join(FOLDER, "libcudart.so.13"))
P, Z = ctypes.c_void_p, ctypes.c_size_t
TO_DEVICE, TO_HOST = 1, 2


class Dim(ctypes.Structure):
    _fields_ = [("x", ctypes.c_uint), ("y", ctypes.c_uint), ("z", ctypes.c_uint)]


runtime.cudaLaunchKernel.argtypes = [P, Dim, Dim, P, Z, P]
runtime.cudaMemcpyAsync.argtypes = runtime.copy_and_wait.argtypes = [P, P, Z, ctypes.c_int, P]
cuda.cuMemHostRegister_v2.argtypes = [P, Z, ctypes.c_uint]


def checked(code):
    assert code == 0, code


class Stand:
    """What torch does with a device (aten/src/ATen/native/cuda/Copy.cu)."""

    def __init__(self, room):
        at = P()
        checked(runtime.cudaMalloc(ctypes.byref(at), Z(room)))
        self.at = at.value

    def take(self, tensor, dtype=None, non_blocking=False, stream=0):
        if dtype is not None and not non_blocking:
            tensor = tensor.to(dtype)  # on the host, in memory of its own
        if not tensor.is_contiguous():
            tensor = tensor.contiguous()
        size = tensor.numel() * tensor.element_size()
        ask = runtime.cudaMemcpyAsync if non_blocking else runtime.copy_and_wait
        checked(ask(self.at, tensor.data_ptr(), size, TO_DEVICE, stream))

    def step(self):
        for _ in range(4):
            checked(runtime.cudaLaunchKernel(250, Dim(1, 1, 1), Dim(256, 1, 1), None, 0, 0))

    def item(self):
        answer = ctypes.c_float()
        checked(runtime.copy_and_wait(ctypes.addressof(answer), self.at, 4, TO_HOST, 0))
        return answer.value


def simulate(module, **answers):
    """A GPU, as far as a loader asks for one."""
    for name, answer in answers.items():
        setattr(module, name, lambda *args, answer=answer, **more: answer)


def pinned(tensor, *device):
    """In one of a few blocks of pinned memory, as torch's allocator has them: blocks are never given back."""
    size = tensor.numel() * tensor.element_size()
    with lock:
        blocks[0] += 1
        if len(blocks) < 9:
            block = torch.empty(1 << 23, dtype=torch.uint8)
            checked(cuda.cuMemHostRegister_v2(block.data_ptr(), block.numel(), 0))
            blocks.append(block)
    block = blocks[1 + blocks[0] % (len(blocks) - 1)]
    there = block[:size].view(tensor.dtype).view(tensor.shape)
    return there.copy_(tensor)


blocks, lock = [0], threading.Lock()
simulate(torch.cuda, is_available=True, current_device=0, set_device=None)
if hasattr(torch, "accelerator"):
    simulate(torch.accelerator, is_available=True, current_accelerator=torch.device("cuda"), current_device_index=0, set_device_index=None)
torch.Tensor.pin_memory = pinned
torch.Tensor.is_pinned = lambda tensor, *device: any(
    block.data_ptr() <= tensor.data_ptr() < block.data_ptr() + block.numel() for block in blocks[1:])


@dataclasses.dataclass
class Scene:
    image: torch.Tensor


class Scenes(Dataset):
    def __len__(self):
        return BATCHES * BATCH

    def __getitem__(self, i):
        return torch.full((3, 224, 224), float(i))


def collate(samples):
    images = torch.stack(samples)
    return Scene(images) if WAY == "noop" else images


def main():
    torch.manual_seed(5)
    model = torch.nn.Linear(8, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    device = Stand(1 << 23)
    pin = WAY not in ("pageable", "unhelped", "thread")
    loader = DataLoader(Scenes(), batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=collate, pin_memory=pin)
    if WAY == "checkpoint":
        for _ in range(30):
            device.take(torch.zeros(1 << 20))
    total = 0.0
    for _ in range(2):
        for batch in loader:
            image = batch.image if WAY == "noop" else batch
            if WAY in ("cast", "cast_later"):
                device.take(image, torch.float16, non_blocking=WAY == "cast_later")
            elif WAY == "strided":
                device.take(image[:, :, ::2], non_blocking=True)
            elif WAY == "thread":
                helper = threading.Thread(target=device.take, args=(image,))
                helper.start()
                helper.join()
            else:
                device.take(image, non_blocking=WAY not in ("pageable", "waits"))
            device.step()
            optimizer.zero_grad()
            model(image[:, 0, 0, :8] / 320).mean().backward()
            optimizer.step()
            if WAY == "item":
                total += device.item()
    checked(runtime.cudaDeviceSynchronize())
    print("done", total)


if __name__ == "__main__":
    main()
