"""Arguments that nest deeper than the parser reads in one expression: written in several statements.

CPython's parser stops at 200 open brackets (``MAXLEVEL`` in Parser/tokenizer.h).  A container that many levels down
goes into a variable of its own, in front of the statement that needs it and in its line.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from fx.codegen.emit.writer import Writer
from fx.codegen.literals import is_container
from fx.ir import Node

_LEVELS: Final = 40
"""After so many levels a variable is made."""

SHORTEST: Final = 2 * 160
"""A statement of fewer characters holds no argument that nests too deep."""

_DEEPEST: Final = 160


def nests_too_deep(statement: str) -> bool:
    """May the parser refuse ``statement``?"""
    return statement.count("(") + statement.count("[") + statement.count("{") > _DEEPEST


def in_several_statements(write: Callable[[Node, Writer], str], node: Node, to: Writer) -> str:
    """What ``write`` writes for ``node``, with the parts that lie deep in variables of their own, in one line."""
    deep = _DeepWriter(to)
    made = [(deep.put_aside(value), text) for value, text in map(deep.written, _deep_parts(node))]
    statement = write(node, deep)
    if not made:
        return statement
    parts = [f"{name} = {text}" for name, text in made]
    if node.op == "output":
        return ";  ".join([*parts, statement])
    return ";  ".join([*parts, statement, " = ".join([name for name, _ in made]) + " = None"])


def _deep_parts(node: Node) -> list[Any]:
    """The containers at every so many levels, deepest first; found without recursion."""
    found: list[tuple[int, Any]] = []
    level, layer = 0, [*node.args, *node.kwargs.values()]
    while layer:
        layer = [value for value in layer if is_container(value)]
        if level and level % _LEVELS == 0:
            found.extend((level, value) for value in layer)
        layer = [item for value in layer for item in _items(value)]
        level += 1
    return [value for _, value in reversed(found)]


def _items(value: Any) -> list[Any]:
    if isinstance(value, slice):
        return [value.start, value.stop, value.step]
    return [*value.keys(), *value.values()] if isinstance(value, dict) else list(value)


class _DeepWriter(Writer):
    """Writes as the writer that it was made from, with variables for what was put aside."""

    __slots__ = ("_aside",)

    def __init__(self, to: Writer) -> None:
        self.describe_with, self.names, self.parameters = to.describe_with, to.names, to.parameters
        self.root, self.globals = to.root, to.globals
        self._aside: dict[int, str] = {}

    def written(self, value: Any) -> tuple[Any, str]:
        """``value`` and its expression."""
        return value, super().value(value)

    def put_aside(self, value: Any) -> str:
        """The variable that stands for ``value`` from now on."""
        name = self._aside[id(value)] = self.globals.local("nested")
        return name

    def value(self, value: Any) -> str:
        """As :meth:`Writer.value`."""
        return self._aside.get(id(value)) or super().value(value)
