"""Replacing functions and methods by wrappers. A leaf: nothing of this package is imported for it."""


def dress(new, original):
    """Makes a wrapper pass for what it wraps: also by pickle, which names worker functions by module and qualname."""
    for attribute in ("__module__", "__name__", "__qualname__", "__doc__"):
        try:
            setattr(new, attribute, getattr(original, attribute))
        except AttributeError:
            pass
    new.__wrapped__ = original
    return new


def wrap(owner, name, make):
    """Replaces owner.name by make(original). Once."""
    original = owner.__dict__.get(name)
    if original is None or getattr(original, "_dptrace", False):
        return
    wrapper = make(original)
    wrapper.__dict__.update(getattr(original, "__dict__", {}))  # torch's fully_shard calls its own fully_shard.state()
    wrapper._dptrace = True
    setattr(owner, name, dress(wrapper, original))


def around(function):
    """A maker for wrap, of wrappers that call function(original, *args, **kwargs): where no microsecond counts."""
    def make(original):
        def wrapper(*args, **kwargs):
            return function(original, *args, **kwargs)
        return wrapper
    return make
