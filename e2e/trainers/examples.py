"""The loops of pytorch/examples, on small made-up data: how imagenet, mnist, vae, dcgan, siamese_network, mnist_hogwild and word_language_model are written."""
# library: torch
#
# case: imagenet
#   does: imagenet: `train()` and `validate()` each epoch with meters, StepLR, the best checkpoint kept
#   loader: imagenet-train train
#   loader: imagenet-val eval
#
# case: imagenet evaluate
#   does: imagenet with `--evaluate`: no training
#   loader: imagenet-val eval
#
# case: torchrun:2 imagenet
#   does: imagenet on two ranks: both samplers are distributed, the samples that the validation's sampler leaves are evaluated in a loader of their own
#   loader: imagenet-train train
#   loader: imagenet-val eval
#   loader: aux eval
#   check: shard-duplicate-ranks@train clean
#   check: sampler-no-set-epoch@train clean
#
# case: mnist
#   does: mnist: `--dry-run` off, a test after each epoch
#   loader: mnist-train train
#   loader: mnist-val eval
#
# case: vae
#   does: vae: labels unused, `test()` without gradients, pictures of the first batch
#   loader: mnist-train train
#   loader: mnist-val eval
#
# case: dcgan
#   does: dcgan: two networks, two optimizers, both updated on each batch
#   loader: dcgan-train train
#
# case: wgan
#   does: the usual WGAN: five updates of the critic for one of the generator, batches from an endless iterator
#   loader: wgan-train train
#
# case: siamese
#   does: siamese_network: the dataset draws the partner of a picture
#   loader: siamese-train train
#   loader: siamese-val eval
#
# case: hogwild
#   does: mnist_hogwild: two processes train one shared model, each with its loader and its seed; the parent tests
#   loader: hogwild-train train
#   loader: hogwild-val eval
#
# case: language
#   does: word_language_model: `batchify` and `get_batch`, no DataLoader at all
import os
import random
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset
from torch.utils.data.distributed import DistributedSampler

HOW = sys.argv[1]


class Digits(Dataset):
    def __init__(self, n, seed, augment=False):
        self.pictures = torch.rand(n, 1, 8, 8, generator=torch.Generator().manual_seed(seed))
        self.augment = augment

    def __len__(self):
        return len(self.pictures)

    def __getitem__(self, i):
        x, y = self.pictures[i], int(self.pictures[i].mean() > 0.5)
        if self.augment and torch.rand(1) < 0.5:
            x = x.flip(-1)
        return x, y


class Pairs(Digits):
    """A picture and a partner of its class or of the other."""

    def __getitem__(self, i):
        other = random.randrange(len(self))
        same = (self.pictures[i].mean() > 0.5) == (self.pictures[other].mean() > 0.5)
        return self.pictures[i], self.pictures[other], torch.tensor(float(same))


def network(out=2):
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, out))


class AverageMeter:
    def __init__(self):
        self.sum = self.count = 0

    def update(self, value, n):
        self.sum, self.count = self.sum + value * n, self.count + n


