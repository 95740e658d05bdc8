"""One walk that sees whether any invariant of the graph proper is broken, without saying which.

``Graph.lint`` runs after every pass of a careful user, on graphs that are almost always well formed; so the rules,
which explain, run only when this walk answers no.  Every rule has a test that it is heard here too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fx.ir import _checks
from fx.ir._args import PLAIN
from fx.ir._immutable import EMPTY, immutable_dict
from fx.ir._order import END
from fx.ir._uses import uses
from fx.ir.errors import GraphError
from fx.ir.lint.rules import has_good_count, is_frozen
from fx.ir.names import RESERVED
from fx.ir.node import Node

if TYPE_CHECKING:
    from fx.ir.graph import Graph


def holds(graph: Graph) -> bool:
    """Do all invariants hold, except those about the index and the owning module?"""
    root = graph._root
    names = graph._names
    named, is_identifier, empty = names.get, str.isidentifier, EMPTY
    before = root
    node = root._next
    label = node._label - 1
    seen: set[Node] = set()
    see = seen.add
    uses_made = uses_noted = placeholders = 0
    while node is not root:  # labels grow, so that a ring that leaves out the root is heard
        name, args, here = node._name, node._args, node._label
        if (
            node._prev is not before
            or node.graph is not graph
            or here <= label
            or named(name) is not node
            or not is_identifier(name)
            or type(args) is not tuple
        ):
            return False
        if node._op == "call_function":
            if not callable(node._target):
                return False
        elif not _other_operation_fits(node):
            return False
        elif node._op == "placeholder":
            placeholders += 1
        made = 0
        nested = node._kwargs is not empty or node._pending is not None
        for arg in args:
            kind = type(arg)
            if kind is Node:
                users = arg._users
                if arg not in seen or not (users is node or (type(users) is dict and node in users)):
                    return False
                made += 1
            elif kind not in PLAIN:
                nested = True
        if nested:
            made = _nested_uses(node, seen)
            if made < 0:
                return False
        elif made > 1:
            made = len({arg for arg in args if type(arg) is Node})
        uses_made += made
        noted = node._users
        if noted is not None:
            uses_noted += len(noted) if type(noted) is dict else 1
        see(node)
        label, before, node = here, node, node._next
    if (
        root._prev is not before
        or uses_made != uses_noted
        or root._label != END
        or not (before is root or label < END)
    ):
        return False
    if any(names[name] is not None for name in names.keys() & RESERVED):
        return False
    return len(graph._placeholders) == placeholders and _tables_match(graph, seen)


def _other_operation_fits(node: Node) -> bool:
    """The rules "opcode", "arguments" and "output" for everything but ``call_function``."""
    try:
        _checks.operation(node._op, node._target)
    except GraphError:
        return False
    return has_good_count(node) and not (node._op == "output" and node._users is not None)


def _nested_uses(node: Node, seen: set[Node]) -> int:
    """How many nodes ``node`` takes; negative if an argument of it is wrong."""
    inputs = node.all_input_nodes
    if type(node._kwargs) is not immutable_dict or type(node._args) is not tuple:
        return -1
    if not (all(map(is_frozen, node._args)) and all(map(is_frozen, node._kwargs.values()))):
        return -1
    if not all(value in seen and uses(node, value) for value in inputs):
        return -1
    return len(inputs)


def _tables_match(graph: Graph, seen: set[Node]) -> bool:
    """The rules about what the graph notes of its nodes."""
    number = len(seen)
    named = len(graph._names) - list(graph._names.values()).count(None)
    uids = {node.uid for node in seen}
    placeholders = graph._placeholders
    if graph._len != number or named != number or len(uids) != number:
        return False
    if uids and not (min(uids) >= 0 and max(uids) < graph._created):
        return False
    if graph._anchor.graph is not graph or graph._anchor._erased:
        return False
    try:
        return all(
            node in seen
            and node._op == "placeholder"
            and _checks.placeholder(str(node._target), placeholders, node) == parameter
            for parameter, node in placeholders.items()
        )
    except GraphError:
        return False
