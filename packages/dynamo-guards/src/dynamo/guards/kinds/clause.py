"""Clause: one elementary test on one source, in its three forms: Python text, native instruction, words.

A guard kind (a `GuardBuilder` method) is a few clauses.  Both forms of a check are made from the same clauses, which is
why they agree.
"""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, NamedTuple

from dynamo.guards.sources import Bind, Guard, Source


class Test(NamedTuple):
    """One native test: opcode name, number, operand, a second source for aliasing, a place for ambient state.

    ``related`` are the sources whose values a relation takes beside that of its own source.
    """

    op: str
    number: int = 0
    operand: object = None
    other: Source | None = None
    place: int | None = None
    related: tuple[Source, ...] = ()


_LONG_INT_BITS: Final = 4096
"""Longer ints have no repr: Python refuses to write them (`sys.set_int_max_str_digits`)."""


def short(value: object, limit: int = 80) -> str:
    """A repr that never raises and never fills the screen."""
    if type(value) is int and value.bit_length() > _LONG_INT_BITS:
        return f"<int of {value.bit_length()} bits>"
    try:
        text = repr(value)
    except Exception as error:  # the user's __repr__ may do anything
        text = f"<{type(value).__qualname__} whose repr raises {type(error).__name__}>"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def apart(value: object, expected: object) -> str:
    """`short` of a value that must not read like another one: where both begin alike, what comes after."""
    text = short(value)
    if text != short(expected):
        return text
    whole, other = short(value, sys.maxsize), short(expected, sys.maxsize)
    place = len(os.path.commonprefix((whole, other)))
    if whole == other:
        return f"another {text}"
    here, there = (each[max(place - 1, 0) : place + 20] for each in (whole, other))
    return f"{text} that has …{here} where …{there} was, from character {place} of its repr"


def type_apart(cls: type, expected: str) -> str:
    """``type int``; ``another type Net`` for a class that has the name of the expected one."""
    name = cls.__qualname__
    return f"another type {name}" if name == expected else f"type {name}"


@dataclass(slots=True, eq=False)
class Clause(ABC):
    """One test; ``guard`` is the one that made it (for its kind and the user's line).

    Never changed once made.  It is not frozen because that would double the time to make one, and a check of a model
    makes thousands.
    """

    guard: Guard
    source: Source

    @abstractmethod
    def text(self, ref: str, bind: Bind) -> str:
        """The test as a Python expression; ``ref`` is the source's expression."""

    @abstractmethod
    def native(self) -> Test:
        """The test as an instruction on the source's register."""

    @abstractmethod
    def expected(self) -> str:
        """What must hold, in words that follow "expected"."""

    def met(self, value: object) -> str:
        """What is there instead."""
        return short(value)