def train(train_loader, model, criterion, optimizer):
    losses = AverageMeter()
    model.train()
    for i, (images, target) in enumerate(train_loader):
        output = model(images)
        loss = criterion(output, target)
        losses.update(loss.item(), images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return losses.sum / losses.count


def validate(val_loader, model, criterion, distributed=False):
    losses = AverageMeter()

    def run_validate(loader):
        with torch.no_grad():
            for i, (images, target) in enumerate(loader):
                losses.update(criterion(model(images), target).item(), images.size(0))

    model.eval()
    run_validate(val_loader)
    if distributed and len(val_loader.sampler) * dist.get_world_size() < len(val_loader.dataset):
        aux_val_dataset = Subset(val_loader.dataset, range(len(val_loader.sampler) * dist.get_world_size(), len(val_loader.dataset)))
        aux_val_loader = DataLoader(aux_val_dataset, batch_size=8, shuffle=False, num_workers=2)  # place: aux
        run_validate(aux_val_loader)
    return losses.sum / losses.count


def imagenet():
    distributed = "WORLD_SIZE" in os.environ
    if distributed:
        dist.init_process_group("gloo")
    torch.manual_seed(1)
    model = network()
    train_dataset, val_dataset = Digits(96, 1, augment=True), Digits(43, 2)
    train_sampler = val_sampler = None
    if distributed:
        torch.manual_seed(1 + dist.get_rank())
        model = nn.parallel.DistributedDataParallel(model)
        train_sampler = DistributedSampler(train_dataset)
        val_sampler = DistributedSampler(val_dataset, shuffle=False, drop_last=True)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.1)
    train_loader = DataLoader(train_dataset, batch_size=8, shuffle=(train_sampler is None), num_workers=2, sampler=train_sampler)  # place: imagenet-train
    val_loader = DataLoader(val_dataset, batch_size=8, shuffle=False, num_workers=2, sampler=val_sampler)  # place: imagenet-val
    if "evaluate" in sys.argv:
        print("loss %.4f" % validate(val_loader, model, criterion))
        return
    best, path = None, os.path.join(tempfile.mkdtemp(), "checkpoint.pth.tar")
    for epoch in range(2):
        if distributed:
            train_sampler.set_epoch(epoch)
        train(train_loader, model, criterion, optimizer)
        loss = validate(val_loader, model, criterion, distributed)
        scheduler.step()
        if best is None or loss < best:
            best = loss
            torch.save({"epoch": epoch + 1, "state_dict": model.state_dict(), "optimizer": optimizer.state_dict()}, path)
    print("best %.4f" % best)
    if distributed:
        dist.destroy_process_group()


def mnist():
    torch.manual_seed(1)
    train_loader = DataLoader(Digits(100, 1), batch_size=16, shuffle=True, num_workers=2)  # place: mnist-train
    test_loader = DataLoader(Digits(43, 2), batch_size=20, shuffle=HOW == "mnist", num_workers=2)  # place: mnist-val
    model = network()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    for epoch in range(1, 3):
        model.train()
        for batch_idx, (data, target) in enumerate(train_loader):
            optimizer.zero_grad()
            if HOW == "vae":
                flat = data.view(len(data), -1)
                loss = F.mse_loss(model(data).sum(1), flat.sum(1))
            else:
                loss = F.nll_loss(F.log_softmax(model(data), dim=1), target)
            loss.backward()
            optimizer.step()
        model.eval()
        test_loss = 0
        with torch.no_grad():
            for i, (data, target) in enumerate(test_loader):
                test_loss += F.cross_entropy(model(data), target, reduction="sum").item()
                if HOW == "vae" and i == 0:
                    shown = torch.cat([data[:4], data[:4] * 0.5])
        print("epoch %d  test loss %.4f" % (epoch, test_loss / len(test_loader.dataset)))
        if HOW == "vae":
            with torch.no_grad():
                model(torch.randn(8, 1, 8, 8) + shown.mean())


def dcgan():
    dataloader = DataLoader(Digits(96, 1), batch_size=8, shuffle=True, num_workers=2)  # place: dcgan-train
    netG, netD = nn.Sequential(nn.Linear(6, 64), nn.BatchNorm1d(64), nn.Tanh()), nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
    criterion = nn.BCEWithLogitsLoss()
    optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-4, betas=(0.5, 0.999))
    optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-4, betas=(0.5, 0.999))
    for epoch in range(2):
        for i, data in enumerate(dataloader, 0):
            netD.zero_grad()
            real = data[0]
            label = torch.full((real.size(0), 1), 1.0)
            errD_real = criterion(netD(real), label)
            errD_real.backward()
            fake = netG(torch.randn(real.size(0), 6)).view(-1, 1, 8, 8)
            label.fill_(0.0)
            errD_fake = criterion(netD(fake.detach()), label)
            errD_fake.backward()
            optimizerD.step()
            netG.zero_grad()
            label.fill_(1.0)
            errG = criterion(netD(fake), label)
            errG.backward()
            optimizerG.step()
        print("[%d] D %.4f G %.4f" % (epoch, (errD_real + errD_fake).item(), errG.item()))


