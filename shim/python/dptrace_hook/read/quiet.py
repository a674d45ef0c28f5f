"""torch, asked so that no mode and no subclass of the program's sees it: the shape of a tensor is a call of __torch_function__."""
import sys

_count = []  # torch's functions that tell how many modes are in force: of functions, of operations


def _bind():
    c = sys.modules["torch"]._C
    known = c.__dict__
    _count[:] = (known.get("_len_torch_function_stack") or (_one if "_get_torch_function_mode" in known else int),
                 known.get("_len_torch_dispatch_stack") or (_one if "_DisableTorchDispatch" in known else int))


def unseen():
    """Reports whether nobody sees what is asked of a tensor of torch's own class: of attributes alone, which are no operations."""
    if not _count:
        _bind()
    return not _count[0]()


def modes_in_force():
    """The function of torch's that says so."""
    if not _count:
        _bind()
    return _count[0]


def quiet():
    """A Quiet(), or what is enough where no mode is in force."""
    return sys.modules["torch"]._C.DisableTorchFunction() if unseen() and not _count[1]() else Quiet()


def _one():
    """torch 1.12, where there is one mode or none, and of operations nobody can tell."""
    return True


class Quiet:
    """with Quiet(): neither __torch_function__ nor __torch_dispatch__ of the program's is called."""
    __slots__ = ("function", "dispatch", "mode")

    def __enter__(self):
        torch = sys.modules["torch"]
        c = torch._C
        self.function, self.dispatch, self.mode = c.DisableTorchFunction(), None, None
        self.function.__enter__()
        known = c.__dict__
        if "_set_torch_function_mode" in known:  # torch 1.12 and 1.13, where modes are not disabled by it
            if "_get_torch_function_mode" in known:
                self.mode = c._get_torch_function_mode()
            elif c._is_torch_function_mode_enabled():
                self.mode = torch.overrides._TorchFunctionStackMode()
            if self.mode is not None:
                c._set_torch_function_mode(None)
        if "_DisableTorchDispatch" in known:
            self.dispatch = c._DisableTorchDispatch()  # up to torch 1.13 disabled for as long as this lives
            if hasattr(self.dispatch, "__enter__"):
                self.dispatch.__enter__()

    def __exit__(self, *raised):
        dispatch, self.dispatch = self.dispatch, None
        if hasattr(dispatch, "__exit__"):
            dispatch.__exit__(*raised)
        del dispatch
        if self.mode is not None:
            sys.modules["torch"]._C._set_torch_function_mode(self.mode)
        self.function.__exit__(*raised)
