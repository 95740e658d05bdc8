"""Loading the modules that capture needs, when the first frame asks for them and not before.

``import dynamo.eval`` and `optimize` are cheap; what decodes, follows and writes bytecode comes with the first
capture. A load that is cut short (by an interrupt, or deep in a recursion) leaves nothing half registered behind: the
next one begins again.
"""

import contextlib
import gc
import sys
from collections.abc import Iterator
from typing import Final

_PREFIXES: Final = ("dynamo.", "fx.")


@contextlib.contextmanager
def loading() -> Iterator[None]:
    """Import inside the ``with`` block without garbage collections: after ``import torch`` each takes some 50 ms."""
    collecting = gc.isenabled()
    before = frozenset(sys.modules)
    gc.disable()
    try:
        yield
    except BaseException:
        _unload(before)
        raise
    finally:
        if collecting:
            gc.enable()


def _unload(before: frozenset[str]) -> None:
    """Take out our Python modules that came since: registries are filled while modules load, and only once."""
    for name in sys.modules.keys() - before:
        source = getattr(sys.modules[name], "__file__", None) or ""
        if name.startswith(_PREFIXES) and source.endswith(".py"):
            del sys.modules[name]
