"""How long each node takes: a table to read and a file for flame graphs.

Source: seed 003, "Interpreter pattern: profiler".
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import torch
from tabulate import tabulate

from fx.ir import Node
from fx.trace.interpreter import Interpreter

__all__ = ["NodeTime", "Profiler"]


@final
@dataclass(slots=True)
class NodeTime:
    """Durations of one node.

    Attributes:
        node: which one.
        seconds: one entry for each run.
    """

    node: Node
    seconds: list[float] = field(default_factory=list)

    @property
    def mean(self) -> float:
        """Mean duration in seconds."""
        return sum(self.seconds) / len(self.seconds) if self.seconds else 0.0


class Profiler(Interpreter):
    """An interpreter that times each node; run it as often as wanted, then ask for the table or the flame-graph file.

    Args:
        module: to be run.
        clock: gives the present time in seconds.
        synchronize: called before each reading of the clock, for devices that work asynchronously.
    """

    def __init__(
        self,
        module: torch.nn.Module,
        clock: Callable[[], float] = time.perf_counter,
        synchronize: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(module)
        self._clock = clock
        self._synchronize = synchronize
        self.times: dict[Node, NodeTime] = {}

    def run_node(self, n: Node) -> Any:
        """Run one node and note how long it took."""
        start = self._now()
        result = super().run_node(n)
        self.times.setdefault(n, NodeTime(n)).seconds.append(self._now() - start)
        return result

    def _now(self) -> float:
        if self._synchronize is not None:
            self._synchronize()
        return self._clock()

    def table(self, by_time: bool = True) -> str:
        """A table of all nodes: opcode, name, target, runs, mean time in µs, share of the whole.

        Args:
            by_time: slowest first; else in the order of the graph.
        """
        rows = list(self.times.values())
        whole = sum(row.mean for row in rows) or 1.0
        if by_time:
            rows.sort(key=lambda row: row.mean, reverse=True)
        return tabulate(
            [
                (
                    row.node.op,
                    row.node.name,
                    _target(row.node),
                    len(row.seconds),
                    f"{row.mean * 1e6:.1f}",
                    f"{row.mean / whole:.1%}",
                )
                for row in rows
            ],
            headers=("opcode", "name", "target", "runs", "mean (us)", "share"),
        )

    def folded_stacks(self) -> str:
        """The times as folded stacks, one line a node: modules and node separated by ``;``, then the whole time in µs."""
        lines = []
        for node, row in self.times.items():
            stack = [path or "root" for path, _ in node.meta.get("nn_module_stack", {}).values()]
            lines.append(f"{';'.join(['forward', *stack, node.name])} {round(sum(row.seconds) * 1e6)}")
        return "\n".join(lines) + "\n"

    def write_flame_graph(self, path: Path) -> None:
        """Write :meth:`folded_stacks` to a file that flamegraph.pl, speedscope and inferno read."""
        path.write_text(self.folded_stacks(), encoding="utf-8")


def _target(node: Node) -> str:
    return (
        node.target if isinstance(node.target, str) else getattr(node.target, "__name__", repr(node.target))
    )
