"""Numbers about a graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fx.ir.analysis.topology import critical_path, peak_live
from fx.ir.effects import is_impure
from fx.ir.printing.text import format_target

if TYPE_CHECKING:
    from fx.ir.graph import Graph


@dataclass(frozen=True, slots=True)
class Stats:
    """Numbers about a graph; ``targets`` counts op and qualified target, most frequent first."""

    nodes: int
    edges: int
    ops: dict[str, int]
    targets: dict[str, int]
    depth: int
    critical_path: tuple[str, ...]
    max_fan_out: int
    mean_fan_out: float
    widest: str | None
    peak_live: int
    unused: int
    nested: int

    def to_dict(self) -> dict[str, Any]:
        """The numbers as plain data."""
        return asdict(self)


def stats(graph: Graph) -> Stats:
    """Count and measure ``graph``, in linear time."""
    ops: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    widest, fan_out, edges, unused = None, 0, 0, 0
    names: dict[int, str] = {}
    for node in graph.nodes:
        ops[node.op] += 1
        shown = names.get(id(node.target))
        if shown is None:
            shown = names[id(node.target)] = format_target(node.target)
        if node.op not in ("placeholder", "output"):
            targets[f"{node.op} {shown}"] += 1
        users = len(node.users)
        edges += users
        if users > fan_out:
            widest, fan_out = node.name, users
        unused += not users and not is_impure(node)
    path = critical_path(graph)
    number = len(graph.nodes)
    return Stats(
        nodes=number,
        edges=edges,
        ops=dict(ops.most_common()),
        targets=dict(targets.most_common()),
        depth=len(path),
        critical_path=tuple([node.name for node in path]),
        max_fan_out=fan_out,
        mean_fan_out=edges / number if number else 0.0,
        widest=widest,
        peak_live=peak_live(graph),
        unused=unused,
        nested=sum(graph.nested_graph(str(n.target)) is not None for n in graph.find_nodes(op="get_attr")),
    )
