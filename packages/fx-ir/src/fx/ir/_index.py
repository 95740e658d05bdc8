"""An index from (op, target) to nodes, kept by edits once it was built."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fx.ir.node import Node
    from fx.ir.types import Op, Target


class Index:
    """op → target → nodes, each level an insertion-ordered dict."""

    __slots__ = ("_table",)

    def __init__(self, nodes: Iterable[Node]) -> None:
        self._table: dict[Op, dict[Target, dict[Node, None]]] = {}
        for node in nodes:
            self.add(node)

    def add(self, node: Node) -> None:
        """Note a node under its present op and target."""
        self._table.setdefault(node._op, {}).setdefault(_key(node._target), {})[node] = None

    def remove(self, node: Node) -> None:
        """Forget a node; its op and target are still those under which it was added."""
        targets = self._table[node._op]
        key = _key(node._target)
        nodes = targets[key]
        del nodes[node]
        if not nodes:
            del targets[key]

    def find(self, op: Op, target: Target | None) -> list[Node]:
        """The nodes under ``op``, and under ``target`` unless that is ``None``."""
        targets = self._table.get(op, {})
        if target is None:
            return [node for nodes in targets.values() for node in nodes]
        return list(targets.get(_key(target), ()))

    def __len__(self) -> int:
        return sum(len(nodes) for targets in self._table.values() for nodes in targets.values())

    def holds(self, node: Node) -> bool:
        """Is ``node`` noted under its op and target?"""
        return node in self._table.get(node._op, {}).get(_key(node._target), {})


class _Unhashable:
    """Stands as key for a callable that cannot be hashed: the same object, the same key."""

    __slots__ = ("target",)

    def __init__(self, target: object) -> None:
        self.target = target

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Unhashable) and other.target is self.target

    def __hash__(self) -> int:
        return id(self.target)

    def __call__(self) -> object:
        return self.target


def _key(target: Target) -> Target:
    try:
        hash(target)
    except TypeError:
        return _Unhashable(target)
    return target
