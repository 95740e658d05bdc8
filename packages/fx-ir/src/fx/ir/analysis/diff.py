"""What changed between two graphs: nodes added, removed, changed and moved, whatever they are called.

First the nodes are paired.  Nodes that compute the same from the same inputs are paired in order; then, from the pairs
backwards, what stands at the same place of their arguments; then what is left, by name, then by operation in order.
A pair counts as changed if its operations differ, or its arguments once paired nodes are taken as equal.  Of the
unchanged pairs, those outside a longest run in common order have moved.  Linear but for that run (n log n).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fx.ir import _args
from fx.ir.node import Node
from fx.ir.printing.text import format_target, format_type

if TYPE_CHECKING:
    from fx.ir.graph import Graph


@dataclass(frozen=True, slots=True)
class Change:
    """A node that became another: ``fields`` names what differs (``op``, ``target``, ``args``, ``kwargs``, ``type``)."""

    before: Node
    after: Node
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Diff:
    """The differences from one graph to another; true if there are any.  Renamings are told but do not count."""

    added: tuple[Node, ...]
    removed: tuple[Node, ...]
    changed: tuple[Change, ...]
    moved: tuple[tuple[Node, Node], ...]
    renamed: tuple[tuple[Node, Node], ...]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.moved)

    def to_dict(self) -> dict[str, Any]:
        """The differences as plain data, nodes by name."""
        return {
            "added": [node.name for node in self.added],
            "removed": [node.name for node in self.removed],
            "changed": [
                {"before": change.before.name, "after": change.after.name, "fields": list(change.fields)}
                for change in self.changed
            ],
            "moved": [[before.name, after.name] for before, after in self.moved],
            "renamed": [[before.name, after.name] for before, after in self.renamed],
        }


def diff(a: Graph, b: Graph) -> Diff:
    """What has to be done to ``a`` to get ``b``; ``meta`` is not compared."""
    pairs = _Pairs(a, b)
    pairs.alike()
    pairs.backwards()
    pairs.by(lambda node: node.name, same_op=True)
    pairs.by(lambda node: (node.op, _target(node)))
    pairs.by(lambda node: node.name)
    mapped = pairs.forward
    changed = [
        Change(before, after, fields)
        for before, after in mapped.items()
        if (fields := _changed_fields(before, after, mapped))
    ]
    touched = {change.before for change in changed}
    order = {node: i for i, node in enumerate(b.nodes)}
    kept = [node for node in a.nodes if node in mapped and node not in touched]
    still = _longest_run([order[mapped[node]] for node in kept])
    moved = [(node, mapped[node]) for i, node in enumerate(kept) if i not in still]
    renamed = [(node, mapped[node]) for node in kept if node.name != mapped[node].name]
    return Diff(
        added=tuple([node for node in b.nodes if node not in pairs.taken]),
        removed=tuple([node for node in a.nodes if node not in mapped]),
        changed=tuple(sorted(changed, key=lambda change: change.before)),
        moved=tuple(moved),
        renamed=tuple(renamed),
    )


class _Pairs:
    """Which node of ``a`` is which of ``b``, as far as it is known."""

    def __init__(self, a: Graph, b: Graph) -> None:
        self._a, self._b = a, b
        self.forward: dict[Node, Node] = {}
        self.taken: set[Node] = set()

    def pair(self, before: Node, after: Node) -> bool:
        if before in self.forward or after in self.taken:
            return False
        self.forward[before] = after
        self.taken.add(after)
        return True

    def alike(self) -> None:
        """Pair nodes that compute the same from the same, in order."""
        classes: dict[Hashable, int] = {}
        groups: dict[int, deque[Node]] = defaultdict(deque)
        for node, number in _structure(self._b, classes):
            groups[number].append(node)
        for node, number in _structure(self._a, classes):
            if groups[number]:
                self.pair(node, groups[number].popleft())

    def backwards(self) -> None:
        """Pair what paired nodes, and the outputs, have at the same place of their arguments."""
        todo = [*self.forward.items()]
        for before, after in zip(self._outputs(self._a), self._outputs(self._b), strict=False):
            if self.pair(before, after):
                todo.append((before, after))
        while todo:
            before, after = todo.pop()
            for left, right in zip(_inputs(before), _inputs(after), strict=False):
                if left.op == right.op and _target(left) == _target(right) and self.pair(left, right):
                    todo.append((left, right))

    @staticmethod
    def _outputs(graph: Graph) -> Iterable[Node]:
        return graph.find_nodes(op="output")

    def by(self, key: Any, *, same_op: bool = False) -> None:
        """Pair what is left and has the same key, in order."""
        groups: dict[Hashable, deque[Node]] = defaultdict(deque)
        for node in self._b.nodes:
            if node not in self.taken:
                groups[key(node)].append(node)
        for node in self._a.nodes:
            if node not in self.forward:
                group = groups.get(key(node))
                if group and (not same_op or group[0].op == node.op):
                    self.pair(node, group.popleft())


def _inputs(node: Node) -> list[Node]:
    return list(_args.nodes_in((node.args, node.kwargs)))


def _target(node: Node) -> str:
    return format_target(node.target)


def _structure(graph: Graph, classes: dict[Hashable, int]) -> Iterable[tuple[Node, int]]:
    """Each node with the number of its class: equal numbers compute the same from the same inputs."""
    numbers: dict[Node, int] = {}
    targets: dict[int, str] = {}
    for node in graph.nodes:
        shown = targets.get(id(node.target))
        if shown is None:
            shown = targets[id(node.target)] = _target(node)
        key = (node.op, shown, _key(node.args, numbers), _key(node.kwargs, numbers), _type(node))
        number = numbers[node] = classes.setdefault(key, len(classes))
        yield node, number


def _type(node: Node) -> str | None:
    return None if node.type is None else format_type(node.type)


def _key(value: Any, numbers: dict[Node, int]) -> Hashable:
    """An argument as something hashable, equal for equal arguments over paired nodes."""
    kind = _args.kind_of(type(value))
    if kind == _args.NODE:
        return ("node", numbers.get(value, -1))
    if kind == _args.DICT:
        return ("dict", tuple([(key, _key(item, numbers)) for key, item in value.items()]))
    if kind == _args.SLICE:
        return ("slice", *[_key(part, numbers) for part in (value.start, value.stop, value.step)])
    if kind != _args.LEAF:
        return (type(value).__name__, *[_key(item, numbers) for item in value])
    if isinstance(value, float):
        return ("float", repr(value))
    if callable(value):
        return ("name", format_target(value))
    try:
        hash(value)
    except TypeError:
        return ("object", id(value))
    return (type(value).__name__, value)


def _changed_fields(before: Node, after: Node, mapped: dict[Node, Node]) -> tuple[str, ...]:
    fields: list[str] = []
    if before.op != after.op:
        fields.append("op")
    if before.target is not after.target and _target(before) != _target(after):
        fields.append("target")
    # Numbers that are equal exactly for paired nodes: that of the node in b.
    theirs = {node: node.uid for node in after.all_input_nodes}
    ours = {node: mapped[node].uid for node in before.all_input_nodes if node in mapped}
    if _key(before.args, ours) != _key(after.args, theirs):
        fields.append("args")
    if (before.kwargs or after.kwargs) and _key(before.kwargs, ours) != _key(after.kwargs, theirs):
        fields.append("kwargs")
    if before.type is not after.type and _type(before) != _type(after):
        fields.append("type")
    return tuple(fields)


def _longest_run(values: list[int]) -> set[int]:
    """The positions of a longest increasing subsequence (patience sorting)."""
    tops: list[int] = []
    top_positions: list[int] = []
    previous: list[int] = []
    for position, value in enumerate(values):
        pile = bisect_left(tops, value)
        previous.append(top_positions[pile - 1] if pile else -1)
        if pile == len(tops):
            tops.append(value)
            top_positions.append(position)
        else:
            tops[pile] = value
            top_positions[pile] = position
    run: set[int] = set()
    position = top_positions[-1] if top_positions else -1
    while position >= 0:
        run.add(position)
        position = previous[position]
    return run
