"""Libraries that augment pictures, in torch's DataLoader: whose generators get a seed of their own in each worker, and whose do not."""
# library: albumentations
#
# case: albumentations
#   does: `A.Compose` in a dataset: it keeps a generator of its own that each worker inherits
#   loader: train train
#   loader: test eval
#   expect: rng-duplicate-workers proven
#   expect: rng-duplicate-epochs proven
#
# case: albumentations fixed
#   does: the same; a `worker_init_fn` calls `set_random_seed`, which gives all transforms one seed: a note; OpenCV's own generator, seeded in each call, cannot be followed
#   loader: train train
#   loader: test eval
#   check: rng-duplicate-workers@train found
#   check: rng-duplicate-epochs@train cannot-tell
#
# library: imgaug
#
# case: imgaug
#   does: `iaa.Sequential` in a dataset: imgaug's global generator, which each worker inherits
#   loader: train train
#   loader: test eval
#   expect: rng-duplicate-workers proven
#   expect: rng-duplicate-epochs proven
#
# case: imgaug fixed
#   does: the same; a `worker_init_fn` calls `ia.seed`
#   loader: train train
#   loader: test eval
#   check: rng-duplicate-workers@train clean
#   check: rng-duplicate-epochs@train clean
#
# library: torchvision
#
# case: torchvision
#   does: `transforms.v2` in a dataset, CutMix and MixUp in `collate_fn`: all draw from torch's generator
#   loader: train train
#   loader: test eval
#   check: rng-duplicate-workers@train clean
#   check: rng-duplicate-epochs@train clean
import sys
import warnings

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, default_collate

warnings.filterwarnings("ignore")
HOW, FIXED = sys.argv[1], "fixed" in sys.argv


def albumentations_transform():
    import albumentations as A
    return A.Compose([A.RandomCrop(height=24, width=24), A.HorizontalFlip(p=0.5), A.RandomBrightnessContrast(p=0.8), A.GaussNoise(p=0.7)])


def imgaug_transform():
    np.sctypes = {"float": [np.float16, np.float32, np.float64], "int": [np.int8, np.int16, np.int32, np.int64],  # imgaug 0.4 is older than NumPy 2
                  "uint": [np.uint8, np.uint16, np.uint32, np.uint64]}
    np.bool = np.bool_
    import imgaug.augmenters as iaa
    return iaa.Sequential([iaa.CropToFixedSize(24, 24), iaa.Fliplr(0.5), iaa.Add((-20, 20)), iaa.AdditiveGaussianNoise(scale=(0, 8))])


def torchvision_transform():
    from torchvision.transforms import v2
    return v2.Compose([v2.ToImage(), v2.RandomCrop(24), v2.RandomHorizontalFlip(), v2.ColorJitter(0.2, 0.2), v2.ToDtype(torch.float32, scale=True)])


class Tiles(Dataset):
    def __init__(self, n, seed, transform=None):
        self.pictures = np.random.default_rng(seed).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8)
        self.transform = transform

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        picture = self.pictures[i]
        label = int(picture.mean() > 127.5)
        if self.transform is None:
            picture = picture[4:28, 4:28]
        elif HOW == "imgaug":
            picture = self.transform(image=picture)
        elif HOW == "albumentations":
            picture = self.transform(image=picture)["image"]
        else:
            return self.transform(picture), label
        return torch.from_numpy(np.ascontiguousarray(picture)).permute(2, 0, 1).float() / 255, label


def seed_worker(worker_id):
    info = torch.utils.data.get_worker_info()
    if HOW == "albumentations":
        info.dataset.transform.set_random_seed(info.seed % 2**32)
    else:
        import imgaug as ia
        ia.seed(info.seed % 2**32)


def collate():
    if HOW != "torchvision":
        return default_collate
    from torchvision.transforms import v2
    cutmix_or_mixup = v2.RandomChoice([v2.CutMix(num_classes=2), v2.MixUp(num_classes=2)])

    def collate_fn(batch):
        return cutmix_or_mixup(*default_collate(batch))
    return collate_fn


def main():
    transform = {"albumentations": albumentations_transform, "imgaug": imgaug_transform, "torchvision": torchvision_transform}[HOW]()
    train_loader = DataLoader(Tiles(96, 1, transform), batch_size=8, shuffle=True, num_workers=2, collate_fn=collate(),  # place: train
                              worker_init_fn=seed_worker if FIXED else None)
    test_loader = DataLoader(Tiles(40, 2), batch_size=8, num_workers=2)  # place: test
    model = nn.Sequential(nn.Conv2d(3, 8, 3, stride=2), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(2):
        model.train()
        for images, labels in train_loader:
            loss = nn.functional.cross_entropy(model(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        right = 0
        with torch.no_grad():
            for images, labels in test_loader:
                right += (model(images).argmax(1) == labels).sum().item()
        print("epoch %d  loss %.4f  accuracy %.3f" % (epoch, loss.item(), right / 40))


if __name__ == "__main__":
    main()
