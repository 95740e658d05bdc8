"""What the six emitters share: names of values, globals, and how an argument is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fx.codegen.annotations import annotation
from fx.codegen.comments import value_annotation
from fx.codegen.globals import Globals
from fx.codegen.literals import LITERALS, writer_of
from fx.codegen.names import Locals, is_plain
from fx.ir import Node


class Writer:
    """The state of one run over a graph; emitters read it and add globals, they never write lines themselves."""

    __slots__ = ("describe_with", "globals", "names", "parameters", "root")

    def __init__(self, names: Locals, describe_with: Mapping[str, Any] | None = None) -> None:
        self.describe_with = describe_with
        self.names = names.names
        self.parameters = names.parameters
        self.root = names.root
        self.globals = Globals(names.taken)

    def value(self, value: Any) -> str:
        """The expression for one argument: a variable, or a literal."""
        cls = type(value)
        if cls is Node:
            return self.names[value]
        write = LITERALS.get(cls)
        return (writer_of(cls) if write is None else write)(value, self)

    def operand(self, value: Any) -> str:
        """An expression that binds as tightly as a name: to stand before ``.``, ``**`` or after ``-``."""
        if type(value) is Node:
            return self.names[value]
        text = self.value(value)
        return text if is_plain(text) else f"({text})"

    def arguments(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """What stands between the parentheses of a call.

        From the first keyword on that is no plain name, keywords go into one ``**{...}``, which keeps their order.
        """
        names = self.names
        parts = []
        for arg in args:
            if type(arg) is Node:
                parts.append(names[arg])
            else:
                cls = type(arg)
                parts.append((LITERALS.get(cls) or writer_of(cls))(arg, self))
        if kwargs:
            self._keywords(kwargs, parts)
        return ", ".join(parts)

    def _keywords(self, kwargs: Mapping[str, Any], parts: list[str]) -> None:
        odd: list[str] = []
        for key, arg in kwargs.items():
            cls = type(arg)
            text = self.names[arg] if cls is Node else (LITERALS.get(cls) or writer_of(cls))(arg, self)
            if odd or not is_plain(key):
                odd.append(f"{self.value(key)}: {text}")
            else:
                parts.append(f"{key} = {text}")
        if odd:
            parts.append("**{" + ", ".join(odd) + "}")

    def attribute(self, base: str, path: str) -> str:
        """``base.path``; steps that are no plain names are fetched with ``getattr``."""
        if is_plain(path):
            return f"{base}.{path}"
        if path:
            for atom in path.split("."):
                base = (
                    f"{base}.{atom}"
                    if is_plain(atom)
                    else f"{self.globals.builtin('getattr')}({base}, {quote(atom)})"
                )
        return base

    def annotated(self, node: Node) -> str:
        """The left side of the assignment that makes the value of ``node``."""
        if node.type is None and self.describe_with is None:
            return self.names[node]
        if self.describe_with is not None:
            text = value_annotation(node, self.describe_with)
            if text is not None:
                return f"{self.names[node]}: {text}"
        if node.type is None:
            return self.names[node]
        return f"{self.names[node]} : {self.annotation(node.type)}"

    def annotation(self, value: Any) -> str:
        """The expression for a type."""
        return annotation(value, self.globals)


def quote(text: str) -> str:
    """A string literal, in double quotes where that needs no escape."""
    return f'"{text}"' if text.isprintable() and '"' not in text and "\\" not in text else repr(text)
