"""What is remembered of objects of the program's: outside of them, where no vars(), no copy and no __setattr__ meets it."""
import weakref


class _Reference(weakref.ref):
    __slots__ = ("number",)


class Notes:
    """By the id of an object, as long as it lives. A copy of it has none of its own."""

    def __init__(self):
        self.kept = kept = {}  # id -> (weak reference, what is remembered)

        def gone(reference):
            kept.pop(reference.number, None)
        self.gone = gone

    def of(self, obj):
        entry = self.kept.get(id(obj))
        return entry[1] if entry is not None and entry[0]() is obj else None

    def put(self, obj, what):
        reference = _Reference(obj, self.gone)
        reference.number = id(obj)
        self.kept[id(obj)] = reference, what
        return what

    def forget(self, obj):
        if self.of(obj) is not None:
            del self.kept[id(obj)]

    def all(self):
        """(object, what is remembered) of those that live."""
        pairs = [(reference(), what) for reference, what in list(self.kept.values())]
        return [pair for pair in pairs if pair[0] is not None]
