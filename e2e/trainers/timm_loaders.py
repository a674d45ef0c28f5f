"""timm: create_dataset and create_loader as its train.py uses them, on a folder of small pictures; the prefetcher and its samplers."""
# library: timm
#
# case: train
#   does: `create_loader` for training and evaluation, `use_prefetcher=False`, RandAugment and random erasing
#   loader: train train
#   loader: eval eval
#   check: rng-duplicate-workers@train clean
#   check: rng-duplicate-epochs@train clean
#
# case: prefetcher
#   does: the same with timm's `PrefetchLoader`, on the CPU, and `FastCollateMixup`
#   loader: train train
#   loader: eval eval
#
# case: multi-epochs
#   does: `use_multi_epochs_loader=True`: one endless iterator serves all epochs
#   loader: train train
#   loader: eval eval
#
# case: validate
#   does: timm's validate.py: an evaluation and no training
#   loader: eval eval
#
# case: torchrun:2 train
#   does: two ranks: `DistributedSampler` for training, `OrderedDistributedSampler` for evaluation
#   loader: train train
#   loader: eval eval
#   check: shard-duplicate-ranks@train clean
#   check: sampler-no-set-epoch@train clean
#
# case: torchrun:2 repeated
#   does: `num_aug_repeats=3`: `RepeatAugSampler` gives each picture to several ranks, augmented differently, on purpose
#   loader: train train
#   loader: eval eval
import os
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
from PIL import Image
from timm import create_model, utils
from timm.data import FastCollateMixup, Mixup, create_dataset, create_loader
from timm.loss import SoftTargetCrossEntropy
from torch import nn

HOW = sys.argv[1]
SHAPE = (3, 32, 32)


def pictures(folder):
    rng = np.random.default_rng(3)
    for split, n in (("train", 24), ("validation", 10)):
        for kind in ("ferns", "mosses"):
            os.makedirs(os.path.join(folder, split, kind))
            for i in range(n):
                pixels = rng.integers(0, 256, (40, 40, 3), dtype=np.uint8)
                pixels[..., kind == "mosses"] //= 2
                Image.fromarray(pixels).save(os.path.join(folder, split, kind, "%d.png" % i))


def shared_folder(rank):
    name = [tempfile.mkdtemp() if rank == 0 else None]
    if rank == 0:
        pictures(name[0])
    if dist.is_initialized():
        dist.broadcast_object_list(name)
    return name[0]


def train_one_epoch(epoch, model, loader, optimizer, loss_fn, mixup_fn):
    model.train()
    losses = utils.AverageMeter()
    for batch_idx, (inp, target) in enumerate(loader):
        if mixup_fn is not None:
            inp, target = mixup_fn(inp, target)
        output = model(inp)
        loss = loss_fn(output, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), inp.size(0))
    return losses.avg


def validate(model, loader, loss_fn):
    model.eval()
    losses = utils.AverageMeter()
    with torch.inference_mode():
        for batch_idx, (inp, target) in enumerate(loader):
            losses.update(loss_fn(model(inp), target).item(), inp.size(0))
    return losses.avg


def main():
    distributed = "WORLD_SIZE" in os.environ
    if distributed:
        dist.init_process_group("gloo")
    rank = dist.get_rank() if distributed else 0
    utils.random_seed(42, rank)
    root = shared_folder(rank)
    prefetcher = HOW == "prefetcher"
    device = torch.device("cpu")
    loader_eval = create_loader(  # place: eval
        create_dataset("", root=root, split="validation", is_training=False), input_size=SHAPE, batch_size=8, is_training=False,
        use_prefetcher=prefetcher, num_workers=2, distributed=distributed, crop_pct=0.9, pin_memory=False, device=device)
    model = create_model("test_vit", num_classes=2, img_size=32, patch_size=8)
    if HOW == "validate":
        print("loss %.4f" % validate(model, loader_eval, nn.CrossEntropyLoss()))
        return
    mixup = dict(mixup_alpha=0.2, num_classes=2)
    collate_fn = FastCollateMixup(**mixup) if prefetcher else None
    mixup_fn = None if prefetcher else Mixup(**mixup)
    loader_train = create_loader(  # place: train
        create_dataset("", root=root, split="train", is_training=True), input_size=SHAPE, batch_size=8, is_training=True, use_prefetcher=prefetcher,
        re_prob=0.25, re_mode="pixel", auto_augment="rand-m9-mstd0.5-inc1", num_aug_repeats=3 if HOW == "repeated" else 0, num_workers=2,
        distributed=distributed, collate_fn=collate_fn, pin_memory=False, device=device, use_multi_epochs_loader=HOW == "multi-epochs",
        worker_seeding="all")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    if distributed:
        model = nn.parallel.DistributedDataParallel(model)
    for epoch in range(2):
        if hasattr(loader_train.sampler, "set_epoch"):
            loader_train.sampler.set_epoch(epoch)
        trained = train_one_epoch(epoch, model, loader_train, optimizer, SoftTargetCrossEntropy(), mixup_fn)
        tested = validate(model, loader_eval, nn.CrossEntropyLoss())
        if rank == 0:
            print("epoch %d  train %.4f  eval %.4f" % (epoch, trained, tested))
    if distributed:
        dist.barrier()
        dist.destroy_process_group()


if __name__ == "__main__":
    main()
