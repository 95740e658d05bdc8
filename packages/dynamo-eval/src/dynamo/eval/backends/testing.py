"""Backends that count, for tests."""

from collections.abc import Callable
from typing import Any

from dynamo.eval.backends.registry import Backend, lookup_backend


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


class CompileCounterWithBackend(CompileCounter):
    """Counts as `CompileCounter` does, and runs the graphs with a backend.

    Args:
        backend: its name, or the callable itself.

    Raises:
        UsageError: no such backend.
    """

    def __init__(self, backend: "str | Backend") -> None:
        super().__init__()
        self.backend = lookup_backend(backend)

    def __call__(self, gm: Any, example_inputs: list[Any]) -> Callable[..., Any]:
        super().__call__(gm, example_inputs)
        return self.backend(gm, example_inputs)
