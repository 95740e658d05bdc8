"""What does building, editing, checking and printing a graph cost, beside torch.fx, and does it grow linearly?

    python benchmarks/ir_graph.py [--impl ours|torch|both] [--sizes 1000 10000 100000] [--repeat 5]

Every figure is µs per node (or per edit), the minimum of the repeats; ours and torch's run in turn in one process.
``--sizes`` to 1000000 shows growth; torch's quadratic edits are left out above 10,000.
"""

from __future__ import annotations

import argparse
import copy
import gc
import operator
import pickle
import time
import tracemalloc
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.fx

import fx.ir

IMPLEMENTATIONS: Final[dict[str, type[Any]]] = {"ours": fx.ir.Graph, "torch": torch.fx.Graph}
QUADRATIC: Final = {"replace n inputs", "insert between last two"}


def chain(make: type[Any], size: int) -> Any:
    """x → add → add → …, as a straight program has it."""
    graph = make()
    node = graph.placeholder("x")
    for _ in range(size):
        node = graph.call_function(operator.add, (node, 1))
    graph.output(node)
    return graph


def half_dead(make: type[Any], size: int) -> Any:
    graph = make()
    node = graph.placeholder("x")
    for _ in range(size // 2):
        graph.call_function(operator.mul, (node, 2))
        node = graph.call_function(operator.add, (node, 1))
    graph.output(node)
    return graph


def wide(make: type[Any], size: int) -> Any:
    """One node that takes n others."""
    graph = make()
    spare = graph.placeholder("y")
    values = [graph.placeholder(f"x{i}") for i in range(size)]
    return graph, values, spare, graph.call_function(max, tuple(values))


def set_args(graph: Any) -> None:
    for node in graph.nodes:
        if node.op == "call_function":
            node.args = (node.args[0], 2)


def erase_all(graph: Any) -> None:
    for node in reversed(graph.nodes):
        graph.erase_node(node)


def operations(make: type[Any], size: int) -> Any:
    first, *nodes, _ = chain(make, size).nodes
    return first, nodes


def replace_each(made: Any) -> None:
    first, nodes = made
    for node in nodes:
        node.replace_all_uses_with(first)


def replace_inputs(made: Any) -> None:
    _, values, spare, node = made
    for value in values:
        node.replace_input_with(value, spare)
    assert node.args[0] is spare


def insert_before_last(made: Any) -> None:
    graph, size = made
    last = next(iter(reversed(graph.nodes)))
    with graph.inserting_before(last):
        for _ in range(size):
            node = graph.get_attr("weight")
            assert node < last


def insert_between_last_two(made: Any) -> None:
    """Each node goes between the two that were made before it: the worst case for whatever notes the order."""
    graph, size = made
    left, right = graph.get_attr("left"), graph.get_attr("right")
    for _ in range(size):
        with graph.inserting_after(left if left < right else right):
            left, right = right, graph.get_attr("weight")


def graph_copy(graph: Any) -> None:
    type(graph)().graph_copy(graph, {})


Work = tuple[Callable[[type[Any], int], Any], Callable[[Any], object]]
WORK: Final[dict[str, Work]] = {
    "create": (lambda make, size: (make, size), lambda made: chain(*made)),
    "graph_copy": (chain, graph_copy),
    "deepcopy": (chain, copy.deepcopy),
    "set args": (chain, set_args),
    "replace_all_uses_with": (operations, replace_each),
    "replace n inputs": (wide, replace_inputs),
    "insert before last": (lambda make, size: (chain(make, 2), size), insert_before_last),
    "insert between last two": (lambda make, size: (make(), size), insert_between_last_two),
    "erase": (chain, erase_all),
    "dead code (half dead)": (half_dead, lambda graph: graph.eliminate_dead_code()),
    "lint": (chain, lambda graph: graph.lint()),
    "str": (chain, str),
}


def measure(work: Work, make: type[Any], size: int) -> float:
    prepare, run = work
    made = prepare(make, size)
    gc.collect()
    start = time.perf_counter()
    run(made)
    return (time.perf_counter() - start) / size * 1e6


def compare(name: str, size: int, names: list[str], repeat: int) -> None:
    best = dict.fromkeys(names, float("inf"))
    for _ in range(repeat):
        for impl in names:
            if impl == "torch" and name in QUADRATIC and size > 10_000:
                continue
            best[impl] = min(best[impl], measure(WORK[name], IMPLEMENTATIONS[impl], size))
    shown = "  ".join(f"{impl} {value:8.3f}" for impl, value in best.items())
    ratio = f"  ratio {best['ours'] / best['torch']:.3f}" if len(names) == 2 and best["torch"] < 1e9 else ""
    print(f"{name:24} n={size:<8} {shown} µs{ratio}", flush=True)


def memory(size: int, names: list[str]) -> None:
    for impl in names:
        gc.collect()
        tracemalloc.start()
        graph = chain(IMPLEMENTATIONS[impl], size)
        used, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        print(f"{'bytes per node':24} n={size:<8} {impl} {used / size:8.0f}", flush=True)
        del graph


def files(size: int, repeat: int) -> None:
    """Saving and loading a file, against pickling a GraphModule."""
    ours = chain(fx.ir.Graph, size)
    theirs = torch.fx.GraphModule(torch.nn.Module(), chain(torch.fx.Graph, size))
    best = [float("inf")] * 4
    for _ in range(repeat):
        data, pickled = b"", b""
        times = [time.perf_counter()]
        data = fx.ir.dumps(ours)
        times.append(time.perf_counter())
        fx.ir.loads(data)
        times.append(time.perf_counter())
        pickled = pickle.dumps(theirs)
        times.append(time.perf_counter())
        pickle.loads(pickled)
        times.append(time.perf_counter())
        best = [min(old, (b - a) / size * 1e6) for old, a, b in zip(best, times, times[1:], strict=False)]
    for what, mine, peer in (("save", best[0], best[2]), ("load", best[1], best[3])):
        print(
            f"{what:24} n={size:<8} ours {mine:8.3f}  torch {peer:8.3f} µs  ratio {mine / peer:.3f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--impl", choices=[*IMPLEMENTATIONS, "both"], default="both")
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--only", choices=[*WORK, "memory", "files"])
    options = parser.parse_args()
    names = list(IMPLEMENTATIONS) if options.impl == "both" else [options.impl]
    for size in options.sizes:
        for name in WORK:
            if options.only in (None, name):
                compare(name, size, names, options.repeat)
        if options.only in (None, "memory"):
            memory(size, names)
        if options.only in (None, "files") and options.impl == "both" and size <= 10_000:
            files(size, options.repeat)


if __name__ == "__main__":
    main()
