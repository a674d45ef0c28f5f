"""MONAI: random transforms in its own DataLoader, which seeds them, and in torch's, which does not."""
# library: monai
#
# case: monai
#   does: `monai.data.DataLoader`, dictionary transforms, a validation every epoch; a note says that a transform and its inner one have one seed
#   loader: train train
#   loader: val eval
#   check: rng-duplicate-workers@train found
#   check: rng-duplicate-epochs@train clean
#
# case: cached
#   does: the same with `CacheDataset` and `set_determinism`; the same note
#   loader: train train
#   loader: val eval
#   check: rng-duplicate-workers@train found
#   check: rng-duplicate-epochs@train clean
#
# case: torch
#   does: torch's `DataLoader` with the same transforms: nothing seeds them, all workers and epochs augment alike
#   loader: train train
#   loader: val eval
#   expect: rng-duplicate-workers proven
#   expect: rng-duplicate-epochs proven
#
# case: seeded
#   does: torch's `DataLoader` with the `worker_init_fn` of MONAI's FAQ; the same note
#   loader: train train
#   loader: val eval
#   check: rng-duplicate-workers@train found
#   check: rng-duplicate-epochs@train clean
import sys
import warnings

warnings.filterwarnings("ignore")
import monai
import numpy as np
import torch
from monai.data import CacheDataset, Dataset, decollate_batch
from monai.losses import DiceLoss
from monai.metrics import DiceMetric
from monai.networks.nets import UNet
from monai.transforms import AsDiscrete, Compose, EnsureChannelFirstd, RandCropByPosNegLabeld, RandFlipd, RandGaussianNoised, ScaleIntensityd

HOW = sys.argv[1]


def scans(n, seed):
    rng, found = np.random.default_rng(seed), []
    for _ in range(n):
        image = rng.random((40, 40), dtype=np.float32)
        row, column = rng.integers(8, 32, 2)
        label = np.zeros((40, 40), np.float32)
        label[row - 5:row + 5, column - 5:column + 5] = 1
        found.append({"image": image + label, "label": label})
    return found


def seed_transforms(worker_id):
    worker_info = torch.utils.data.get_worker_info()
    try:
        worker_info.dataset.transform.set_random_state(worker_info.seed % (2**32))
    except AttributeError:
        pass


def main():
    keys = ["image", "label"]
    train_transforms = Compose([
        EnsureChannelFirstd(keys=keys, channel_dim="no_channel"),
        ScaleIntensityd(keys="image"),
        RandCropByPosNegLabeld(keys=keys, label_key="label", spatial_size=(32, 32), pos=1, neg=1, num_samples=2),
        RandFlipd(keys=keys, prob=0.5, spatial_axis=0),
        RandGaussianNoised(keys="image", prob=1.0, std=0.05),
    ])
    val_transforms = Compose([EnsureChannelFirstd(keys=keys, channel_dim="no_channel"), ScaleIntensityd(keys="image")])
    if HOW == "cached":
        monai.utils.set_determinism(seed=0)
        train_ds = CacheDataset(data=scans(32, 1), transform=train_transforms, cache_rate=1.0, progress=False)
    else:
        train_ds = Dataset(data=scans(32, 1), transform=train_transforms)
    val_ds = Dataset(data=scans(9, 2), transform=val_transforms)
    DataLoader, more = monai.data.DataLoader, {}
    if HOW in ("torch", "seeded"):
        from torch.utils.data import DataLoader
        more = {"collate_fn": monai.data.list_data_collate, "worker_init_fn": seed_transforms if HOW == "seeded" else None}
    train_loader = DataLoader(train_ds, batch_size=4, shuffle=True, num_workers=2, **more)  # place: train
    val_loader = DataLoader(val_ds, batch_size=1, num_workers=2)  # place: val
    model = UNet(spatial_dims=2, in_channels=1, out_channels=1, channels=(4, 8), strides=(2,))
    loss_function, dice_metric = DiceLoss(sigmoid=True), DiceMetric(include_background=True, reduction="mean")
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    post = Compose([AsDiscrete(threshold=0.5)])
    for epoch in range(2):
        model.train()
        for batch_data in train_loader:
            inputs, labels = batch_data["image"], batch_data["label"]
            optimizer.zero_grad()
            outputs = model(inputs)
            loss = loss_function(outputs, labels)
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for val_data in val_loader:
                val_outputs = [post(i) for i in decollate_batch(torch.sigmoid(model(val_data["image"])))]
                dice_metric(y_pred=val_outputs, y=decollate_batch(val_data["label"]))
            print("epoch %d  loss %.4f  dice %.4f" % (epoch, loss.item(), dice_metric.aggregate().item()))
            dice_metric.reset()


if __name__ == "__main__":
    main()
