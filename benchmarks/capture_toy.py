"""What capture costs beside ``torch.compile(backend="eager")``: again after a reset, and first in a fresh process.

Rows: the founding example (one break, so three codes) captured again after a reset; a function of a hundred operators
captured again; in fresh processes, importing the package beyond torch, the first name used of it, and the first call of
the example. Warm rows are interleaved in one process and give the minimum; fresh rows alternate processes, with compiled
modules at hand, and give the median. Run ``python benchmarks/capture_toy.py [--impl ours|torch|both] [--rounds N] [--processes N]``.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

Function = Callable[..., Any]
IMPORTS = {"ours": "import dynamo.eval; dynamo.eval.optimize", "torch": "import torch._dynamo"}
MAKES = {
    "ours": 'import dynamo.eval; captured = dynamo.eval.optimize("eager")(toy)',
    "torch": 'captured = torch.compile(toy, backend="eager", dynamic=False)',
}
FRESH = """
import time, torch
def toy(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b
a, b = torch.randn(10), torch.ones(10)
toy(a, b)
start = time.perf_counter()
{work}
print(time.perf_counter() - start)
"""


def toy(a: Any, b: Any) -> Any:
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b


def hundred(a: Any, b: Any) -> Any:
    for _ in range(25):
        a = torch.relu(a * b) + torch.tanh(b)
    return a


def ours(function: Function) -> tuple[Function, Callable[[], None]]:
    import dynamo.eval as dynamo

    return dynamo.optimize("eager")(function), dynamo.reset


def peer(function: Function) -> tuple[Function, Callable[[], None]]:
    import torch._dynamo

    return torch.compile(function, backend="eager", dynamic=False), torch._dynamo.reset


MAKERS = {"ours": ours, "torch": peer}


def warm(function: Function, impls: list[str], rounds: int) -> dict[str, float]:
    """Seconds of the first call after a reset, at least."""
    args = (torch.randn(10), torch.ones(10))
    made = {name: MAKERS[name](function) for name in impls}
    best = dict.fromkeys(impls, float("inf"))
    for turn in range(rounds + 1):
        for name, (captured, reset) in made.items():
            reset()
            start = time.perf_counter()
            captured(*args)
            if turn:
                best[name] = min(best[name], time.perf_counter() - start)
    return best


def fresh(works: dict[str, str], impls: list[str], processes: int, cache: str) -> dict[str, float]:
    """Seconds of a piece of work in a new process, the median; compiled modules are kept in the folder `cache`."""
    times: dict[str, list[float]] = {name: [] for name in impls}
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": cache}
    for turn in range(processes + 1):
        for name in impls:
            command = [sys.executable, "-c", FRESH.format(work=works[name])]
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
            if turn:
                times[name].append(float(done.stdout))
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impl", choices=["ours", "torch", "both"], default="both")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=3)
    options = parser.parse_args()
    torch.set_num_threads(1)
    impls = ["ours", "torch"] if options.impl == "both" else [options.impl]
    calls = {name: f"{made}\ncaptured(a, b)" for name, made in MAKES.items()}
    with tempfile.TemporaryDirectory() as cache:
        rows = {
            "import beyond torch": lambda: fresh(IMPORTS, impls, options.processes, cache),
            "first call, import included": lambda: fresh(calls, impls, options.processes, cache),
            "toy after a reset": lambda: warm(toy, impls, options.rounds),
            "100 operators after a reset": lambda: warm(hundred, impls, options.rounds),
        }
        print(f"{'ms':30} {'ours':>9} {'torch':>9} {'ours/torch':>10}")
        for title, run in rows.items():
            found = run()
            mine, theirs = (found.get(name, float("nan")) for name in ("ours", "torch"))
            print(f"{title:30} {mine * 1e3:9.2f} {theirs * 1e3:9.2f} {mine / theirs:10.3f}", flush=True)


if __name__ == "__main__":
    main()
