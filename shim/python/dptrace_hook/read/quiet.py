"""torch, asked so that no mode and no subclass of the program's sees it: the shape of a tensor is a call of __torch_function__."""
import sys


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
