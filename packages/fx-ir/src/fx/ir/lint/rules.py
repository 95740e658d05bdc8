"""The invariants of a graph, one function each: it yields a :class:`Breach` for every place where it does not hold.

Public edits keep all of them; they can be broken only through private fields, or (the last one) by changing the
owning module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from fx.ir import _checks
from fx.ir._args import DICT, LIST, kind_of, nodes_in
from fx.ir._immutable import immutable_dict, immutable_list
from fx.ir._order import END
from fx.ir._uses import uses
from fx.ir.errors import GraphError
from fx.ir.names import RESERVED

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node


@dataclass(frozen=True, slots=True)
class Breach:
    """One place where an invariant does not hold."""

    rule: str
    message: str
    nodes: tuple[Node, ...] = ()

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


Found = Iterator[tuple[str, "tuple[Node, ...]"]]
Rule = Callable[["Graph", "list[Node]"], Found]

RULES: Final[dict[str, Callable[[Graph, list[Node]], Iterable[Breach]]]] = {}
"""Name → rule; a rule takes the graph and its nodes in order."""


def rule(name: str) -> Callable[[Rule], Rule]:
    """Register a rule under ``name``."""

    def register(function: Rule) -> Rule:
        def run(graph: Graph, nodes: list[Node]) -> Iterator[Breach]:
            for message, involved in function(graph, nodes):
                yield Breach(name, message, involved)

        RULES[name] = run
        return function

    return register


@rule("links")
def _links(graph: Graph, nodes: list[Node]) -> Found:
    """Neighbours point to each other, all the way round."""
    before = graph._root
    for node in [*nodes, graph._root]:
        if node._prev is not before:
            yield f"node {node} does not point back to node {before}, which stands before it", (node, before)
        before = node


@rule("length")
def _length(graph: Graph, nodes: list[Node]) -> Found:
    """The number of nodes is what ``len`` says."""
    if graph._len != len(nodes):
        yield f"the graph counts {graph._len} nodes and has {len(nodes)}", ()


@rule("owner")
def _owner(graph: Graph, nodes: list[Node]) -> Found:
    """Every node belongs to the graph in whose list it stands."""
    for node in nodes:
        if node.graph is not graph:
            yield f"node {node} stands in this graph but belongs to another", (node,)


@rule("erased")
def _erased(graph: Graph, nodes: list[Node]) -> Found:
    """No erased node stands in the list, nor does anything take one."""
    for node in nodes:
        if node._erased:
            yield f"node {node} stands in the graph but is marked as erased", (node,)
        for value in nodes_in((node._args, node._kwargs)):
            if value._erased and node._pending is None:
                yield f"node {node} takes node {value}, which was erased", (node, value)


@rule("order")
def _order(graph: Graph, nodes: list[Node]) -> Found:
    """Order labels grow along the list."""
    for before, node in pairwise(nodes):
        if not before._label < node._label:
            yield f"the order labels of nodes {before} and {node} do not grow", (before, node)
    if graph._root._label != END:
        yield "the root has lost its order label", ()


@rule("definition")
def _definition(graph: Graph, nodes: list[Node]) -> Found:
    """Every input stands before its user, in the same graph."""
    seen: set[Node] = set()
    for node in nodes:
        for value in node.all_input_nodes:
            if value.graph is not graph:
                yield f"node {node} takes node {value}, which belongs to another graph", (node, value)
            elif value not in seen and not value._erased:
                yield f"node {node} takes node {value}, which is not computed before it", (node, value)
        seen.add(node)


@rule("users")
def _users(graph: Graph, nodes: list[Node]) -> Found:
    """``users`` holds exactly the nodes that take the value."""
    for node in nodes:
        for value in node.all_input_nodes:
            if not uses(node, value):
                yield f"node {node} takes node {value} but is not among its users", (node, value)
        for user in node.users:
            if user._erased or node not in user.all_input_nodes:
                yield f"node {user} is among the users of node {node} but does not take it", (node, user)


@rule("frozen")
def _frozen(graph: Graph, nodes: list[Node]) -> Found:
    """Arguments are immutable all the way down."""
    for node in nodes:
        if type(node._args) is not tuple or type(node._kwargs) is not immutable_dict:
            yield f"the arguments of node {node} can be changed without its knowledge", (node,)
        elif not (all(map(is_frozen, node._args)) and all(map(is_frozen, node._kwargs.values()))):
            yield f"an argument of node {node} holds a list or dict that can be changed", (node,)


def is_frozen(value: Any) -> bool:
    """Is ``value`` immutable all the way down, as far as containers go?"""
    kind = kind_of(type(value))
    if kind == LIST:
        return type(value) is immutable_list and all(map(is_frozen, value))
    if kind == DICT:
        return type(value) is immutable_dict and all(map(is_frozen, value.values()))
    return not isinstance(value, tuple) or all(map(is_frozen, value))


@rule("opcode")
def _opcode(graph: Graph, nodes: list[Node]) -> Found:
    """The opcode is one of the six, and the target fits it."""
    for node in nodes:
        try:
            _checks.operation(node._op, node._target)
        except GraphError as error:
            yield f"node {node}: {error}", (node,)


@rule("arguments")
def _arguments(graph: Graph, nodes: list[Node]) -> Found:
    """An output has one argument, a placeholder at most one, a method call at least one."""
    for node in nodes:
        if not has_good_count(node):
            shown = f"{len(node._args)} positional and {len(node._kwargs)} keyword arguments"
            yield f"{node._op} node {node} cannot have {shown}", (node,)


_BOUNDS: Final = {"output": (1, 1), "placeholder": (0, 1), "call_method": (1, 1 << 60)}


def has_good_count(node: Node) -> bool:
    """Does ``node`` have as many arguments as its opcode allows?"""
    bounds = _BOUNDS.get(node._op)
    if bounds is None:
        return True
    low, high = bounds
    return low <= len(node._args) <= high and not (node._kwargs and node._op != "call_method")


@rule("names")
def _names(graph: Graph, nodes: list[Node]) -> Found:
    """Names are identifiers, given once, and lead to their node."""
    seen: dict[str, Node] = {}
    for node in nodes:
        name = node._name
        if not name.isidentifier() or name in RESERVED:
            yield f"{name!r} cannot be the name of a node", (node,)
        if name in seen:
            yield f"two nodes are named {name}", (seen[name], node)
        elif graph._names.get(name) is not node:
            yield f"the name {name} does not lead to its node", (node,)
        seen[name] = node
    for name, named in graph._names.items():
        if named is not None and named is not seen.get(name):
            yield f"the name {name} leads to a node that does not stand in the graph under it", (named,)


@rule("placeholders")
def _placeholders(graph: Graph, nodes: list[Node]) -> Found:
    """Every placeholder has a parameter name of its own."""
    seen: dict[str, Node] = {}
    for node in nodes:
        if node._op != "placeholder" or not isinstance(node._target, str):
            continue
        try:
            parameter = _checks.placeholder(node._target, seen, node)
        except GraphError as error:
            yield str(error), (node,)
            continue
        seen[parameter] = node
    if seen != graph._placeholders:
        yield "the table of placeholders does not match the placeholders", tuple(seen.values())


@rule("output")
def _output(graph: Graph, nodes: list[Node]) -> Found:
    """Nothing takes the value of an output."""
    for node in nodes:
        if node._op == "output" and node._users is not None:
            yield f"the output {node} has users", (node, *node.users)


@rule("identity")
def _identity(graph: Graph, nodes: list[Node]) -> Found:
    """No two nodes have one ``uid``, and none a number still to be given."""
    seen: dict[int, Node] = {}
    for node in nodes:
        if node.uid in seen:
            yield f"nodes {seen[node.uid]} and {node} have one uid", (seen[node.uid], node)
        elif not 0 <= node.uid < graph._created:
            yield f"the uid of node {node} was never given by its graph", (node,)
        seen[node.uid] = node


@rule("index")
def _index(graph: Graph, nodes: list[Node]) -> Found:
    """The index by op and target, where there is one, holds every node."""
    index = graph._index
    if index is None:
        return
    for node in nodes:
        if not index.holds(node):
            yield f"node {node} is missing in the index by op and target", (node,)
    if len(index) != len(nodes):
        yield "the index by op and target holds nodes that are not in the graph", ()


@rule("insertion point")
def _insertion_point(graph: Graph, nodes: list[Node]) -> Found:
    """The insertion point is a node of the graph, or its root."""
    anchor = graph._anchor
    if anchor.graph is not graph or anchor._erased:
        yield f"the insertion point is at node {anchor}, which is not in the graph", (anchor,)


@rule("owning module")
def _owning_module(graph: Graph, nodes: list[Node]) -> Found:
    """What ``get_attr`` and ``call_module`` speak of exists in the owning module."""
    owner = graph.owning_module
    if owner is None:
        return
    known: dict[tuple[str, object], str | None] = {}
    for node in nodes:
        if node._op in ("get_attr", "call_module") and isinstance(node._target, str):
            key = (node._op, node._target)
            if key not in known:
                known[key] = _missing(owner, node._target, node._op == "call_module")
            if known[key] is not None:
                yield f"node {node}: {known[key]}", (node,)


def _missing(owner: object, path: str, must_be_callable: bool) -> str | None:
    """What is wrong with ``path``, or ``None``."""
    found: Any = owner
    walked: list[str] = []
    for part in path.split("."):
        if not hasattr(found, part):
            where = ".".join(walked) or "the owning module"
            return f"target {path} does not exist: {where} has no attribute {part}"
        found = getattr(found, part)
        walked.append(part)
    if must_be_callable and not callable(found):
        return f"target {path} is no module that could be called"
    return None
