"""The name tables of a code object: which index a name or a constant has, and the growth of the tables.

Fast locals, cells and free variables share one array at run time ("localsplus"): first `co_varnames`, then those
cells that are not also locals, then the free variables. A name may stand in it twice: 3.12 inlines comprehensions,
whose variable may be called like a free variable, and a class body may have `__class__` as a cell and as a free
variable. So locals and cells are looked up apart, and the decoded index is kept where it still has that name.

Source: CPython, Objects/codeobject.c (get_localsplus_counts, init_code).
"""

from __future__ import annotations

from collections.abc import Sequence
from types import CodeType
from typing import final

from .errors import AssembleError

__all__ = ["NameTables", "cell_names", "localsplus_names"]


def localsplus_names(code: CodeType) -> tuple[str, ...]:
    """Names of the run-time array of locals, cells and free variables, in its order."""
    return code.co_varnames + cell_names(code.co_varnames, code.co_cellvars) + code.co_freevars


def cell_names(varnames: Sequence[str], cellvars: Sequence[str]) -> tuple[str, ...]:
    """Those cells that have a slot of their own, because they are not locals (arguments) as well."""
    known = frozenset(varnames)
    return tuple(name for name in cellvars if name not in known)


def _constant_key(value: object) -> object:
    """Equal keys mean interchangeable constants: same type, same value, same sign of zero."""
    if value is None or value is Ellipsis or type(value) in (int, str, bytes, bool):
        return type(value), value
    if type(value) in (float, complex):
        return type(value), repr(value)
    if type(value) is tuple:
        return tuple, tuple(_constant_key(item) for item in value)
    return id(value)


@final
class NameTables:
    """Tables that start as those given and grow as instructions ask for more."""

    __slots__ = (
        "_cell_index",
        "_cells",
        "_const_ids",
        "_const_keys",
        "_local_index",
        "_name_index",
        "_plus",
        "cellvars",
        "consts",
        "freevars",
        "names",
        "varnames",
    )

    def __init__(
        self,
        names: Sequence[str],
        varnames: Sequence[str],
        cellvars: Sequence[str],
        freevars: Sequence[str],
        consts: Sequence[object],
    ) -> None:
        self.names = list(names)
        self.varnames = tuple(varnames)
        self.cellvars = tuple(cellvars)
        self.freevars = tuple(freevars)
        self.consts = list(consts)
        self._name_index = {name: index for index, name in reversed(list(enumerate(self.names)))}
        self._const_ids = {id(value): index for index, value in reversed(list(enumerate(self.consts)))}
        self._const_keys: dict[object, int] | None = None
        self._local_index = {name: index for index, name in enumerate(self.varnames)}
        own_cells = cell_names(self.varnames, self.cellvars)
        first = len(self.varnames)
        self._cell_index = {name: self._local_index.get(name, -1) for name in self.cellvars}
        self._cell_index.update((name, first + index) for index, name in enumerate(own_cells))
        first += len(own_cells)
        self._cell_index.update((name, first + index) for index, name in enumerate(self.freevars))
        self._plus = (*self.varnames, *own_cells, *self.freevars)
        # A local that is no cell may have the name of a free variable: its slot is none of the cell's.
        shared = frozenset(self.cellvars)
        self._cells = (
            *(name if name in shared else None for name in self.varnames),
            *own_cells,
            *self.freevars,
        )

    def by_kind(self) -> tuple[Sequence[object] | None, ...]:
        """The table of each `Kind` of operand that has one: constants, names, locals, cells."""
        return None, self.consts, self.names, self._plus, self._cells

    def const(self, value: object, hint: int | None) -> int:
        """Index of a constant; `hint` is taken when that very object stands there."""
        if hint is not None and 0 <= hint < len(self.consts) and self.consts[hint] is value:
            return hint
        index = self._const_ids.get(id(value))
        if index is not None:
            return index
        if self._const_keys is None:
            self._const_keys = {_constant_key(value): index for index, value in enumerate(self.consts)}
        index = self._const_keys.setdefault(_constant_key(value), len(self.consts))
        if index == len(self.consts):
            self.consts.append(value)
            self._const_ids[id(value)] = index
        return index

    def name(self, value: object, hint: int | None) -> int:
        """Index of a name of a global, attribute or module."""
        if hint is not None and 0 <= hint < len(self.names) and self.names[hint] == value:
            return hint
        if not isinstance(value, str):
            raise AssembleError(f"a name must be a str, not {value!r}")
        index = self._name_index.setdefault(value, len(self.names))
        if index == len(self.names):
            self.names.append(value)
        return index

    def local(self, value: object, hint: int | None) -> int:
        """Slot of a fast local; 3.12 and later may also ask for a cell's own slot (LOAD_FAST_AND_CLEAR of a cell).

        Raises:
            AssembleError: no such variable.
        """
        if hint is not None and 0 <= hint < len(self._plus) and self._plus[hint] == value:
            return hint
        if isinstance(value, str):
            index = self._local_index.get(value)
            if index is None:
                index = self._cell_index.get(value)
            if index is not None:
                return index
        raise AssembleError(f"no local variable is called {value!r}; give `varnames` that hold it")

    def cell(self, value: object, hint: int | None) -> int:
        """Slot of a cell or free variable.

        Raises:
            AssembleError: no such variable.
        """
        if hint is not None and 0 <= hint < len(self._cells) and self._cells[hint] == value:
            return hint
        if isinstance(value, str):
            index = self._cell_index.get(value)
            if index is None:
                index = self._local_index.get(value)
            if index is not None:
                return index
        raise AssembleError(
            f"no cell or free variable is called {value!r}; give `cellvars` or `freevars` that hold it"
        )
