"""Code generation and GraphModule beside torch.fx: µs per node, interleaved, minimum of many rounds.

Rows: ``python_code``; ``recompile`` until ``forward`` is callable, beside ``compile()`` of the same text; ``deepcopy``;
``pickle.loads``; the call of a GraphModule over the call of the bare function, by size.  Run
``python benchmarks/codegen_graph_module.py [--impl ours|torch|both] [--nodes N ...] [--row NAME]``.
"""

from __future__ import annotations

import argparse
import copy
import gc
import operator
import pickle
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.fx

from fx.codegen import GraphModule, loader
from fx.ir import Graph

Work = Callable[[], Any]


def fill(graph: Any, count: int) -> Any:
    """A chain of ``count`` nodes: operators, functions with keywords, methods, modules."""
    x = graph.placeholder("x")
    y = x
    for index in range(count - 2):
        kind = index % 4
        if kind == 0:
            y = graph.call_function(operator.add, (y, x))
        elif kind == 1:
            y = graph.call_function(torch.nn.functional.gelu, (y,), {"approximate": "tanh"})
        elif kind == 2:
            y = graph.call_method("clamp", (y,), {"min": 0.0, "max": 1.0})
        else:
            y = graph.call_module("layer", (y,))
    graph.output(y)
    return graph


def python_values(graph: Any, count: int) -> Any:
    """A chain of integer additions, so that a call's own cost is not hidden behind tensors."""
    y = graph.placeholder("x")
    for _ in range(count):
        y = graph.call_function(operator.add, (y, 1))
    graph.output(y)
    return graph


def best(works: dict[str, Work], rounds: int, calls: int = 1) -> dict[str, float]:
    """Seconds per call: each work in turn, ``rounds`` times, the minimum of each."""
    found = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            gc.collect()
            gc.disable()
            start = time.perf_counter()
            for _ in range(calls):
                work()
            found[name] = min(found[name], (time.perf_counter() - start) / calls)
            gc.enable()
    return found


class Case:
    """Both libraries' module of the same graph."""

    def __init__(self, count: int) -> None:
        root = {"layer": torch.nn.Identity()}
        self.ours = GraphModule(root, fill(Graph(), count))
        self.torch = torch.fx.GraphModule(root, fill(torch.fx.Graph(), count))
        self.count = count


def python_code(case: Case) -> dict[str, Work]:
    return {
        "ours": lambda: case.ours.graph.python_code("self"),
        "torch": lambda: case.torch.graph.python_code("self"),
    }


def recompile(case: Case) -> dict[str, Work]:
    text = case.ours.code

    def ours() -> None:
        loader.compiled.cache_clear()
        case.ours.recompile()
        _ = case.ours.forward

    return {"ours": ours, "torch": case.torch.recompile, "compile()": lambda: compile(text, "text", "exec")}


def deepcopy(case: Case) -> dict[str, Work]:
    return {"ours": lambda: copy.deepcopy(case.ours), "torch": lambda: copy.deepcopy(case.torch)}


def loads(case: Case) -> dict[str, Work]:
    ours, theirs = pickle.dumps(case.ours), pickle.dumps(case.torch)

    def load_and_look() -> None:
        loader.compiled.cache_clear()
        _ = pickle.loads(ours).forward

    return {
        "ours": lambda: pickle.loads(ours),
        "torch": lambda: pickle.loads(theirs),
        "ours + compile": load_and_look,
    }


ROWS: dict[str, Callable[[Case], dict[str, Work]]] = {
    "python_code": python_code,
    "recompile": recompile,
    "deepcopy": deepcopy,
    "loads": loads,
}


def show(name: str, found: dict[str, float], unit: float) -> None:
    texts = [f"{who} {seconds / unit:8.2f}" for who, seconds in found.items()]
    ratios = [
        f"ours/{who} {found['ours'] / found[who]:.2f}" for who in found if who != "ours" and "ours" in found
    ]
    print(f"{name:24} {'  '.join(texts)}    {'  '.join(ratios)}")


def calls(sizes: list[int], wanted: Callable[[str], bool], rounds: int) -> None:
    for count in sizes:
        ours = GraphModule({}, python_values(Graph(), count))
        theirs = torch.fx.GraphModule({}, python_values(torch.fx.Graph(), count))
        ours(1)
        bare = ours.forward
        works = {"ours": lambda: ours(1), "torch": lambda: theirs(1), "body": lambda: bare(1)}  # noqa: B023 - run here
        show(
            f"call, {count} nodes (µs)",
            best({k: v for k, v in works.items() if wanted(k)}, rounds, 2000),
            1e-6,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--impl", choices=("ours", "torch", "both"), default="both")
    parser.add_argument("--nodes", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--row", choices=(*ROWS, "call"))
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)

    def wanted(who: str) -> bool:
        return options.impl == "both" or options.impl in who or who in ("compile()", "body")

    for count in options.nodes:
        case = Case(count)
        for name, row in ROWS.items():
            if options.row in (None, name):
                works = {who: work for who, work in row(case).items() if wanted(who)}
                show(f"{name}, {count}", best(works, options.rounds), 1e-6 * count)
    if options.row in (None, "call"):
        calls([1, 10, 100], wanted, options.rounds)


if __name__ == "__main__":
    main()
