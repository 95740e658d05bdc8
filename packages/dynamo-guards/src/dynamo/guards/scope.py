"""Where the values of one call are: arguments, cells, globals and builtins.

A scope is what sources are loaded from, at capture and when a failure is explained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import CellType, FunctionType
from typing import Final

from dynamo.guards._unbound import UNBOUND

_VARARGS: Final = 0x04
_VARKEYWORDS: Final = 0x08

# By name: mypy drops an attribute called `__builtins__` from what it caches, so that whether a plain
# access is an error depends on whether the check is the first.
_builtins_of: Final = attrgetter("__builtins__")


@dataclass(frozen=True, slots=True, weakref_slot=True)
class GuardScope:
    """The values that guards are built for.

    Args:
        arg_names: names of the arguments in the order of ``co_varnames``.
        free_names: names of the free variables in the order of ``co_freevars``.
        args: one value per argument name; ``UNBOUND`` for an argument without a value.
        closure: the function's ``__closure__``, one cell per free name, or None when there are none.
        globals: the function's ``__globals__``.
        builtins: its builtins.
    """

    arg_names: Sequence[str]
    free_names: Sequence[str]
    args: Sequence[object]
    closure: Sequence[CellType] | None
    globals: Mapping[str, object]
    builtins: Mapping[str, object]
    _places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if len(self.args) != len(self.arg_names):
            raise ValueError(f"{len(self.arg_names)} argument names but {len(self.args)} values")
        if len(self.closure or ()) != len(self.free_names):
            raise ValueError(f"{len(self.free_names)} free names but {len(self.closure or ())} cells")
        object.__setattr__(self, "_places", {name: i for i, name in enumerate(self.arg_names)})

    @classmethod
    def of_call(cls, function: FunctionType, args: Sequence[object]) -> GuardScope:
        """The scope of a call of ``function``; ``args`` in the order of its local variables at entry."""
        code = function.__code__
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & _VARARGS) + bool(code.co_flags & _VARKEYWORDS)
        return cls(
            code.co_varnames[:count],
            code.co_freevars,
            args,
            function.__closure__,
            function.__globals__,
            _builtins_of(function),
        )

    def arg_index(self, name: str) -> int:
        """Place of an argument. Raises: LookupError when there is none of that name."""
        return self._places[name]

    def cell_index(self, name: str) -> int:
        """Place of a free variable. Raises: LookupError when there is none of that name."""
        try:
            return self.free_names.index(name)
        except ValueError:
            raise LookupError(f"no free variable {name!r}") from None

    def local(self, name: str) -> object:
        """Value of an argument. Raises: LookupError when unknown or unbound."""
        value = self.args[self.arg_index(name)]
        if value is UNBOUND:
            raise LookupError(f"argument {name!r} is unbound")
        return value

    def cell(self, name: str) -> CellType:
        """Cell of a free variable. Raises: LookupError when unknown."""
        index = self.cell_index(name)
        assert self.closure is not None  # as many cells as names, checked at construction
        return self.closure[index]
