"""Tests on what a value is: its type, its identity, its constant value, its truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, final

from dynamo.guards.kinds.clause import Clause, Test, apart, short, type_apart
from dynamo.guards.sources import Bind, Source
from dynamo.guards.sources.steps import has_literal

_PLAIN_EQUALITY: Final = (int, str, bytes)


@final
@dataclass(slots=True, eq=False)
class TypeIs(Clause):
    """``type(value)`` is exactly this class."""

    type_id: int
    type_name: str

    def text(self, ref: str, bind: Bind) -> str:
        return f"___check_type_id({ref}, {self.type_id})"

    def native(self) -> Test:
        return Test("TEST_TYPE", self.type_id)

    def expected(self) -> str:
        return f"type {self.type_name}"

    def met(self, value: object) -> str:
        return type_apart(type(value), self.type_name)


@final
@dataclass(slots=True, eq=False)
class IsObject(Clause):
    """The value is one object, known by its id; the builder watches the object's life."""

    object_id: int
    described: str

    def text(self, ref: str, bind: Bind) -> str:
        return f"___check_obj_id({ref}, {self.object_id})"

    def native(self) -> Test:
        return Test("TEST_ID", self.object_id)

    def expected(self) -> str:
        return f"the object {self.described} (id {self.object_id})"

    def met(self, value: object) -> str:
        return f"{short(value)} (id {id(value)})"


@final
@dataclass(slots=True, eq=False)
class IsSingleton(Clause):
    """The value is None, True, False, Ellipsis or NotImplemented."""

    value: object

    def text(self, ref: str, bind: Bind) -> str:
        return f"{ref} is {self.value!r}"

    def native(self) -> Test:
        return Test("TEST_ID", id(self.value))

    def expected(self) -> str:
        return repr(self.value)


@final
@dataclass(slots=True, eq=False)
class IsNotObject(Clause):
    """The value is not one object that lives forever (a singleton)."""

    value: object

    def text(self, ref: str, bind: Bind) -> str:
        return f"{ref} is not {self.value!r}"

    def native(self) -> Test:
        return Test("TEST_NOT_ID", id(self.value))

    def expected(self) -> str:
        return f"anything but {self.value!r}"


@final
@dataclass(slots=True, eq=False)
class Equals(Clause):
    """The type is that of a constant and the value equals it, down to bits."""

    value: object
    type_id: int

    def text(self, ref: str, bind: Bind) -> str:
        if type(self.value) in _PLAIN_EQUALITY and has_literal(self.value):
            return f"___check_type_id({ref}, {self.type_id}) and {ref} == {self.value!r}"
        return f"___same({ref}, {bind(self.value)})"

    def native(self) -> Test:
        return Test("TEST_EQUAL", operand=self.value)

    def expected(self) -> str:
        return f"type {type(self.value).__qualname__}, {short(self.value)}"

    def met(self, value: object) -> str:
        cls = type(self.value)
        return apart(value, self.value) if type(value) is cls else type_apart(type(value), cls.__qualname__)


@final
@dataclass(slots=True, eq=False)
class Truth(Clause):
    """``bool(value)``; only on types whose truth runs no user code."""

    truth: bool

    def text(self, ref: str, bind: Bind) -> str:
        return f"bool({ref}) is {self.truth}"

    def native(self) -> Test:
        return Test("TEST_BOOL", int(self.truth))

    def expected(self) -> str:
        return f"a value that is {'true' if self.truth else 'false'}"


@final
@dataclass(slots=True, eq=False)
class Same(Clause):
    """Two sources give one object, or (``same=False``) two."""

    other: Source
    same: bool

    def text(self, ref: str, bind: Bind) -> str:
        return f"{ref} is {'' if self.same else 'not '}{self.other.expression(bind)}"

    def native(self) -> Test:
        return Test("TEST_ALIAS" if self.same else "TEST_NOT_ALIAS", other=self.other)

    def expected(self) -> str:
        return f"{'the same object as' if self.same else 'another object than'} {self.other.name()}"

    def met(self, value: object) -> str:
        return "another object" if self.same else "the same object"


@final
@dataclass(slots=True, eq=False)
class IsUnbound(Clause):
    """The source names nothing: an argument without a value, an empty cell, an absent global."""

    def text(self, ref: str, bind: Bind) -> str:
        return f"___is_unbound(lambda: {ref})"

    def native(self) -> Test:
        return Test("TEST_UNBOUND")

    def expected(self) -> str:
        return "no value"


@final
@dataclass(slots=True, eq=False)
class IsAlive(Clause):
    """A weak reference still points to its object."""

    def text(self, ref: str, bind: Bind) -> str:
        return f"{ref}() is not None"

    def native(self) -> Test:
        return Test("TEST_WEAKREF")

    def expected(self) -> str:
        return "a weak reference to a living object"


@final
@dataclass(slots=True, eq=False)
class Holds(Clause):
    """A predicate of the user: a callable of the value that gives a bool."""

    predicate: object
    words: str

    def text(self, ref: str, bind: Bind) -> str:
        return f"{bind(self.predicate)}({ref})"

    def native(self) -> Test:
        return Test("TEST_CALL", operand=self.predicate)

    def expected(self) -> str:
        return self.words
