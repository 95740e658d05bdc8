"""Tests on containers and attributes: length, keys, membership, having an attribute, what a class holds."""

from __future__ import annotations

import operator
from collections.abc import Hashable
from dataclasses import dataclass
from typing import final

from dynamo.guards import _check
from dynamo.guards.kinds.clause import Clause, Test, apart, short, type_apart
from dynamo.guards.sources import Bind
from dynamo.guards.sources.steps import literal, ordered_keys


@final
@dataclass(slots=True, eq=False)
class Length(Clause):
    """Number of items of a list, tuple, dict, set or string."""

    length: int

    def text(self, ref: str, bind: Bind) -> str:
        return f"len({ref}) == {self.length}"

    def native(self) -> Test:
        return Test("TEST_LENGTH", self.length)

    def expected(self) -> str:
        return f"length {self.length}"

    def met(self, value: object) -> str:
        return f"length {len(value)}" if hasattr(value, "__len__") else short(value)


@final
@dataclass(slots=True, eq=False)
class Keys(Clause):
    """A dict has exactly these keys in this order."""

    keys: tuple[Hashable, ...]

    def text(self, ref: str, bind: Bind) -> str:
        return f"___same_keys({ref}, {bind(self.keys)})"

    def native(self) -> Test:
        return Test("TEST_DICT_KEYS", operand=self.keys)

    def expected(self) -> str:
        return f"the keys {short(list(self.keys))}"

    def met(self, value: object) -> str:
        if not isinstance(value, dict):
            return short(value)
        return f"the keys {apart(list(ordered_keys(value)), list(self.keys))}"


@final
@dataclass(slots=True, eq=False)
class Member(Clause):
    """A dict or set contains a key, or (``present=False``) does not."""

    key: Hashable
    present: bool

    def text(self, ref: str, bind: Bind) -> str:
        return f"{literal(self.key, bind)} {'in' if self.present else 'not in'} {ref}"

    def native(self) -> Test:
        return Test("TEST_CONTAINS" if self.present else "TEST_LACKS", operand=self.key)

    def expected(self) -> str:
        return f"{'a' if self.present else 'no'} key {short(self.key)}"

    def met(self, value: object) -> str:
        return f"{'no' if self.present else 'a'} key {short(self.key)}"


@final
@dataclass(slots=True, eq=False)
class HasAttribute(Clause):
    """``hasattr(value, name)``, or (``present=False``) not."""

    attr: str
    present: bool

    def text(self, ref: str, bind: Bind) -> str:
        return f"{'' if self.present else 'not '}hasattr({ref}, {self.attr!r})"

    def native(self) -> Test:
        return Test("TEST_HASATTR" if self.present else "TEST_NOT_HASATTR", operand=self.attr)

    def expected(self) -> str:
        return f"{'an' if self.present else 'no'} attribute {self.attr!r}"

    def met(self, value: object) -> str:
        return f"{'no' if self.present else 'an'} attribute {self.attr!r}"


@final
@dataclass(slots=True, eq=False)
class ClassHolds(Clause):
    """The MRO of the class ``value`` gives this object under a name (0 = nothing)."""

    attr: str
    object_id: int

    def text(self, ref: str, bind: Bind) -> str:
        return f"___class_attr_id({ref}, {self.attr!r}) == {self.object_id}"

    def native(self) -> Test:
        return Test("TEST_CLASS_ATTR", self.object_id, self.attr)

    def expected(self) -> str:
        return f"{self.attr!r} of the class unchanged"

    def met(self, value: object) -> str:
        return f"another {self.attr!r} in {short(value)}"


@final
@dataclass(slots=True, eq=False)
class IteratorAt(Clause):
    """A tuple iterator stands at a position (-1: exhausted) with so many items left."""

    index: int
    left: int

    def text(self, ref: str, bind: Bind) -> str:
        return f"___tuple_iterator_index({ref}) == {self.index} and {ref}.__length_hint__() == {self.left}"

    def native(self) -> Test:
        return Test("TEST_TUPLE_ITERATOR", -1 if self.index < 0 else self.index << 32 | self.left)

    def expected(self) -> str:
        return f"a tuple iterator at position {self.index} with {self.left} items left"

    def met(self, value: object) -> str:
        if type(value) is not type(iter(())):
            return type_apart(type(value), "tuple_iterator")
        index = _check.tuple_iterator_index(value)
        return f"one at position {index} with {operator.length_hint(value)} items left"
