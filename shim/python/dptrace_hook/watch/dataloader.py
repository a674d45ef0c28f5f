"""What is wrapped in torch, and with what. Signatures: torch 1.8 to 2.15 (research notes in the project's docs)."""
import sys

from .. import after_import
from ..patch.load import native
from ..patch.wrapping import wrap
from ..record import ring
from ..read import identity
from . import copies, fetches, forks, iterators, pickles

# Watched from the moment that torch.utils.data is there.
_LATER = {
    "torchdata.stateful_dataloader.stateful_dataloader": "watch.dataloader.stateful",
    "torch.optim.optimizer": "watch.training.watch",
    "torch.compiler": "watch.steps.watch_compiler",
    "torch._dynamo.trace_rules": "watch.steps.not_traced",
    "torch.distributed.distributed_c10d": "watch.collectives.watch",
    "torch.distributed.device_mesh": "watch.dist.watch_mesh",
    "torch.distributed.algorithms.join": "watch.dist.watch_join",
    "torch.nn.parallel.distributed": "watch.dist.watch_ddp",
    "torch.distributed.fsdp.fully_sharded_data_parallel": "watch.dist.watch_fsdp",
    "torch.distributed.fsdp._fully_shard._fully_shard": "watch.dist.watch_fully_shard",
    "torch.distributed._composable.fsdp.fully_shard": "watch.dist.watch_fully_shard",
    "multiprocessing.pool": "watch.forks.watch_pool",
    "concurrent.futures.process": "watch.forks.watch_executor",
    "cv2": "watch.opencv.watch",
    "torch.quasirandom": "watch.quasi.watch",
    "scipy.stats._qmc": "watch.quasi.watch",
}


def activate(module):
    """torch.utils.data was imported."""
    if module.__dict__.get("_dptrace"):
        return
    module._dptrace = True
    loader = sys.modules["torch.utils.data.dataloader"]
    base, many, single = loader._BaseDataLoaderIter, loader._MultiProcessingDataLoaderIter, loader._SingleProcessDataLoaderIter
    wrap(loader.DataLoader, "__init__", after=iterators.loader_made)
    wrap(base, "__init__", after=iterators.base_made)
    wrap(base, "_next_index", after=native.indexed)
    multiprocessing_iterator(many)
    single_iterator(single)
    utils = loader._utils
    worker_reloaded(utils.worker)
    wrap(utils.fetch._BaseDatasetFetcher, "__init__", after=fetches.made)
    for fetcher in utils.fetch._MapDatasetFetcher, utils.fetch._IterableDatasetFetcher:
        wrap(fetcher, "fetch", fetches.before_fetch, fetches.after_fetch, fetches.failed)
    wrap(sys.modules["torch.utils.data.distributed"].DistributedSampler, "set_epoch", after=identity.epoch_set)
    forks.watch()
    pickles.watch()
    for name, action in _LATER.items():
        after_import(name, action)
    copies.watch()
    ring.ring.make() if not ring.ring.open else None


def multiprocessing_iterator(cls):
    many = iterators.MultiProcessing
    wrap(cls, "__init__", many.begin, many.begun, many.not_begun)
    wrap(cls, "_reset", before=many.reset)
    wrap(cls, "_try_put_index", iterators.placing, iterators.placed)
    wrap(cls, "_try_get_data", after=iterators.arriving)
    wrap(cls, "_next_data", iterators.calling, iterators.handing, iterators.failed)
    wrap(cls, "_mark_worker_as_unavailable", before=many.mark_worker_as_unavailable)
    wrap(cls, "_shutdown_workers", many.shutdown, many.has_shut_down, many.has_not_shut_down)


def single_iterator(cls):
    """num_workers=0."""
    one = iterators.SingleProcess
    wrap(cls, "__init__", one.begin, one.begun, one.not_begun)
    wrap(cls, "_next_data", iterators.calling, iterators.handing, iterators.failed)


def worker_reloaded(module):
    """torch.utils.data._utils.worker was imported, or reloaded (litdata does that inside its workers)."""
    if "torch.utils.data" in sys.modules and sys.modules["torch.utils.data"].__dict__.get("_dptrace"):
        serving(module)


def serving(module):
    wrap(module, "_worker_loop", fetches.serve, fetches.served, fetches.broke_off)


def stateful(module):
    """torchdata's StatefulDataLoader: __init__, worker loop and iterators of its own, on torch's base classes."""
    wrap(module.StatefulDataLoader, "__init__", after=iterators.loader_made)
    multiprocessing_iterator(module._StatefulMultiProcessingDataLoaderIter)
    single_iterator(module._StatefulSingleProcessDataLoaderIter)
    worker = sys.modules["torchdata.stateful_dataloader.worker"]
    original = worker.__dict__.get("_worker_loop")
    serving(worker)
    if module.__dict__.get("_worker_loop") is original:  # one object in both places, or pickle finds another than it was given
        module._worker_loop = worker._worker_loop
