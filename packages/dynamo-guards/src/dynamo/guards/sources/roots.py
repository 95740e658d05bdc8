"""Where paths start: an argument, a cell, a global, a builtin, a constant, the ambient state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import final

from dynamo.guards.sources.base import Bind, GuardSource, Load, Scope, Source

GLOBALS = "___globals"
BUILTINS = "___builtins"
CELLS = "___cells"


def parameter_name(name: str) -> str:
    """An argument's name as a legal identifier: ``.0`` of a comprehension becomes ``___implicit0``."""
    return name if name.isidentifier() else "___implicit" + name.replace(".", "")


def _from_mapping(mapping: object, name: str) -> object:
    assert isinstance(mapping, Mapping)
    return mapping[name]


@final
@dataclass(frozen=True, slots=True)
class LocalSource(Source):
    """An argument of the frame at entry."""

    local_name: str

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    def expression(self, bind: Bind) -> str:
        return parameter_name(self.local_name)

    def load(self, scope: Scope) -> object:
        return scope.local(self.local_name)

    def native(self, scope: Scope) -> Load:
        return Load("ARG", scope.arg_index(self.local_name))


@final
@dataclass(frozen=True, slots=True)
class ClosureSource(Source):
    """The content of a free variable's cell."""

    free_name: str

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.CLOSURE

    def expression(self, bind: Bind) -> str:
        return f"{CELLS}[{self.free_name!r}].cell_contents"

    def load(self, scope: Scope) -> object:
        try:
            return scope.cell(self.free_name).cell_contents
        except ValueError:
            raise LookupError(f"free variable {self.free_name!r} is unbound") from None

    def native(self, scope: Scope) -> Load:
        return Load("CELL_CONTENT", scope.cell_index(self.free_name))


@final
@dataclass(frozen=True, slots=True)
class CellSource(Source):
    """The cell of a free variable itself."""

    free_name: str

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.CLOSURE

    def expression(self, bind: Bind) -> str:
        return f"{CELLS}[{self.free_name!r}]"

    def load(self, scope: Scope) -> object:
        return scope.cell(self.free_name)

    def native(self, scope: Scope) -> Load:
        return Load("CELL", scope.cell_index(self.free_name))


@final
@dataclass(frozen=True, slots=True)
class GlobalSource(Source):
    """A global variable of the function."""

    global_name: str

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.GLOBAL

    def expression(self, bind: Bind) -> str:
        return f"{GLOBALS}[{self.global_name!r}]"

    def load(self, scope: Scope) -> object:
        return _from_mapping(scope.globals, self.global_name)

    def native(self, scope: Scope) -> Load:
        return Load("GLOBAL", 0, hash(self.global_name), self.global_name)


@final
@dataclass(frozen=True, slots=True)
class BuiltinSource(Source):
    """A name of the function's builtins; that no global hides it is a guard of its own (`GLOBAL_ABSENT`)."""

    builtin_name: str

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.BUILTIN

    def expression(self, bind: Bind) -> str:
        return f"{BUILTINS}[{self.builtin_name!r}]"

    def load(self, scope: Scope) -> object:
        return _from_mapping(scope.builtins, self.builtin_name)

    def native(self, scope: Scope) -> Load:
        return Load("BUILTIN", 0, hash(self.builtin_name), self.builtin_name)


@final
@dataclass(frozen=True, slots=True, eq=False)
class ConstantSource(Source):
    """A value that capture made itself and that cannot change; it is kept alive."""

    value: object
    label: str = ""

    def __eq__(self, other: object) -> bool:
        """Whether both hold one and the same object; its own ``==`` would say less, and may run code."""
        return isinstance(other, ConstantSource) and self.value is other.value

    def __hash__(self) -> int:
        return hash((ConstantSource, id(self.value)))

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.CONSTANT

    def expression(self, bind: Bind) -> str:
        return bind(self.value)

    def name(self) -> str:
        return self.label or repr(self.value)

    def load(self, scope: Scope) -> object:
        return self.value

    def native(self, scope: Scope) -> Load:
        return Load("CONSTANT", 0, 0, self.value)


@final
@dataclass(frozen=True, slots=True)
class AmbientSource(Source):
    """No value but the state of torch around the call."""

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.AMBIENT

    def expression(self, bind: Bind) -> str:
        return "None"

    def load(self, scope: Scope) -> object:
        return None

    def native(self, scope: Scope) -> Load:
        return Load("CONSTANT")
