"""What a cached call costs over the eager function, beside ``torch.compile(backend="eager")``.

Ours is the dispatch alone: an entry point, native guards (TENSOR_MATCH on each argument), and cached code
that calls a graph function as generated code does; the rows named "optimize" are the whole product. Run ``python benchmarks/dispatch_call.py
[--impl ours|torch|both] [--case NAME]``; times are nanoseconds per call over eager, minimum of many
interleaved rounds.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FunctionType
from typing import Any

import torch

from dynamo.eval import _frame
from dynamo.eval.api import optimize
from dynamo.eval.dispatch import entry_point
from dynamo.guards import CheckFunctionManager, GuardBuilder, GuardScope, LocalSource

Function = Callable[..., Any]

ROUNDS = 60
CALLS = 500


def capture(function: Function, graph: Function, calls: list[tuple[Any, ...]], needs_hook: bool) -> Function:
    """An entry point of `function` with one capture per tuple of arguments, each calling `graph`."""
    assert isinstance(function, FunctionType)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    text = f"def {function.__name__}({', '.join(names)}):\n    return graph({', '.join(names)})[0]\n"
    waiting = list(calls)

    def callback(frame: _frame.FrameView, entries: int) -> _frame.GuardedCode | None:
        if frame.f_code is not function.__code__:
            return None
        namespace: dict[str, Any] = {}
        exec(compile(text, "<generated>", "exec"), namespace)
        scope = GuardScope(names, (), tuple(frame.args), None, frame.f_globals, frame.f_builtins)
        guards = [LocalSource(name).make_guard(GuardBuilder.TENSOR_MATCH) for name in names]
        code = namespace[function.__name__].__code__
        return _frame.GuardedCode(code, CheckFunctionManager(guards, scope), needs_hook=needs_hook)

    function.__globals__["graph"] = graph
    entry = entry_point(function, callback)
    for args in waiting:
        entry(*args)
    return entry


def fresh(function: Function) -> Function:
    """A copy with a code object and globals of its own, so that cases do not share captures."""
    assert isinstance(function, FunctionType)
    code = function.__code__
    return FunctionType(code.replace(co_name=code.co_name), dict(function.__globals__), code.co_name)


def add2(a: Any, b: Any) -> Any:
    return a + b


def add4(a: Any, b: Any, c: Any, d: Any) -> Any:
    return a + b


def add10(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Any:
    return a + b


@dataclass(frozen=True)
class Case:
    """One row: the function, the argument tuples called in turn, whether the hook is needed, and
    whether the whole product captures it instead of the dispatch alone."""

    name: str
    function: Function
    calls: list[tuple[Any, ...]]
    needs_hook: bool = False
    whole: bool = False


def toy(a: Any, b: Any) -> Any:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def shapes(count: int) -> list[tuple[Any, ...]]:
    """Pairs of float tensors that differ in rank or dtype, so that each needs a capture of its own."""
    dtypes = [torch.float32, torch.float64, torch.int32, torch.int64]
    return [
        (
            torch.ones((2,) * (1 + n // 4), dtype=dtypes[n % 4]),
            torch.ones((2,) * (1 + n // 4), dtype=dtypes[n % 4]),
        )
        for n in range(count)
    ]


def cases() -> Iterator[Case]:
    tensors = tuple(torch.ones(4) for _ in range(10))
    yield Case("f(a, b) = a + b", add2, [tensors[:2]])
    yield Case("the same, hook needed", add2, [tensors[:2]], needs_hook=True)
    yield Case("4 tensors", add4, [tensors[:4]])
    yield Case("10 tensors", add10, [tensors])
    yield Case("optimize: f(a, b) = a + b", add2, [tensors[:2]], whole=True)
    yield Case("optimize: toy, one break", toy, [tensors[:2]], whole=True)
    for count in (8, 32):
        yield Case(f"{count} entries in turn", add2, shapes(count))


def per_call(function: Function, calls: list[tuple[Any, ...]]) -> float:
    """Nanoseconds per call, the calls of `calls` in turn."""
    turns = max(1, CALLS // len(calls))
    start = time.perf_counter_ns()
    for _ in range(turns):
        for args in calls:
            function(*args)
    return (time.perf_counter_ns() - start) / (turns * len(calls))


def ours(case: Case) -> Function:
    if case.whole:
        return optimize("eager")(fresh(case.function))
    return capture(fresh(case.function), lambda *args: (args[0] + args[1],), case.calls, case.needs_hook)


def measure(case: Case, impl: str) -> dict[str, float]:
    """Minimum per implementation over interleaved rounds."""
    functions: dict[str, Function] = {"eager": case.function}
    if impl in ("ours", "both"):
        functions["ours"] = ours(case)
    if impl in ("torch", "both"):
        torch._dynamo.reset()
        torch._dynamo.config.recompile_limit = 64
        functions["torch"] = torch.compile(fresh(case.function), backend="eager", dynamic=False)
    best = dict.fromkeys(functions, float("inf"))
    for function in functions.values():
        per_call(function, case.calls)
    gc.disable()
    for _ in range(ROUNDS):
        for name, function in functions.items():
            best[name] = min(best[name], per_call(function, case.calls))
    gc.enable()
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impl", choices=["ours", "torch", "both"], default="both")
    parser.add_argument("--case", default="")
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{'case':28} {'eager':>8} {'ours over':>10} {'torch over':>11} {'torch/ours':>10}")
    for case in cases():
        if options.case not in case.name:
            continue
        best = measure(case, options.impl)
        mine, theirs = (best.get(name, float("nan")) - best["eager"] for name in ("ours", "torch"))
        print(f"{case.name:28} {best['eager']:8.0f} {mine:10.0f} {theirs:11.0f} {theirs / mine:10.1f}")


if __name__ == "__main__":
    main()
