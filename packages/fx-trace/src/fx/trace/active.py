"""Which tracer the present thread is running, and the replacements of ``nn.Module`` methods that ask for it.

The replacements are shared by all threads; in a thread that does not trace they cost one look-up and do what the original
does. Traces nest: the innermost one sees the calls.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

import torch

from fx.trace.patching import Patches

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["ModuleObserver", "activated", "is_tracing", "patch_modules"]


class ModuleObserver(Protocol):
    """Sees what the traced program does with modules."""

    def module_called(
        self, module: torch.nn.Module, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """``module`` is called; ``call`` is what a call does without a trace."""
        ...

    def module_attribute_read(self, name: str, value: Any) -> Any:
        """A parameter, buffer or submodule was read; give what the program shall see."""
        ...


class _Thread(threading.local):
    observer: ModuleObserver | None = None


_thread: Final = _Thread()


def is_tracing() -> bool:
    """Whether the present thread is tracing symbolically."""
    return _thread.observer is not None


@contextmanager
def activated(observer: ModuleObserver) -> Iterator[None]:
    """Let ``observer`` see the modules of this thread."""
    before = _thread.observer
    _thread.observer = observer
    try:
        yield
    finally:
        _thread.observer = before


def _observed_call(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
        observer = _thread.observer
        if observer is None:
            return original(module, *args, **kwargs)
        return observer.module_called(module, original, args, kwargs)

    return call


def _observed_getattr(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def getattribute(module: torch.nn.Module, name: str) -> Any:
        value = original(module, name)
        observer = _thread.observer
        return value if observer is None else observer.module_attribute_read(name, value)

    return getattribute


def patch_modules(patches: Patches) -> None:
    """Let module calls and reads of parameters reach the thread's observer."""
    patches.replace(torch.nn.Module, "__call__", _observed_call)
    patches.replace(torch.nn.Module, "__getattr__", _observed_getattr)
