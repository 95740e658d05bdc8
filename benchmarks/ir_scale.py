"""Does every operation of fx.ir work, and stay linear, on graphs of a million nodes?

    python benchmarks/ir_scale.py [10000 100000 1000000]

A chain as deep as it is long, of three operators on a value, a constant and the input; µs per node, one run each.
``tests/fx_ir/test_scale.py`` runs the same list on a smaller graph.
"""

from __future__ import annotations

import copy
import operator
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from fx.ir import Graph, Node, cse, dumps, loads
from fx.ir.analysis import (
    ancestors,
    critical_path,
    depths,
    descendants,
    diff,
    dominators,
    live_ranges,
    peak_live,
    post_dominators,
    stats,
    to_networkx,
)
from fx.ir.match import find_matches, parse_pattern, rewrite, select
from fx.ir.printing.dot import format_dot

OPERATORS: list[Callable[..., Any]] = [operator.add, operator.mul, operator.neg]


def chain(length: int) -> Graph:
    """A graph of ``length`` operations, each on the one before it."""
    graph = Graph()
    x = node = graph.placeholder("x")
    for i in range(length):
        if i % 3 == 2:
            node = graph.call_function(operator.neg, (node,))
        else:
            node = graph.call_function(OPERATORS[i % 3], (node, i % 7 if i % 5 else x))
    graph.output(node)
    return graph


def pattern(first: Callable[..., Any], second: Callable[..., Any] | None = None) -> Graph:
    """``second(first(a, b))`` as a graph."""
    graph = Graph()
    a, b = graph.placeholder("a"), graph.placeholder("b")
    node = graph.call_function(first, (a, b))
    graph.output(node if second is None else graph.call_function(second, (node,)))
    return graph


def reverse(graph: Graph) -> list[Node]:
    """Walk backwards, renaming each node."""
    nodes = list(reversed(graph.nodes))
    for node in nodes:
        node.name = f"{node.name}_renamed"
    return nodes


def operations(length: int) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every operation on one graph, by name; what edits works on a copy."""
    graph = chain(length)
    yield "create", lambda: chain(length)
    yield "deepcopy", lambda: copy.deepcopy(graph)
    yield "lint", graph.lint
    yield "str", lambda: str(graph)
    yield "save", lambda: dumps(graph)
    saved = dumps(graph)
    yield "load", lambda: loads(saved)
    other = loads(saved)
    yield "diff of equals", lambda: diff(graph, other)
    for node in other.find_nodes(op="call_function", target=operator.neg)[::100]:
        node.target = operator.pos
    yield "diff", lambda: diff(graph, other)
    yield "pickle", lambda: pickle.dumps(graph)
    pickled = pickle.dumps(graph)
    yield "unpickle", lambda: pickle.loads(pickled)
    yield "stats", lambda: stats(graph)
    yield "depths", lambda: depths(graph)
    yield "dominators", lambda: dominators(graph)
    yield "post_dominators", lambda: post_dominators(graph)
    yield "live_ranges", lambda: live_ranges(graph)
    yield "peak_live", lambda: peak_live(graph)
    yield "critical_path", lambda: critical_path(graph)
    yield "ancestors", lambda: ancestors(graph.output_node())
    yield "descendants", lambda: descendants(graph.find_nodes(op="placeholder")[0])
    yield "to_networkx", lambda: to_networkx(graph)
    yield "format_dot", lambda: format_dot(graph)
    yield "select", lambda: select(graph, parse_pattern("add(_, 2)"))
    mul_neg = pattern(operator.mul, operator.neg)
    yield "find_matches", lambda: find_matches(graph, mul_neg, literals=True)
    work = copy.deepcopy(graph)
    yield "rewrite", lambda: rewrite(work, mul_neg, pattern(operator.sub), literals=True)
    yield "reverse, rename", lambda: reverse(work)
    yield "common subexpressions", lambda: cse.eliminate_common_subexpressions(work)
    yield "dead code", work.eliminate_dead_code
    yield "lint after edits", work.lint


def main(sizes: list[int]) -> None:
    """Print a line for each operation and size."""
    for size in sizes:
        for name, run in operations(size):
            begin = time.perf_counter()
            run()
            print(f"{name:24} n={size:<8} {(time.perf_counter() - begin) / size * 1e6:8.2f} µs", flush=True)


if __name__ == "__main__":
    main([int(size) for size in sys.argv[1:]] or [10_000, 100_000, 1_000_000])
