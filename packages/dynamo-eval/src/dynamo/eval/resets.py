"""What `reset` forgets: each module that remembers something between captures says how to forget it."""

from collections.abc import Callable
from typing import Final, TypeVar

_Forget = TypeVar("_Forget", bound=Callable[[], None])
_FORGETTERS: Final[list[Callable[[], None]]] = []


def on_reset(forget: _Forget) -> _Forget:
    """Call the decorated function with every `reset`."""
    _FORGETTERS.append(forget)
    return forget


def forget_all() -> None:
    """Forget what the modules loaded so far remember."""
    for forget in _FORGETTERS:
        forget()
