"""A training on a CUDA device, and ways of copying its batches there.

usage: train.py WAY [TRUTH]    TRUTH: a file for what torch.profiler (CUPTI) saw: JSON, number of copies to the device of more
than 64 KiB by the kind of host memory; slower, and not for a run that is recorded
"""
import dataclasses
import json
import sys
import threading

import torch
from torch.utils.data import DataLoader, Dataset

WAY, TRUTH = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None
BATCHES, BATCH, PASSES = 40, 8, 2
SMALL = 65536
UNPINNED = ("pageable", "unhelped", "thread", "small", "registered")
device = torch.device("cuda")


@dataclasses.dataclass
class Scene:
    image: torch.Tensor


class Pinning(Scene):
    def pin_memory(self):
        return Pinning(self.image.pin_memory())


class Scenes(Dataset):
    def __len__(self):
        return BATCHES * BATCH

    def __getitem__(self, i):
        side = 16 if WAY == "small" else 512
        return torch.full((3, side, side), float(i))


def collate(samples):
    images = torch.stack(samples)
    return {"noop": Scene, "pins": Pinning}.get(WAY, lambda x: x)(images)


def take(image):
    if WAY == "cast":
        return image.to(device, torch.bfloat16).float()
    if WAY == "cast_later":
        return image.to(device, torch.bfloat16, non_blocking=True).float()
    if WAY == "strided":
        return image[:, :, ::2].to(device, non_blocking=True)
    return image.to(device, non_blocking=WAY not in ("pageable", "waits"))


def prefetched(loader):
    """Batches that are copied on a stream of their own, one ahead."""
    side, ahead = torch.cuda.Stream(), None
    for image in loader:
        with torch.cuda.stream(side):
            copied = image.to(device, non_blocking=True)
        if ahead is not None:
            yield ahead
        torch.cuda.current_stream().wait_stream(side)
        copied.record_stream(torch.cuda.current_stream())
        ahead = copied
    yield ahead


def threaded(image):
    found = []
    helper = threading.Thread(target=lambda: found.append(image.to(device)))
    helper.start()
    helper.join()
    return found[0]


def batches(loader):
    if WAY == "prefetch":
        yield from prefetched(loader)
        return
    for batch in loader:
        image = batch.image if isinstance(batch, Scene) else batch
        if WAY == "registered":
            assert int(torch.cuda.cudart().cudaHostRegister(image.data_ptr(), image.numel() * image.element_size(), 0)) == 0
        yield threaded(image) if WAY == "thread" else take(image)
        if WAY == "registered":
            torch.cuda.synchronize()
            assert int(torch.cuda.cudart().cudaHostUnregister(image.data_ptr())) == 0


def train():
    torch.manual_seed(5)
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 64, 5, stride=2), torch.nn.ReLU(), torch.nn.Conv2d(64, 64, 5, stride=2)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    loader = DataLoader(Scenes(), batch_size=BATCH, shuffle=True, num_workers=2, collate_fn=collate, pin_memory=WAY not in UNPINNED)
    if WAY == "checkpoint":
        for _ in range(30):
            torch.zeros(1 << 20).to(device)
    total = 0.0
    for _ in range(PASSES):
        for x in batches(loader):
            optimizer.zero_grad()
            loss = model(x / 320).pow(2).mean()
            loss.backward()
            optimizer.step()
            if WAY == "item":
                total += loss.item()
            elif WAY == "told":
                torch.cuda.synchronize()
    torch.cuda.synchronize()
    return total


def truth(events):
    counts = {"Pageable": 0, "Pinned": 0}
    for e in events:
        for kind in counts:
            if e["name"] == "Memcpy HtoD (%s -> Device)" % kind and e["args"]["bytes"] > SMALL:
                counts[kind] += 1
    return counts


def main():
    if TRUTH is None:
        print("done", train())
        return
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]) as p:
        train()
    p.export_chrome_trace(TRUTH)
    with open(TRUTH) as f:
        found = truth([e for e in json.load(f)["traceEvents"] if e.get("cat") == "gpu_memcpy"])
    with open(TRUTH, "w") as f:
        json.dump(dict(found, device=torch.cuda.get_device_name(), torch=torch.__version__, cuda=torch.version.cuda), f)


if __name__ == "__main__":
    main()
