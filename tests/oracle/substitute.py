"""Capture without a translator: a callback that puts the code of one function in place of another's.

What the frame hook and the entry points do with captures is tested with these, on any functions.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType
from typing import Any

from dynamo.eval import _frame
from dynamo.eval._frame import FrameView, GuardedCode
from dynamo.eval.dispatch import CaptureCallback


@contextlib.contextmanager
def hooked(callback: CaptureCallback | None) -> Iterator[None]:
    """The hook with this callback, for the calls in a ``with`` block."""
    previous = _frame.set_eval_frame(callback)
    try:
        yield
    finally:
        _frame.set_eval_frame(previous)


class Guards:
    """Guards without a native program: `check_fn` alone decides, until `valid` is set to False."""

    def __init__(self, check_fn: Callable[..., bool]) -> None:
        self._check_fn = check_fn
        self.valid = True

    def check_fn(self, *args: object) -> bool:
        return self.valid and self._check_fn(*args)


def always(*args: object) -> bool:
    """Guards that hold for every call."""
    return True


def guarded(
    replacement: Callable[..., Any],
    check_fn: Callable[..., bool] = always,
    *,
    needs_hook: bool = True,
) -> GuardedCode:
    """A capture that runs the code of `replacement` where `check_fn` holds."""
    assert isinstance(replacement, FunctionType)
    code = replacement.__code__
    return GuardedCode(code.replace(co_name=code.co_name), Guards(check_fn), needs_hook=needs_hook)


class Substitutes:
    """Capture callback: for a function given to `put`, the next of its captures; any other code is skipped.

    Attributes:
        seen: the frames of the test's own file that were shown, with the number of captures at that time.
    """

    def __init__(self) -> None:
        self._file = sys._getframe(1).f_code.co_filename
        self.seen: list[tuple[FrameView, int]] = []
        self._captures: dict[CodeType, list[GuardedCode | BaseException | None]] = {}

    def put(self, function: Callable[..., Any], *captures: GuardedCode | BaseException | None) -> None:
        assert isinstance(function, FunctionType)
        self._captures[function.__code__] = list(captures)

    def __call__(self, frame: FrameView, entries: int) -> GuardedCode | None:
        if frame.f_code.co_filename == self._file:
            self.seen.append((frame, entries))
        waiting = self._captures.get(frame.f_code)
        capture = waiting.pop(0) if waiting else None
        if isinstance(capture, BaseException):
            raise capture
        return capture

    @property
    def names(self) -> list[str]:
        """Names of the functions that were shown, in order."""
        return [frame.f_code.co_name for frame, _ in self.seen]
