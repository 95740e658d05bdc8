"""Group the operations that a backend supports into as few submodules as can be.

A group may not need a value that is computed, outside of it, from one of its own: then neither could run first. Groups grow in the
order of the graph; each operation joins a group that it takes a value from, if no such circle comes about.

Source: torch.fx ``passes.infra.partitioner``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import final

from fx.codegen import GraphModule
from fx.ir import Node
from fx.trace.passes.base import PassResult
from fx.trace.passes.subgraph import fuse_subgraph

__all__ = ["CapabilityBasedPartitioner", "Partition"]

IsSupported = Callable[[Mapping[str, object], Node], bool]


@final
@dataclass(slots=True, eq=False)
class Partition:
    """Operations that become one submodule.

    Attributes:
        id: counted from 0, in the order of the first operation.
        nodes: in the order of the graph.
    """

    id: int
    nodes: list[Node] = field(default_factory=list)


@final
class CapabilityBasedPartitioner:
    """Proposes groups of supported operations, and fuses them.

    Args:
        graph_module: is edited by :meth:`fuse_partitions`.
        is_supported: asked about each operation, with the submodules by name.
        allows_single_node_partition: also propose groups of one operation.
    """

    def __init__(
        self,
        graph_module: GraphModule,
        is_supported: IsSupported,
        allows_single_node_partition: bool = False,
    ) -> None:
        self.graph_module = graph_module
        self._is_supported = is_supported
        self._allows_single = allows_single_node_partition

    def propose_partitions(self) -> list[Partition]:
        """Groups of supported operations; disjoint, and free of circles."""
        modules = dict(self.graph_module.named_modules())
        part_of: dict[Node, Partition] = {}
        needs: dict[Node | Partition, set[Node | Partition]] = {}
        partitions: list[Partition] = []
        for node in self.graph_module.graph.nodes:
            if node.op in ("placeholder", "get_attr", "output"):
                continue
            inputs = [used for used in node.all_input_nodes if used.op not in ("placeholder", "get_attr")]
            units: list[Node | Partition] = [part_of.get(used, used) for used in inputs]
            joined: Partition | None = None
            if not node.is_impure() and self._is_supported(modules, node):
                joined = next(
                    (u for u in units if isinstance(u, Partition) and _can_join(u, units, needs)), None
                )
                if joined is None:
                    joined = Partition(len(partitions))
                    partitions.append(joined)
                joined.nodes.append(node)
                part_of[node] = joined
            unit: Node | Partition = node if joined is None else joined
            needs.setdefault(unit, set()).update(needed for needed in units if needed is not unit)
        kept = [p for p in partitions if len(p.nodes) > 1 or self._allows_single]
        for index, partition in enumerate(kept):
            partition.id = index
        return kept

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> PassResult:
        """Replace each group by a call of a new submodule ``<prefix><id>``; edits the module."""
        changes = []
        for partition in partitions:
            name = f"{prefix}{partition.id}"
            fuse_subgraph(self.graph_module, partition.nodes, name)
            changes.append(f"{name} computes {', '.join(node.name for node in partition.nodes)}")
        if changes:
            self.graph_module.delete_all_unused_submodules()
            self.graph_module.recompile()
        return PassResult(self.graph_module, tuple(changes))

    def __call__(self, gm: GraphModule) -> PassResult:
        """Propose and fuse in ``gm``: the partitioner as a pass."""
        self.graph_module = gm
        return self.fuse_partitions(self.propose_partitions())


def _can_join(
    partition: Partition,
    units: list[Node | Partition],
    needs: Mapping[Node | Partition, set[Node | Partition]],
) -> bool:
    """Whether none of the other inputs needs ``partition``."""
    todo = [unit for unit in units if unit is not partition]
    seen = set(todo)
    while todo:
        for needed in needs.get(todo.pop(), ()):
            if needed is partition:
                return False
            if needed not in seen:
                seen.add(needed)
                todo.append(needed)
    return True
