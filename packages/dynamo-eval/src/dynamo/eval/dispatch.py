"""Ways into capture: callables that check guards themselves, and regions under the frame hook.

An entry point (`dynamo.eval._frame.EntryPoint`) costs a few tens of nanoseconds over the function and
leaves ordinary Python at full speed, because the frame hook is set only while there is something to
capture. A region (`capturing`) sets the hook for all calls in a ``with`` block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from types import NotImplementedType
from typing import Any, ParamSpec, TypeAlias, TypeVar, overload

from dynamo.eval._frame import EntryPoint as EntryPoint
from dynamo.eval._frame import FrameView, GuardedCode, set_eval_frame
from dynamo.eval._frame import FunctionEntryPoint as FunctionEntryPoint

_P = ParamSpec("_P")
_R = TypeVar("_R")

CaptureCallback: TypeAlias = Callable[[FrameView, int], GuardedCode | NotImplementedType | None]
"""Shown a frame that no capture fits, and how many captures its code has: a new one, None to skip it from now on, or
``NotImplemented`` to run it, and what it calls, plainly this once."""


@overload
def entry_point(
    function: classmethod[Any, _P, _R], callback: CaptureCallback
) -> classmethod[Any, _P, _R]: ...
@overload
def entry_point(function: Callable[_P, _R], callback: CaptureCallback) -> Callable[_P, _R]: ...
def entry_point(function: Any, callback: CaptureCallback) -> Any:  # one of the overloads
    """A callable like `function` whose calls run captures, and which asks `callback` where none fits.

    Functions and bound methods are dispatched without the hook; class and static methods and properties
    keep their kind; an entry point is unwrapped first, so that its callable is not captured twice; any other
    callable runs under the hook.

    Raises:
        TypeError: `function` cannot be called.
    """
    return _rewrap(function, callback)


@overload
def uncaptured(function: classmethod[Any, _P, _R]) -> classmethod[Any, _P, _R]: ...
@overload
def uncaptured(function: Callable[_P, _R]) -> Callable[_P, _R]: ...
def uncaptured(function: Any) -> Any:  # one of the overloads
    """A callable like `function` that runs, with all that it calls, without capture.

    Raises:
        TypeError: `function` cannot be called.
    """
    return _rewrap(function, None)


def is_wrappable(value: object) -> bool:
    """Whether `entry_point` and `uncaptured` take it: a callable, or a descriptor of one."""
    return callable(value) or isinstance(value, classmethod | staticmethod | property)


def _rewrap(function: Any, callback: CaptureCallback | None) -> Any:  # any callable or descriptor of one
    if isinstance(function, classmethod | staticmethod):
        return type(function)(_rewrap(function.__func__, callback))
    if isinstance(function, property):
        made = function
        if function.fget is not None:
            made = made.getter(_rewrap(function.fget, callback))
        if function.fset is not None:
            made = made.setter(_rewrap(function.fset, callback))
        if function.fdel is not None:
            made = made.deleter(_rewrap(function.fdel, callback))
        return made
    if isinstance(function, EntryPoint):
        return _rewrap(function.__wrapped__, callback)
    return EntryPoint(function, callback)


@contextlib.contextmanager
def capturing(callback: CaptureCallback | None) -> Iterator[None]:
    """Show every function frame that starts in this thread to `callback`; with None, capture nothing.

    The calls inside the ``with`` block are meant; the block's own frame has already started.
    """
    previous = set_eval_frame(callback)
    try:
        yield
    finally:
        set_eval_frame(previous)
