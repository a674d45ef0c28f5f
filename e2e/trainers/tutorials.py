"""PyTorch's own tutorials and the usual ways of writing a loop around them."""
# library: torch
#
# case: phases
#   does: transfer learning: loaders made in a dict comprehension, `for phase in ["train", "val"]`, `set_grad_enabled(phase == "train")`
#   loader: phases train
#   loader: phases eval
#
# case: quickstart
#   does: `train(dataloader, ...)` and `test(dataloader, ...)`
#   loader: quick-train train
#   loader: quick-test eval
#
# case: reporting
#   does: `train_one_epoch` with `enumerate`, a validation under `no_grad` while training goes on
#   loader: quick-train train
#   loader: quick-test eval
#
# case: helper
#   does: one `run_epoch(loader, optimizer=None)` for both, loaders made by one `make_loader`
#   loader: helper train
#   loader: helper eval
#
# case: random-split
#   does: `random_split` with a generator of its own, both halves in one helper
#   loader: helper train
#   loader: helper eval
#   check: split-leak@eval clean
#
# case: folds
#   does: k-fold cross-validation with a new model each fold
#   loader: fold train
#   loader: fold eval
#
# case: torchrun:2 ddp
#   does: the DDP tutorial series: a Trainer class, `DistributedSampler`, `set_epoch`, a snapshot each epoch
#   loader: ddp train
#   check: shard-duplicate-ranks@train clean
#   check: sampler-no-set-epoch@train clean
import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset, random_split
from torch.utils.data.distributed import DistributedSampler

HOW = sys.argv[1]


class Ants(Dataset):
    def __init__(self, n, seed, noise=0.0):
        self.legs = torch.randn(n, 8, generator=torch.Generator().manual_seed(seed))
        self.noise = noise

    def __len__(self):
        return len(self.legs)

    def __getitem__(self, i):
        return self.legs[i] + self.noise * torch.randn(8), int(self.legs[i].sum() > 0)


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))


loss_fn = nn.CrossEntropyLoss()


def phases():
    image_datasets = {"train": Ants(96, 1, noise=0.1), "val": Ants(40, 2)}
    dataloaders = {x: DataLoader(image_datasets[x], batch_size=8, shuffle=True, num_workers=2) for x in ["train", "val"]}  # place: phases
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=7, gamma=0.1)
    for epoch in range(2):
        for phase in ["train", "val"]:
            if phase == "train":
                model.train()
            else:
                model.eval()
            right = 0
            for inputs, labels in dataloaders[phase]:
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    outputs = model(inputs)
                    loss = loss_fn(outputs, labels)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()
                right += (outputs.argmax(1) == labels).sum().item()
            if phase == "train":
                scheduler.step()
            print(epoch, phase, "%.3f" % (right / len(image_datasets[phase])))


def train(dataloader, model, optimizer):
    model.train()
    for batch, (X, y) in enumerate(dataloader):
        loss = loss_fn(model(X), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def test(dataloader, model):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for X, y in dataloader:
            test_loss += loss_fn(model(X), y).item()
    print("loss %.4f" % (test_loss / len(dataloader)))


def train_one_epoch(loader, model, optimizer):
    running_loss = 0.0
    for i, data in enumerate(loader):
        inputs, labels = data
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = loss_fn(outputs, labels)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    return running_loss / (i + 1)


def quickstart():
    train_dataloader = DataLoader(Ants(96, 1, noise=0.1), batch_size=8, shuffle=True, num_workers=2)  # place: quick-train
    test_dataloader = DataLoader(Ants(40, 2), batch_size=8, num_workers=2)  # place: quick-test
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)
    for epoch in range(2):
        if HOW == "quickstart":
            train(train_dataloader, model, optimizer)
            test(test_dataloader, model)
            continue
        model.train(True)
        average = train_one_epoch(train_dataloader, model, optimizer)
        model.eval()
        running = 0.0
        with torch.no_grad():
            for vdata in test_dataloader:
                vinputs, vlabels = vdata
                running += loss_fn(model(vinputs), vlabels).item()
        print("epoch %d  train %.4f  valid %.4f" % (epoch, average, running / len(test_dataloader)))


def make_loader(dataset, train):
    return DataLoader(dataset, batch_size=8, shuffle=train, num_workers=2)  # place: helper


def run_epoch(loader, model, optimizer=None):
    model.train(optimizer is not None)
    total = 0.0
    with torch.set_grad_enabled(optimizer is not None):
        for x, y in loader:
            loss = loss_fn(model(x), y)
            if optimizer is not None:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item()
    return total / len(loader)


def helper():
    if HOW == "random-split":
        train_set, val_set = random_split(Ants(136, 1), [96, 40], generator=torch.Generator().manual_seed(42))
    else:
        train_set, val_set = Ants(96, 1, noise=0.1), Ants(40, 2)
    train_loader, val_loader = make_loader(train_set, True), make_loader(val_set, False)
    model = network()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(2):
        print("epoch %d  train %.4f  val %.4f" % (epoch, run_epoch(train_loader, model, optimizer), run_epoch(val_loader, model)))


def folds():
    ants = Ants(96, 1)
    order = torch.randperm(96, generator=torch.Generator().manual_seed(0)).tolist()
    for k in range(3):
        held_out = order[32 * k:32 * (k + 1)]
        kept = [i for i in order if i not in set(held_out)]
        model = network()
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        loaders = [DataLoader(Subset(ants, part), batch_size=8, shuffle=part is kept, num_workers=2) for part in (kept, held_out)]  # place: fold
        for epoch in range(2):
            run_epoch(loaders[0], model, optimizer)
        print("fold %d  %.4f" % (k, run_epoch(loaders[1], model)))


class Trainer:
    def __init__(self, model, train_data, optimizer, snapshot_path):
        self.model = nn.parallel.DistributedDataParallel(model)
        self.train_data, self.optimizer, self.snapshot_path = train_data, optimizer, snapshot_path

    def _run_batch(self, source, targets):
        self.optimizer.zero_grad()
        output = self.model(source)
        loss = loss_fn(output, targets)
        loss.backward()
        self.optimizer.step()

    def _run_epoch(self, epoch):
        b_sz = len(next(iter(self.train_data))[0])
        print("epoch %d  batch size %d  steps %d" % (epoch, b_sz, len(self.train_data)), flush=True)
        self.train_data.sampler.set_epoch(epoch)
        for source, targets in self.train_data:
            self._run_batch(source, targets)

    def train(self, max_epochs):
        for epoch in range(max_epochs):
            self._run_epoch(epoch)
            if dist.get_rank() == 0:
                torch.save({"MODEL_STATE": self.model.module.state_dict(), "EPOCHS_RUN": epoch}, self.snapshot_path)


def ddp():
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    dataset = Ants(96, 1)
    train_data = DataLoader(dataset, batch_size=8, shuffle=False, sampler=DistributedSampler(dataset), num_workers=2)  # place: ddp
    Trainer(model, train_data, optimizer, os.path.join(tempfile.mkdtemp(), "snapshot.pt")).train(2)
    dist.destroy_process_group()


if __name__ == "__main__":
    {"phases": phases, "quickstart": quickstart, "reporting": quickstart, "helper": helper, "random-split": helper, "folds": folds, "ddp": ddp}[HOW]()
