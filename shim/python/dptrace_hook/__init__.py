"""The part of dptrace that lives in the user's Python. Pure Python, no dependency.

This file is all that is loaded into a program that never imports torch, but where it starts other programs: a meta path
finder that waits for torch.utils.data. PROTOCOL.md says what the rest writes down.
"""
import os
import sys
import time
from _thread import get_ident

# Modules to tend right after they have run, and how: a function of this package, as "layer.module.function".
# Only these are watched until torch.utils.data is there; watch.dataloader.activate() adds the others.
WATCHED = {
    "subprocess": "watch.children.watch_subprocess",
    "multiprocessing.process": "watch.children.watch_process",
    "torch.utils.data": "watch.dataloader.activate",
    "torch.utils.data._utils.worker": "watch.dataloader.worker_reloaded",
}


class Finder:
    """First on sys.meta_path: finds the module with the other finders and calls us after it has run.

    It shadows exec_module on the loader *instance* and takes the shadow away when it is used, so that the types of
    loader and spec, resources, sources and reload() stay as they are.
    """

    def __init__(self):
        self.busy = set()

    def find_spec(self, name, path=None, target=None):
        action = WATCHED.get(name)
        if action is None:
            return None
        me = (get_ident(), name)
        if me in self.busy:
            return None
        self.busy.add(me)
        try:
            for finder in list(sys.meta_path):
                find = None if finder is self else getattr(finder, "find_spec", None)
                spec = find(name, path, target) if find else None
                if spec is not None:
                    break
            else:
                return None
        finally:
            self.busy.discard(me)
        loader = spec.loader
        run = getattr(loader, "exec_module", None)
        if run is None:
            return spec

        def exec_module(module):
            vars(loader).pop("exec_module", None)
            run(module)
            perform(action, module)

        try:
            loader.exec_module = exec_module
        except (AttributeError, TypeError):  # a loader without attributes of its own: its modules stay unseen
            pass
        return spec


_kept = []


def _keep_compiled():
    """Has what Python compiles of this package, for 30 ms and more, kept in its folder, which is the recorder's and nobody else's:
    also where the program wants none of its own files kept (PYTHONDONTWRITEBYTECODE, as in many images)."""
    import marshal
    from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
    from importlib.util import MAGIC_NUMBER, cache_from_source

    class Loader(SourceFileLoader):
        facts = None

        def path_stats(self, path):
            self.facts = super().path_stats(path)
            return self.facts

        def source_to_code(self, data, path, **more):
            code = super().source_to_code(data, path, **more)
            if self.facts is not None:
                numbers = 0, int(self.facts["mtime"]) & 0xFFFFFFFF, self.facts["size"]  # PEP 552: known by the time of its source
                head = MAGIC_NUMBER + b"".join([n.to_bytes(4, "little") for n in numbers])
                self.set_data(cache_from_source(path), head + marshal.dumps(code))  # or not, in a folder that is not to be written to
            return code

    _kept.append(True)
    here = __path__[0]
    for folder in [here] + [os.path.join(here, layer) for layer in ("patch", "read", "record", "watch")]:
        sys.path_importer_cache[folder] = FileFinder(folder, (Loader, SOURCE_SUFFIXES))


def perform(action, module):
    """Runs one of our functions on a freshly imported module; fails open."""
    try:
        from .record import guard
    except ImportError:  # our folder has been removed under a living process
        return
    try:
        if sys.dont_write_bytecode and sys.implementation.cache_tag and not _kept:
            _keep_compiled()
        home, _, function = action.rpartition(".")
        getattr(__import__(__name__ + "." + home, fromlist=[home]), function)(module)
    except Exception as e:
        if guard.theirs(e):
            raise


def after_import(name, action):
    """From now on, `action` after each import of `name`; at once if it is loaded already."""
    WATCHED[name] = action
    module = sys.modules.get(name)
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        perform(action, module)


def install():
    """Puts the finder in front, once per interpreter."""
    if any(type(f).__name__ == "Finder" and type(f).__module__ == __name__ for f in sys.meta_path):
        return
    sys.meta_path.insert(0, Finder())
    os.system = _system(os.system)
    for name in list(WATCHED):
        if name in sys.modules:  # attached late
            perform(WATCHED[name], sys.modules[name])


def _ran(status, begin, traceback=BaseException.__traceback__.__get__, ours=("<frozen ", os.path.dirname(__file__))):
    """os.system() has returned. As the interpreter ends, nothing can be imported, and the names above are None."""
    try:
        from .record import guard
        from .watch import children
    except Exception as e:
        tb = traceback(e)
        while tb.tb_next is not None:
            tb = tb.tb_next
        if not tb.tb_frame.f_code.co_filename.startswith(ours):
            raise  # of a signal handler: a child has ended
        return
    guard.closing(children.ran)(status, begin)


def _system(original):
    clock, told = time.monotonic_ns, _ran

    def system(command):
        begin = clock()
        status = original(command)
        if status:
            told(status, begin)
        return status
    system.__module__, system.__doc__, system.__wrapped__ = original.__module__, original.__doc__, original
    return system
