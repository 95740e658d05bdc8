"""Queries: which nodes of a graph look like this?  Patterns are data, and can be written as text.

>>> import operator
>>> from fx.ir import Graph
>>> graph = Graph()
>>> x = graph.placeholder("x")
>>> y = graph.call_function(operator.add, (x, 1))
>>> select(graph, NodePattern(target=operator.add, args=(ANY, 1)))
[add]
>>> select(graph, parse_pattern("operator.add(x, _)"))
[add]
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, final

from fx.ir.errors import GraphError
from fx.ir.node import Node
from fx.ir.targets import qualified_name
from fx.ir.types import Op, Target

if TYPE_CHECKING:
    from fx.ir.graph import Graph


class PatternError(GraphError, ValueError):
    """The text of a pattern cannot be read."""


@final
class _Any:
    """Matches every argument."""

    def __repr__(self) -> str:
        return "_"


ANY: Final = _Any()
"""Matches every argument."""


@dataclass(frozen=True)
class NodePattern:
    """What a node must look like; what is ``None`` may be anything.

    ``target`` is a callable, or text that is compared with the target's qualified name: a shell pattern (``torch.*``),
    or the end of it (``add`` finds ``operator.add``).  ``name`` is a shell pattern.  Items of ``args`` and ``kwargs``
    are :data:`ANY`, nested patterns, tuples and lists of those, or values; ``args`` must be as many as the node's,
    ``kwargs`` only have to be among them.  ``users`` is the number of users.
    """

    op: Op | None = None
    target: Target | None = None
    name: str | None = None
    args: tuple[object, ...] | None = None
    kwargs: Mapping[str, object] | None = None
    users: int | None = None

    def matches(self, node: Node) -> bool:
        """Does ``node`` look like this?"""
        return (
            (self.op is None or node.op == self.op)
            and (self.name is None or fnmatchcase(node.name, self.name))
            and (self.users is None or len(node.users) == self.users)
            and (self.target is None or _target_matches(self.target, node.target))
            and (self.args is None or _argument_matches(self.args, node.args))
            and (self.kwargs is None or _kwargs_match(self.kwargs, node.kwargs))
        )


def select(graph: Graph, pattern: NodePattern) -> list[Node]:
    """The nodes of ``graph`` that look like ``pattern``, in order; by the index if it gives op and callable."""
    if pattern.op is not None and callable(pattern.target):
        return [
            node for node in graph.find_nodes(op=pattern.op, target=pattern.target) if pattern.matches(node)
        ]
    return [node for node in graph.nodes if pattern.matches(node)]


def _target_matches(wanted: Target, target: Target) -> bool:
    if not isinstance(wanted, str):
        return wanted is target or wanted == target
    name = target if isinstance(target, str) else qualified_name(target)
    return fnmatchcase(name, wanted) or name.endswith(f".{wanted}")


def _kwargs_match(wanted: Mapping[str, object], kwargs: Mapping[str, Any]) -> bool:
    return all(key in kwargs and _argument_matches(value, kwargs[key]) for key, value in wanted.items())


def _argument_matches(wanted: object, value: Any) -> bool:
    if wanted is ANY:
        return True
    if isinstance(wanted, NodePattern):
        return isinstance(value, Node) and wanted.matches(value)
    if isinstance(wanted, tuple | list):
        return (
            isinstance(value, tuple if isinstance(wanted, tuple) else list)
            and len(wanted) == len(value)
            and all(map(_argument_matches, wanted, value))
        )
    if isinstance(wanted, Node) or isinstance(value, Node):
        return wanted is value
    return type(wanted) is type(value) and bool(wanted == value)


def parse_pattern(text: str) -> NodePattern:
    """A pattern from text like ``torch.add(_, relu(x), alpha=2)``.

    A call stands for a node with that target; a bare name for the node named so; ``_`` for anything; literals for
    themselves.  ``name(...)`` leaves the arguments open.  The text is parsed, never evaluated.

    Raises:
        PatternError: the text is none of that.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError) as error:
        raise PatternError(
            f"{text!r} is no pattern: write something like torch.add(_, relu(x), alpha=2)"
        ) from error
    pattern = _read(tree, text)
    if isinstance(pattern, NodePattern):
        return pattern
    if pattern is ANY:
        return NodePattern()
    raise PatternError(f"{text!r} is a value; a pattern is a call such as add(_, 1), or the name of a node")


def _read(tree: ast.expr, text: str) -> object:
    if isinstance(tree, ast.Name):
        return ANY if tree.id == "_" else NodePattern(name=tree.id)
    if isinstance(tree, ast.Call):
        kwargs = {key.arg: _read(key.value, text) for key in tree.keywords if key.arg is not None}
        if len(kwargs) != len(tree.keywords):
            raise PatternError(f"{text!r}: ** has no meaning in a pattern")
        open_end = (
            len(tree.args) == 1 and isinstance(tree.args[0], ast.Constant) and tree.args[0].value is ...
        )
        args = None if open_end else tuple(_read(arg, text) for arg in tree.args)
        return NodePattern(target=ast.unparse(tree.func), args=args, kwargs=kwargs or None)
    if isinstance(tree, ast.Tuple):
        return tuple(_read(item, text) for item in tree.elts)
    if isinstance(tree, ast.List):
        return [_read(item, text) for item in tree.elts]
    try:
        return ast.literal_eval(tree)
    except ValueError as error:
        raise PatternError(f"{text!r}: {ast.unparse(tree)} has no meaning in a pattern") from error
