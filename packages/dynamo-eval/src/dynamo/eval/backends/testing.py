"""Backends that count, for tests."""

from collections.abc import Callable
from typing import Any


class CompileCounter:
    """Counts graphs and their torch calls, and runs them as they are.

    >>> counter = CompileCounter()
    >>> counter.frame_count, counter.op_count
    (0, 0)
    """

    def __init__(self) -> None:
        self.frame_count = 0
        self.op_count = 0
        self.graphs: list[Any] = []

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        self.frame_count += 1
        self.op_count += sum(node.op.startswith("call") for node in gm.graph.nodes)
        self.graphs.append(gm)
        return gm.forward  # type: ignore[no-any-return]  # a GraphModule's forward

    def clear(self) -> None:
        """Begin again at zero."""
        self.frame_count = self.op_count = 0
        self.graphs.clear()
