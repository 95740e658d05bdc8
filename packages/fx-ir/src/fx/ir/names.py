"""Names of nodes: legal, unique, stable.

A name is made from a candidate (the target's name in snake case, or what the caller wishes) and, if that is taken, a
number.  A name is never given twice in the life of a graph, also not after its node was erased: a name that was read
once keeps its meaning.  The rules are torch.fx's, so that the same sequence of creations gives the same names.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Container
from functools import lru_cache
from typing import Final, NamedTuple

_HUMP: Final = re.compile(r"(?<=[a-z])([A-Z])")
_ILLEGAL: Final = re.compile(r"[^0-9a-zA-Z_]+")
_NUMBERED: Final = re.compile(r"([a-zA-Z_][0-9a-zA-Z_]*?)(?:_(\d+))?")

RESERVED: Final = frozenset(keyword.kwlist) | frozenset(dir(builtins)) | {
    "inf", "nan", "NoneType", "torch", "device", "fx_pytree", "pytree",
}  # fmt: skip
"""What no node may be called: keywords, builtins, and what generated code finds in its globals."""


class Candidate(NamedTuple):
    """A legal name, split for numbering."""

    name: str
    base: str
    number: int | None
    reserved: bool


@lru_cache(maxsize=1 << 14)
def candidate(text: str) -> Candidate:
    """``text`` as an identifier: illegal characters become ``_``, an empty or digit-led name gets one in front."""
    match = _NUMBERED.fullmatch(text)
    if match is None:
        text = _ILLEGAL.sub("_", text) or "_unnamed"
        if text[0].isdigit():
            text = f"_{text}"
        match = _NUMBERED.fullmatch(text)
        assert match is not None, text
    base, number = match.groups()
    return Candidate(text, base, None if number is None else int(number), text in RESERVED)


@lru_cache(maxsize=1 << 14)
def target_candidate(text: str, is_callable: bool) -> Candidate:
    """The candidate that a target's name gives: ``conv2d`` for ``Conv2d``, ``add`` for the method ``__add__``."""
    if not is_callable and text.startswith("__") and text.endswith("__"):
        text = text[2:-2]
    return candidate(_HUMP.sub(r"_\1", text).lower())


def name_of_target(target: object) -> Candidate:
    """The candidate for a node that has this target."""
    if type(target) is str:
        return target_candidate(target, False)
    name = getattr(target, "__name__", None)
    return target_candidate(name if isinstance(name, str) else type(target).__name__, True)


class Namespace:
    """Hands out unique names; for generated code, which needs names beside those of the nodes.

    >>> names = Namespace()
    >>> names.create_name("add"), names.create_name("add"), names.create_name("list")
    ('add', 'add_1', 'list_1')
    """

    __slots__ = ("_counts", "_names", "_used")

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._counts: dict[str, int] = {}
        self._names: dict[object, str] = {}

    def create_name(self, text: str, obj: object | None = None) -> str:
        """A new name like ``text``; with ``obj``, the same name on every call with that object."""
        if obj is not None and obj in self._names:
            return self._names[obj]
        name = unique(candidate(text), self._used, self._counts)
        self._used.add(name)
        if obj is not None:
            self._names[obj] = name
        return name


def unique(wish: Candidate, used: Container[str], counts: dict[str, int]) -> str:
    """The first free name for ``wish``; ``counts`` (base → last number) is updated, ``used`` is not."""
    name, base, number, reserved = wish
    if number is None or name in used:
        number = counts.get(base, 0)
        if reserved:
            number += 1
            name = f"{base}_{number}"
    while name in used:
        number += 1
        name = f"{base}_{number}"
    counts[base] = number
    return name
