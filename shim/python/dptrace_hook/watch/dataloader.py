"""What is wrapped in torch, and with what. Signatures: torch 1.8 to 2.15 (research notes in the project's docs)."""
import sys

from .. import after_import
from ..patch.wrapping import around, dress, wrap
from ..record import guard, ring
from ..read import identity
from . import fetches, forks, iterators, pickles

# Watched from the moment that torch.utils.data is there.
_LATER = {
    "torchdata.stateful_dataloader.stateful_dataloader": "watch.dataloader.stateful",
    "torch.optim.optimizer": "watch.training.watch",
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
    wrap(loader.DataLoader, "__init__", around(iterators.loader_init))
    wrap(base, "__init__", around(iterators.base_init))
    wrap(base, "_next_index", iterators.next_index)
    multiprocessing_iterator(many)
    single_iterator(single)
    utils = loader._utils
    worker_reloaded(utils.worker)
    wrap(utils.fetch._BaseDatasetFetcher, "__init__", around(fetcher_init))
    wrap(utils.fetch._MapDatasetFetcher, "fetch", fetches.fetch)
    wrap(utils.fetch._IterableDatasetFetcher, "fetch", fetches.fetch)
    wrap(sys.modules["torch.utils.data.distributed"].DistributedSampler, "set_epoch", around(identity.set_epoch))
    forks.watch()
    pickles.watch()
    for name, action in _LATER.items():
        after_import(name, action)
    ring.ring.make() if not ring.ring.open else None


def multiprocessing_iterator(cls):
    many = iterators.MultiProcessing
    for name, make in (("__init__", around(many.init)), ("_reset", around(many.reset)), ("_try_put_index", many.try_put_index),
                       ("_try_get_data", many.try_get_data), ("_next_data", iterators.next_data(-2, many.tell)),
                       ("_mark_worker_as_unavailable", around(many.mark_worker_as_unavailable)),
                       ("_shutdown_workers", around(many.shutdown_workers))):
        wrap(cls, name, make)


def single_iterator(cls):
    """num_workers=0."""
    wrap(cls, "__init__", around(iterators.init_single))
    wrap(cls, "_next_data", iterators.next_data(-1, iterators.tell_single))


def fetcher_init(original, self, *args, **kwargs):
    """_BaseDatasetFetcher.__init__(dataset, auto_collation, collate_fn, drop_last), in all versions."""
    box, inner = [], args
    try:
        if len(args) > 2:
            inner = args[:2] + (dress(fetches.timed(box, args[2]), args[2]),) + args[3:]
    except Exception as e:
        if guard.theirs(e):
            raise
    original(self, *inner, **kwargs)
    try:
        if inner is not args:
            fetches.attach(self, box, args[0], args[2])
    except Exception as e:
        if guard.theirs(e):
            raise


def worker_reloaded(module):
    """torch.utils.data._utils.worker was imported, or reloaded (litdata does that inside its workers)."""
    if "torch.utils.data" in sys.modules and sys.modules["torch.utils.data"].__dict__.get("_dptrace"):
        wrap(module, "_worker_loop", around(fetches.serve))


def stateful(module):
    """torchdata's StatefulDataLoader: __init__, worker loop and iterators of its own, on torch's base classes."""
    wrap(module.StatefulDataLoader, "__init__", around(iterators.loader_init))
    multiprocessing_iterator(module._StatefulMultiProcessingDataLoaderIter)
    single_iterator(module._StatefulSingleProcessDataLoaderIter)
    worker = sys.modules["torchdata.stateful_dataloader.worker"]
    original = worker.__dict__.get("_worker_loop")
    wrap(worker, "_worker_loop", around(fetches.serve))
    if module.__dict__.get("_worker_loop") is original:  # one object in both places, or pickle finds another than it was given
        module._worker_loop = worker._worker_loop
