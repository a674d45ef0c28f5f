"""Moves of a quasi-random engine that are no draws: counted, as its state does not tell them from draws."""
from ..patch import wrapping
from ..read import quasi


def watch(module):
    """torch.quasirandom or scipy.stats._qmc was imported."""
    for name in ("SobolEngine", "QMCEngine") + quasi.SCIPY:
        cls = module.__dict__.get(name)
        for method in ("fast_forward", "reset") if issubclass(type(cls), type) else ():
            wrapping.wrap(cls, method, before=_jump)


def _jump(args, kwargs):
    quasi.jumps[0] += 1
