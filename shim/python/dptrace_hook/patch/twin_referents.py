"""Of many objects, or of what they refer to, those of some types: in Python what shim/native/referents.c does."""
import gc
from itertools import compress


def picked(objects, always, untracked):
    """Those whose type is one of `always`, or one of `untracked` if the garbage collector does not track them: tuples of types,
    which are compared by what they are and not asked."""
    if type(objects) is not list or not isinstance(always, tuple) or not isinstance(untracked, tuple):
        raise TypeError("wanted: a list, and two tuples of types")
    surely = set(map(id, always))
    types = surely.union(map(id, untracked))
    found = compress(objects, map(types.__contains__, map(id, map(type, objects))))
    return [o for o in found if id(type(o)) in surely or not gc.is_tracked(o)]


def referents(objects, always, untracked):
    """The same of what gc.get_referents() gives of them."""
    if type(objects) is not list:
        raise TypeError("wanted: a list, and two tuples of types")
    return picked(gc.get_referents(*objects), always, untracked)
