"""Source and Guard: where a value comes from, and what must stay true of it.

A source is an access path from the frame's arguments, cells and globals to one value: frozen, hashable, without the
value itself.  Roots start a path, steps extend one.  A guard joins a source to a method of ``GuardBuilder``.

Source: seed "TorchDynamo overview", part on making guards (``Guard``, ``GuardSource``, ``make_guard``).
"""

from __future__ import annotations

import enum
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import CellType
from typing import NamedTuple, Protocol


class GuardSource(enum.Enum):
    """Which part of the frame a path starts in; the order is the order of checking."""

    CONSTANT = 0
    LOCAL = 1
    CLOSURE = 2
    GLOBAL = 3
    BUILTIN = 4
    LOCAL_NN_MODULE = 5
    GLOBAL_NN_MODULE = 6
    AMBIENT = 7

    def is_nn_module(self) -> bool:
        """Whether the path goes through an ``nn.Module``."""
        return self in (GuardSource.LOCAL_NN_MODULE, GuardSource.GLOBAL_NN_MODULE)

    def is_local(self) -> bool:
        """Whether the path starts at an argument or a free variable."""
        return self in (GuardSource.LOCAL, GuardSource.CLOSURE, GuardSource.LOCAL_NN_MODULE)


class Scope(Protocol):
    """What a source is loaded from."""

    @property
    def globals(self) -> object: ...
    @property
    def builtins(self) -> object: ...
    def arg_index(self, name: str) -> int: ...
    def cell_index(self, name: str) -> int: ...
    def local(self, name: str) -> object: ...
    def cell(self, name: str) -> CellType: ...


class Load(NamedTuple):
    """One native load: opcode name, place in the frame (roots only), number, operand."""

    op: str
    place: int = 0
    number: int = 0
    operand: object = None


Bind = Callable[[object], str]
"""Gives a Python object that has no literal form a name in the generated check."""


@dataclass(frozen=True, slots=True)
class Source(ABC):
    """An access path to one value."""

    @property
    def base(self) -> Source | None:
        """The path that this one extends, None for a root."""
        return None

    @property
    @abstractmethod
    def guard_source(self) -> GuardSource:
        """Where the path starts."""

    @abstractmethod
    def expression(self, bind: Bind) -> str:
        """The path as Python, in terms of the generated check's names."""

    @abstractmethod
    def load(self, scope: Scope) -> object:
        """The present value. Raises: LookupError or AttributeError when there is none."""

    @abstractmethod
    def native(self, scope: Scope) -> Load:
        """The load of this step, given that the base is in a register.

        Raises: ValueError, saying why, when the step cannot be followed without running the user's code.
        """

    def name(self) -> str:
        """The path as a person reads it: a Python expression wherever the keys are literals."""
        return self.expression(repr)

    def reconstruct(self) -> str:
        """Python that gives the value again; the same text as `name`."""
        return self.name()

    @property
    def depth(self) -> int:
        """Number of steps from the root."""
        return 0 if self.base is None else self.base.depth + 1

    def make_guard(self, create_fn: Callable[..., None], user_line: tuple[str, int] | None = None) -> Guard:
        """A guard on this value; ``create_fn`` is an unbound ``GuardBuilder`` method."""
        return Guard(self.name(), self.guard_source, create_fn, self, user_line)


@dataclass(frozen=True, slots=True)
class Guard:
    """What must stay true of the value that ``name`` names.

    Args:
        name: Python expression of the value.
        source: where it starts; a `Source` is taken as the value's own path.
        create_fn: unbound method of ``GuardBuilder`` (or a ``functools.partial`` of one).
        origin: the path; without it the builder reads it off ``name``.
        user_line: file and line of the user's code that made the guard necessary.
    """

    name: str
    source: GuardSource | Source
    create_fn: Callable[..., None]
    origin: Source | None = None
    user_line: tuple[str, int] | None = None

    def __post_init__(self) -> None:
        if isinstance(self.source, Source):
            path = self.source
            object.__setattr__(self, "origin", path)
            object.__setattr__(self, "source", path.guard_source)

    @property
    def kind(self) -> str:
        """Name of the builder method, e.g. ``TYPE_MATCH``."""
        function = self.create_fn.func if isinstance(self.create_fn, partial) else self.create_fn
        return str(getattr(function, "__name__", function))

    def is_nn_module(self) -> bool:
        """Whether ``guard_nn_modules=False`` leaves this guard out."""
        return isinstance(self.source, GuardSource) and self.source.is_nn_module()

    def sort_key(self) -> tuple[int, int, str, str]:
        """Bases before what is reached through them; then by name, then by kind."""
        place = self.source.value if isinstance(self.source, GuardSource) else 0
        return place, self.origin.depth if self.origin is not None else 0, self.name, self.kind

    def create(self, builder: object) -> None:
        """Run ``create_fn`` on a builder."""
        self.create_fn(builder, self)
