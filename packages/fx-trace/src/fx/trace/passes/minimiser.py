"""Find the smallest run of operations that still fails.

The graph is run once and all values are kept; then ever smaller runs of consecutive operations are cut out and tried on the
recorded inputs: first by halving, then by dropping operations from both ends.

Source: torch.fx ``passes.net_min_base``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import torch
import torch.utils._pytree as pytree

from fx.codegen import GraphModule
from fx.ir import Node
from fx.trace.interpreter import Interpreter
from fx.trace.passes.subgraph import extract_subgraph

__all__ = ["Minimised", "NothingFails", "minimise"]


class NothingFails(ValueError):
    """The whole graph does not fail, so there is nothing to minimise."""


@final
@dataclass(frozen=True, slots=True)
class Minimised:
    """The smallest failing part.

    Attributes:
        module: fails on ``inputs``.
        inputs: recorded from the run of the whole graph.
        nodes: the operations, of the graph that was given.
        tries: how many candidates were tried.
    """

    module: GraphModule
    inputs: tuple[Any, ...]
    nodes: tuple[Node, ...]
    tries: int


class _Recorder(Interpreter):
    """Keeps a copy of every value as it was when it was made: later operations may change it in place."""

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module, garbage_collect_values=False)
        self.copies: dict[Node, Any] = {}

    def run_node(self, n: Node) -> Any:
        result = super().run_node(n)
        self.copies[n] = _copy(result)
        return result


def _copy(value: Any) -> Any:
    return pytree.tree_map(
        lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else leaf, value
    )


def minimise(
    gm: GraphModule, args: tuple[Any, ...], fails: Callable[[GraphModule, tuple[Any, ...]], bool]
) -> Minimised:
    """Bisect a failing graph.

    Args:
        gm: runs on ``args`` in eager mode; is not changed.
        args: of ``gm``.
        fails: says whether a module fails on given inputs, for example because a compiled version gives other results. It gets
            inputs of its own and may change them.

    Raises:
        NothingFails: the whole graph does not.
    """
    recorder = _Recorder(gm)
    recorder.run(*args)
    operations = [n for n in gm.graph.nodes if n.op not in ("placeholder", "get_attr", "output")]
    tries = 0

    def failing(start: int, stop: int) -> Minimised | None:
        nonlocal tries
        tries += 1
        nodes = operations[start:stop]
        found = extract_subgraph(gm, nodes, "Minimised")
        inputs = tuple([recorder.copies[node] for node in found.inputs])
        if not fails(found.module, _copy(inputs)):
            return None
        return Minimised(found.module, inputs, tuple(nodes), tries)

    best = failing(0, len(operations)) if operations else None
    if best is None:
        raise NothingFails("the whole graph does not fail on these inputs: check `fails` and the inputs.")
    start, stop = 0, len(operations)
    step = (stop - start + 1) // 2
    while step:
        smaller = None
        if step < stop - start:
            for low, high in ((start, stop - step), (start + step, stop)):
                smaller = failing(low, high)
                if smaller is not None:
                    best, start, stop = smaller, low, high
                    break
        if smaller is None:
            step //= 2
    return Minimised(best.module, best.inputs, best.nodes, tries)
