"""Which strings may stand in source as a name, and what the values of the nodes are called there.

Node names and parameter names come from outside, so nothing is pasted into source that was not checked here.  A name
is *plain* if the parser reads it back as the same string: an identifier, no keyword, and already in the NFKC form to
which the parser brings identifiers (PEP 3131).
"""

from __future__ import annotations

import builtins
import keyword
import unicodedata
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from fx.ir import Node

UNASSIGNABLE: Final = frozenset(keyword.kwlist) | {"__debug__"}
"""Identifiers to which nothing can be assigned."""

BUILTINS: Final = frozenset(dir(builtins))


@lru_cache(maxsize=1 << 14)
def is_plain(name: str) -> bool:
    """Can ``name`` stand in source as a name, and mean itself?"""
    if not name.isidentifier() or name in UNASSIGNABLE:
        return False
    return name.isascii() or unicodedata.normalize("NFKC", name) == name


def free_name(wish: str, taken: set[str]) -> str:
    """``wish``, or ``wish`` with the first number that makes it free; it is taken afterwards."""
    name, number = wish, 0
    while name in taken:
        number += 1
        name = f"{wish}_{number}"
    taken.add(name)
    return name


class Locals(NamedTuple):
    """The names inside one generated function."""

    root: str
    """The parameter that holds the root module."""
    placeholders: list[Node]
    names: dict[Node, str]
    """Variable of every node's value; the node's name, unless that cannot be."""
    parameters: dict[Node, str]
    """Parameter of every placeholder; its target, unless that cannot be."""
    taken: set[str]
    """All of these: globals must be called otherwise."""


def assign_names(nodes: Sequence[Node], root: str) -> Locals:
    """Decide what every value is called.  Parameters have the first choice, as callers may pass them by keyword."""
    names = {node: node.name for node in nodes}
    placeholders = [node for node in nodes if node.op == "placeholder"]
    taken = set(names.values())
    parameters: dict[Node, str] = {}
    seen: set[str] = set()
    for node in placeholders:
        wish = str(node.target).lstrip("*")
        if not is_plain(wish) or wish in seen:
            wish = (
                free_name(node.name, seen | taken)
                if node.name in seen or not is_plain(node.name)
                else node.name
            )
        parameters[node] = wish
        seen.add(wish)
    if root in seen:
        root = free_name(root, taken | seen)
    _rename(names, parameters, root, taken, seen)
    return Locals(root, placeholders, names, parameters, taken | seen | {root})


def _rename(
    names: dict[Node, str], parameters: dict[Node, str], root: str, taken: set[str], seen: set[str]
) -> None:
    """Give another variable to every node whose name is no variable, or is that of another thing."""
    suspects = taken & (UNASSIGNABLE | {root} | seen)
    if not "".join(taken).isascii():
        suspects |= {name for name in taken if not is_plain(name)}
    if not suspects:
        return
    used = taken | seen | {root}
    for node, name in names.items():
        if name in suspects and (name != parameters.get(node) or not is_plain(name)):
            wish = name if is_plain(name) or name in UNASSIGNABLE else "value"
            names[node] = free_name(wish, used)
            taken.add(names[node])
