# dptrace: start the hook, then let the user's own sitecustomize run as if this file were not here.
# Plain syntax on purpose: every Python that meets this folder on PYTHONPATH executes it, Python 2 too.
def _dptrace_boot():
    import os
    import sys
    here = os.path.dirname(os.path.abspath(__file__))
    ours = sys.modules.pop("sitecustomize", None)
    before = list(sys.path)
    sys.path[:] = [p for p in before if os.path.abspath(p or ".") != here]
    try:
        import sitecustomize  # noqa: F401  the user's or the distribution's, if there is one
    except ImportError as e:
        if getattr(e, "name", None) != "sitecustomize":
            raise  # theirs is broken: the same message as without us
    finally:
        for i, p in enumerate(before):  # ours back in its place; what theirs added stays
            if os.path.abspath(p or ".") == here and p not in sys.path:
                sys.path.insert(min(i, len(sys.path)), p)
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)
        if sys.version_info >= (3, 8):
            try:
                import dptrace_hook
                dptrace_hook.install()
            except Exception:  # nothing of the user's runs in here; without the hook the program runs as ever
                pass


_dptrace_boot()
