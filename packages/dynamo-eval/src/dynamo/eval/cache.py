"""What is kept about a code object: how many captures it may have, why it was captured again, what goes when.

The captures themselves live in the extra slot of the code object (`dynamo.eval._frame`), the latest hit
first, and die with it. This module is the policy: limits as a value that the caller passes, reasons as
sentences, and the end of a capture as soon as an object that its guards refer to is gone.

A capture is also dropped where a search meets it after its guards became invalid, and before each new
capture; so one whose owner died holds its graph until then at the latest.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import CellType, CodeType
from typing import Protocol, runtime_checkable

from dynamo.eval import _frame
from dynamo.eval._frame import FrameView as FrameView
from dynamo.eval._frame import GuardedCode as GuardedCode
from dynamo.eval._frame import cache_entries as cache_entries
from dynamo.eval._frame import code_stats as code_stats
from dynamo.eval._frame import reset_code as reset_code
from dynamo.eval._frame import skip_code as skip_code


@dataclass(frozen=True, slots=True)
class CacheLimits:
    """How often one code object is captured.

    Attributes:
        entries: captures that it may hold at one time.
        accumulated: captures that were ever made of it, those since dropped included.
    """

    entries: int = 8
    accumulated: int = 256


@runtime_checkable
class Invalidating(Protocol):
    """Guards that tell when an object that they refer to has died."""

    def on_invalidate(self, callback: Callable[[], None], /) -> None:
        """Call back once, when the guards become invalid."""


def limit_reached(code: CodeType, limits: CacheLimits) -> str | None:
    """Why this code is not to be captured again, as a sentence; None while it may be."""
    counters = code_stats(code)
    if counters["entries"] >= limits.entries:
        return (
            f"{code.co_qualname} has {counters['entries']} captures, the limit (cache_size_limit); "
            f"it runs uncaptured where none of them fits"
        )
    if counters["captures"] >= limits.accumulated:
        return (
            f"{code.co_qualname} has been captured {counters['captures']} times, the limit "
            f"(accumulated_cache_size_limit); it runs uncaptured where no capture fits"
        )
    return None


def release_when_invalid(guarded: GuardedCode) -> None:
    """Free the capture as soon as its guards become invalid, where they can tell (`Invalidating`)."""
    manager: object = guarded.manager
    if isinstance(manager, Invalidating):
        reference = weakref.ref(guarded)

        def release() -> None:
            alive = reference()
            if alive is not None:
                alive.release()

        manager.on_invalidate(release)


@runtime_checkable
class Explaining(Protocol):
    """Guards that can say which of them fails."""

    def explain_failure(
        self,
        args: Sequence[object],
        closure: Sequence[CellType] | None = None,
        globals: Mapping[str, object] | None = None,
        builtins: Mapping[str, object] | None = None,
    ) -> str:
        """The first guard that does not hold, in words; empty when all hold."""


def why_missed(frame: FrameView) -> tuple[str, ...]:
    """For each capture of the frame's code, the latest hit first: the guard that fails for it, in words.

    Captures whose guards hold (the frame came before they were made) or cannot explain are left out.
    """
    managers: list[object] = [guarded.manager for guarded in cache_entries(frame.f_code)]
    words = [
        manager.explain_failure(frame.args, frame.closure, frame.f_globals, frame.f_builtins)
        for manager in managers
        if isinstance(manager, Explaining)
    ]
    return tuple(filter(None, words))


def note_recompile(code: CodeType, reason: str) -> None:
    """Keep why this code was captured again; `recompile_reasons` gives it back."""
    _frame.add_reason(code, reason)


def recompile_reasons(code: CodeType) -> tuple[str, ...]:
    """Why this code was captured again, oldest first."""
    return tuple(_frame.reasons(code))
