"""The training loop that the programs beside it share: a tiny model, a real optimizer, one printed line per epoch."""
import torch
from torch import nn

WIDTH = 8


def fit(loader, epochs=2, wrap=None, name="", mix=None):
    """Trains on batches of WIDTH numbers; wrap: DistributedDataParallel; mix changes a batch in the loop."""
    with torch.random.fork_rng(devices=[]):  # the first weights are alike everywhere; the data's seeds stay as they are
        torch.manual_seed(11)
        model = nn.Linear(WIDTH, 1)
    if wrap is not None:
        model = wrap(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(epochs):
        total = 0.0
        for batch in loader:
            batch = batch.float()
            if mix is not None:
                batch = mix(batch)
            loss = (model(batch) - batch.sum(1, keepdim=True)).pow(2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        say("%sepoch %d loss %.6f" % (name, epoch, total))


def validate(loader, name="validation"):
    total = 0.0
    with torch.no_grad():
        for batch in loader:
            total += batch.float().sum().item()
    say("%s %.6f" % (name, total))


def say(text):
    """Of the ranks only the first one talks: the order of their lines is nobody's promise."""
    if not (torch.distributed.is_available() and torch.distributed.is_initialized() and torch.distributed.get_rank()):
        print(text, flush=True)
