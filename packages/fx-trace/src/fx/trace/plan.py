"""A graph as a list of ready steps, for running it many times.

Every node and every constant argument gets a slot of one list; a step knows the slots of its arguments, so that most
arguments are fetched by one C call (``operator.itemgetter``) and no dictionary is touched. Each step also lists the slots
that hold nothing needed after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from typing import Any, Final, final
from weakref import WeakKeyDictionary

from fx.ir import Argument, Graph, Node, Op
from fx.trace.lowering import LEAVES

__all__ = ["Plan", "Step", "last_uses", "load", "plan_of"]

Slots = list[Any]
Fetch = Callable[[Slots], Any]


@final
@dataclass(frozen=True, slots=True)
class Step:
    """One node: what it runs, from and into which slots; ``fetch`` finds a submodule from the root."""

    node: Node
    op: Op
    target: Any
    args: Fetch
    kwargs: Fetch | None
    fetch: Callable[[Any], Any] | None
    into: int
    free: tuple[int, ...]
    frees: tuple[Node, ...]


@final
@dataclass(frozen=True, slots=True)
class Plan:
    """Steps of a graph, and the slots to start from, constants filled in."""

    steps: list[Step]
    slots: Slots

    def values(self, slots: Slots, last: Step | None, freed: bool) -> dict[Node, Any]:
        """Values by node after a run that stopped at ``last``, without those whose slots were emptied."""
        found: dict[Node, Any] = {}
        for step in self.steps:
            found[step.node] = slots[step.into]
            if step is last:
                if step.op != "output":
                    del found[step.node]
                break
            if freed:
                for used in step.frees:
                    found.pop(used, None)
        return found


def last_uses(graph: Graph) -> dict[Node, list[Node]]:
    """For each node, the nodes whose values nobody needs once it has run; a value that nobody takes is its own last use."""
    uses: dict[Node, list[Node]] = {}
    seen: set[Node] = set()
    for user in reversed(graph.nodes):
        if user not in seen:
            seen.add(user)
            if user.op != "output":
                uses.setdefault(user, []).append(user)
        for used in _inputs(user):
            if used not in seen:
                seen.add(used)
                uses.setdefault(user, []).append(used)
    return uses


def _inputs(node: Node) -> Sequence[Node]:
    """All input nodes, some perhaps twice; flat arguments, the commonest, without a walk."""
    found = []
    if not node.kwargs:
        for arg in node.args:
            if type(arg) is Node:
                found.append(arg)
            elif type(arg) not in LEAVES:
                return node.all_input_nodes
        return found
    return node.all_input_nodes


def load(value: Argument, lookup: Callable[[Node], Any]) -> Any:
    """``value`` with the values of its nodes; containers come out as plain tuples, lists and dicts."""
    if type(value) is Node:
        return lookup(value)
    rule = _LOADERS.get(type(value))
    if rule is not None:
        return rule(value, lookup)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return type(value)(*[load(item, lookup) for item in value])
    for kind, base_rule in _LOADERS.items():
        if isinstance(value, kind):
            return base_rule(value, lookup)
    return value


_LOADERS: Final[dict[type, Callable[[Any, Callable[[Node], Any]], Any]]] = {
    list: lambda value, lookup: [load(item, lookup) for item in value],
    dict: lambda value, lookup: {key: load(item, lookup) for key, item in value.items()},
    slice: lambda value, lookup: slice(
        load(value.start, lookup), load(value.stop, lookup), load(value.step, lookup)
    ),
    tuple: lambda value, lookup: tuple([load(item, lookup) for item in value]),
}


def _holds_nodes(value: Argument) -> bool:
    found = False

    def note(node: Node) -> None:
        nonlocal found
        found = True

    load(value, note)
    return found


class _Planner:
    def __init__(self, graph: Graph) -> None:
        self.slots: Slots = []
        self.slot_of: dict[Node, int] = {}
        uses = last_uses(graph)
        self.steps = [self._step(node, uses.get(node, ())) for node in graph.nodes]

    def _slot(self, value: object) -> int:
        self.slots.append(value)
        return len(self.slots) - 1

    def _step(self, node: Node, frees: Sequence[Node]) -> Step:
        args = self._positional(node.args)
        kwargs = self._nested(node.kwargs) if node.kwargs else None
        into = self.slot_of[node] = self._slot(None)
        free = tuple([self.slot_of[used] for used in frees])
        fetch = attrgetter(str(node.target)) if node.op == "call_module" and node.target else None
        return Step(node, node.op, node.target, args, kwargs, fetch, into, free, tuple(frees))

    def _positional(self, args: tuple[Argument, ...]) -> Fetch:
        if not args:
            return _nothing
        slots: list[int] = []
        for arg in args:
            if type(arg) is Node:
                slots.append(self.slot_of[arg])
            elif isinstance(arg, (list, dict, tuple, slice)):
                if _holds_nodes(arg) or isinstance(arg, (list, dict)):
                    return self._nested(args)
                slots.append(self._slot(load(arg, _no_node)))
            else:
                slots.append(self._slot(arg))
        return _single(slots[0]) if len(slots) == 1 else itemgetter(*slots)

    def _nested(self, value: Any) -> Fetch:
        slot_of = self.slot_of
        if not _holds_nodes(value):
            return lambda slots: load(value, _no_node)
        return lambda slots: load(value, lambda node: slots[slot_of[node]])


def _nothing(slots: Slots) -> tuple[Any, ...]:
    return ()


def _single(slot: int) -> Fetch:
    return lambda slots: (slots[slot],)


def _no_node(node: Node) -> Any:
    raise AssertionError(f"{node} in a constant")


@final
class _Planned:
    """A graph's plan, until the graph is edited; then it stops listening."""

    __slots__ = ("plan",)

    def __init__(self, plan: Plan) -> None:
        self.plan = plan

    def _forget(self, graph: Graph) -> None:
        graph.remove_listener(self)
        if _planned.get(graph) is self:
            del _planned[graph]

    def node_created(self, node: Node) -> None:
        """The plan lacks a node."""
        self._forget(node.graph)

    def node_erased(self, node: Node) -> None:
        """The plan has a node too many."""
        self._forget(node.graph)

    def node_replaced(self, old: Node, new: Node, user: Node) -> None:
        """A step has wrong arguments."""
        self._forget(user.graph)

    def node_changed(self, node: Node, field: str) -> None:
        """A step does something else, or stands elsewhere."""
        self._forget(node.graph)


_planned: Final[WeakKeyDictionary[Graph, _Planned]] = WeakKeyDictionary()


def plan_of(graph: Graph) -> Plan:
    """The steps of ``graph``; made once and kept until the graph is edited."""
    known = _planned.get(graph)
    if known is None:
        made = _Planner(graph)
        known = _Planned(Plan(made.steps, made.slots))
        _planned[graph] = known
        graph.add_listener(known)
    return known.plan
