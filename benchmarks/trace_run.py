"""What do running, transforming and annotating a graph node by node cost, beside torch.fx?

    python benchmarks/trace_run.py [--impl ours|torch|both] [--count N] [--rounds R]

Processor time per node in microseconds, minimum of R interleaved rounds. Interpreter.run is given over calling the GraphModule.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.fx
from torch.fx.passes.shape_prop import ShapeProp as TorchShapeProp

import fx.trace
from fx.trace.passes import ShapeProp


def program(count: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for _ in range(count // 4):
            x = torch.neg(x + 1).abs().mul(2)
        return x

    return run


def elapsed(run: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    start = time.process_time()
    run()
    taken = time.process_time() - start
    gc.enable()
    return taken


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--impl", choices=("ours", "torch", "both"), default="both")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    torch.set_num_threads(1)
    x = torch.ones(2)
    ours, theirs = (
        fx.trace.symbolic_trace(program(options.count)),
        torch.fx.symbolic_trace(program(options.count)),
    )
    interpreters = {"ours": fx.trace.Interpreter(ours), "torch": torch.fx.Interpreter(theirs)}
    works: dict[str, dict[str, Callable[[], object]]] = {
        "call": {"ours": lambda: ours(x), "torch": lambda: theirs(x)},
        "Interpreter.run": {name: (lambda i=i: i.run(x)) for name, i in interpreters.items()},  # type: ignore[misc]  # bound now
        "Transformer": {
            "ours": lambda: fx.trace.Transformer(ours).transform(),
            "torch": lambda: torch.fx.Transformer(theirs).transform(),
        },
        "ShapeProp": {
            "ours": lambda: ShapeProp(ours).propagate(x),
            "torch": lambda: TorchShapeProp(theirs).propagate(x),
        },
    }
    chosen = [name for name in ("ours", "torch") if options.impl in (name, "both")]
    best = {work: {name: float("inf") for name in chosen} for work in works}
    for _ in range(options.rounds):
        for work, runs in works.items():
            for name in chosen:
                best[work][name] = min(best[work][name], elapsed(runs[name]))
    for work, times in best.items():
        if work != "call":
            over = best["call"] if work == "Interpreter.run" else dict.fromkeys(chosen, 0.0)
            each = {name: (times[name] - over[name]) / options.count * 1e6 for name in chosen}
            ratio = f"  ratio {each['ours'] / each['torch']:.3f}" if len(chosen) == 2 else ""
            print(
                f"{work:16} " + "  ".join(f"{n} {v:7.2f}" for n, v in each.items()) + f"  us/node{ratio}",
                flush=True,
            )


if __name__ == "__main__":
    main()