def wgan():
    dataloader = DataLoader(Digits(160, 1), batch_size=8, shuffle=True, drop_last=True, num_workers=2)  # place: wgan-train

    def endless():
        while True:
            for images, _ in dataloader:
                yield images

    netG, netD = nn.Linear(6, 64), nn.Sequential(nn.Flatten(), nn.Linear(64, 1))
    optimizerD, optimizerG = torch.optim.RMSprop(netD.parameters(), lr=5e-5), torch.optim.RMSprop(netG.parameters(), lr=5e-5)
    batches = endless()
    for iteration in range(12):
        for p in netD.parameters():
            p.requires_grad = True
        for _ in range(5):
            real = next(batches)
            netD.zero_grad()
            with torch.no_grad():
                fake = netG(torch.randn(len(real), 6))
            loss = netD(fake.view(-1, 1, 8, 8)).mean() - netD(real).mean()
            loss.backward()
            optimizerD.step()
            for p in netD.parameters():
                p.data.clamp_(-0.01, 0.01)
        for p in netD.parameters():
            p.requires_grad = False
        netG.zero_grad()
        (-netD(netG(torch.randn(8, 6)).view(-1, 1, 8, 8)).mean()).backward()
        optimizerG.step()
    print("loss %.4f" % loss.item())
    batches.close()


def siamese():
    train_loader = DataLoader(Pairs(96, 1), batch_size=8, shuffle=True, num_workers=2)  # place: siamese-train
    test_loader = DataLoader(Pairs(40, 2), batch_size=8, num_workers=2)  # place: siamese-val
    model, criterion = network(4), nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    for epoch in range(2):
        model.train()
        for images_1, images_2, targets in train_loader:
            optimizer.zero_grad()
            loss = criterion((model(images_1) * model(images_2)).sum(1), targets)
            loss.backward()
            optimizer.step()
        model.eval()
        test_loss = 0
        with torch.no_grad():
            for images_1, images_2, targets in test_loader:
                test_loss += criterion((model(images_1) * model(images_2)).sum(1), targets).sum().item()
        print("epoch %d  %.4f" % (epoch, test_loss))


def hogwild_train(rank, model, dataset):
    torch.manual_seed(1 + rank)
    train_loader = DataLoader(dataset, batch_size=8, shuffle=True, num_workers=1)  # place: hogwild-train
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.5)
    for epoch in range(2):
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(data), target)
            loss.backward()
            optimizer.step()


def hogwild():
    mp.set_start_method("spawn", force=True)
    torch.manual_seed(1)
    model = network()
    model.share_memory()
    processes = [mp.Process(target=hogwild_train, args=(rank, model, Digits(96, 1))) for rank in range(2)]
    for p in processes:
        p.start()
    for p in processes:
        p.join()
    test_loader = DataLoader(Digits(40, 2), batch_size=8, num_workers=1)  # place: hogwild-val
    print("loss %.4f" % validate(test_loader, model, nn.CrossEntropyLoss()))


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt=7):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i:i + seq_len], source[i + 1:i + 1 + seq_len].view(-1)


def language():
    words = torch.randint(0, 30, (900,), generator=torch.Generator().manual_seed(1))
    train_data, val_data = batchify(words[:700], 8), batchify(words[700:], 4)
    embedding, rnn, decoder = nn.Embedding(30, 12), nn.LSTM(12, 12), nn.Linear(12, 30)
    parameters = [*embedding.parameters(), *rnn.parameters(), *decoder.parameters()]
    for epoch in range(2):
        hidden = None
        for i in range(0, train_data.size(0) - 1, 7):
            data, targets = get_batch(train_data, i)
            hidden = None if hidden is None else tuple(h.detach() for h in hidden)
            output, hidden = rnn(embedding(data), hidden)
            loss = F.cross_entropy(decoder(output).view(-1, 30), targets)
            loss.backward()
            nn.utils.clip_grad_norm_(parameters, 0.25)
            with torch.no_grad():
                for p in parameters:
                    p.add_(p.grad, alpha=-0.5)
                    p.grad = None
        with torch.no_grad():
            data, targets = get_batch(val_data, 0)
            print("epoch %d  %.4f" % (epoch, F.cross_entropy(decoder(rnn(embedding(data))[0]).view(-1, 30), targets).item()))


if __name__ == "__main__":
    {"imagenet": imagenet, "mnist": mnist, "vae": mnist, "dcgan": dcgan, "wgan": wgan, "siamese": siamese, "hogwild": hogwild, "language": language}[HOW]()
