"""Is replace_pattern linear, and what does it cost beside torch.fx?

    python benchmarks/trace_rewrite.py [--impl ours|torch|both] [--sizes 1000 10000] [--peer-limit 2000]

A chain of n nodes in which nothing, or every second node's pair, matches; processor time per node in microseconds. torch is
quadratic where half matches, so it is run up to --peer-limit nodes there, and its time at 10^4 is not extrapolated.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

import fx.trace


def chain(count: int) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        for _ in range(count // 4):
            x = torch.relu(torch.neg(x)) * 2 + 1
        return x

    return run


def none(x: Any) -> Any:
    return torch.relu(torch.abs(x))


def half(x: Any) -> Any:
    return torch.relu(torch.neg(x))


def replacement(x: Any) -> Any:
    return torch.clamp(x, max=0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--impl", choices=("ours", "torch", "both"), default="both")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10000])
    parser.add_argument("--peer-limit", type=int, default=2000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    modules: dict[str, Any] = {"ours": fx.trace, "torch": torch.fx}
    for label, pattern in (("no match", none), ("half matches", half)):
        for size in options.sizes:
            each: dict[str, float] = {}
            for name in ("ours", "torch"):
                slow = name == "torch" and pattern is half and size > options.peer_limit
                if options.impl not in (name, "both") or slow:
                    continue
                for _ in range(1 if name == "torch" else 3):
                    traced = modules[name].symbolic_trace(chain(size))
                    gc.collect()
                    start = time.process_time()
                    modules[name].replace_pattern(traced, pattern, replacement)
                    taken = (time.process_time() - start) / size * 1e6
                    each[name] = min(taken, each.get(name, taken))
            ratio = f"  ratio {each['ours'] / each['torch']:.3f}" if len(each) == 2 else ""
            times = "  ".join(f"{name} {value:8.2f}" for name, value in each.items())
            print(f"{label:13} n={size:6}  {times}  us/node{ratio}", flush=True)


if __name__ == "__main__":
    main()
