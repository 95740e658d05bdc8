"""What the frame hook costs plain Python, and that none of it is left near a fully captured function.

Rows: an empty function called in a loop; the same after a captured function has run; under the hook with
the code skipped; under the hook with a capture (in place); through an entry point. Run
``python benchmarks/dispatch_hook.py``; nanoseconds per call, minimum of many interleaved rounds, and the
ratio to the first row.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable

from dynamo.eval import _frame
from dynamo.eval.dispatch import EntryPoint, capturing
from dynamo.guards import CheckFunctionManager, GuardScope

ROUNDS = 60
CALLS = 2_000


def plain(x: int) -> int:
    return x


def captured(x: int) -> int:
    return x


def loop(function: Callable[[int], int]) -> float:
    start = time.perf_counter_ns()
    for _ in range(CALLS):
        function(1)
    return (time.perf_counter_ns() - start) / CALLS


def callback(frame: _frame.FrameView, entries: int) -> _frame.GuardedCode | None:
    """Capture `captured` under no guards at all, skip everything else."""
    if frame.f_code is not captured.__code__:
        return None
    scope = GuardScope(("x",), (), (1,), None, frame.f_globals, frame.f_builtins)
    return _frame.GuardedCode(captured.__code__.replace(), CheckFunctionManager([], scope), needs_hook=False)


ENTRY = EntryPoint(captured, callback)


def near() -> float:
    ENTRY(1)
    return loop(plain)


def under_hook(function: Callable[[int], int]) -> float:
    with capturing(callback):
        return loop(function)


ROWS: dict[str, Callable[[], float]] = {
    "plain function": lambda: loop(plain),
    "near a captured function": near,
    "under the hook, skipped": lambda: under_hook(plain),
    "under the hook, captured": lambda: under_hook(captured),
    "entry point, captured": lambda: loop(ENTRY),
}


def main() -> None:
    ENTRY(1)
    best = dict.fromkeys(ROWS, float("inf"))
    gc.disable()
    for _ in range(ROUNDS):
        for name, row in ROWS.items():
            best[name] = min(best[name], row())
    gc.enable()
    base = best["plain function"]
    for name, value in best.items():
        print(f"{name:28} {value:8.1f} {value / base:6.2f}")


if __name__ == "__main__":
    main()
