"""Clauses to a Python function: one line per clause, the user's line of each in a comment.

``___guarded_code.valid and ___check_type_id(y, 943…) and y == 2 and ___check_tensors(x)``

Names with three underscores belong to the check; `parameter_name` keeps arguments' names as they are.

Source: seed "TorchDynamo overview", part on making guards.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from types import CellType, CodeType, FunctionType
from typing import Any, Final

from dynamo.guards import _check, ambient
from dynamo.guards._unbound import UNBOUND
from dynamo.guards.kinds.clause import Clause
from dynamo.guards.kinds.relations import Related
from dynamo.guards.kinds.tensors import TensorIs
from dynamo.guards.sources.roots import BUILTINS, CELLS, GLOBALS, parameter_name
from dynamo.guards.sources.steps import has_literal, super_lookup

VALID: Final = "___guarded_code.valid"
MISSING: Final = (AttributeError, LookupError, ValueError)
"""What reading an absent value raises: a miss, not worth a report (an empty cell raises ValueError)."""

CheckFn = Callable[..., bool]
_numbers = count()


def _class_attr_id(cls: type, name: str) -> int:
    try:
        return id(_check.class_lookup(cls, name))
    except AttributeError:
        return 0


def _is_unbound(read: Callable[[], object]) -> bool:
    try:
        return read() is UNBOUND
    except (NameError, *MISSING):
        return True


FUNCTIONS: Final[Mapping[str, object]] = {
    "___check_type_id": _check.check_type_id,
    "___check_obj_id": _check.check_obj_id,
    "___same": _check.same,
    "___same_keys": _check.same_keys,
    "___class_lookup": _check.class_lookup,
    "___class_attr_id": _class_attr_id,
    "___super_lookup": super_lookup,
    "___tuple_iterator_index": _check.tuple_iterator_index,
    "___tuple_iterator_item": _check.tuple_iterator_item,
    "___is_unbound": _is_unbound,
    "___ambient": ambient.read,
    "___modes_are": ambient.modes_are,
    "___missing": MISSING,
}
"""What generated text may call."""


_SAFE_BUILTINS: Final[Mapping[str, object]] = {
    **{call.__name__: call for call in (hasattr, getattr, len, type, list, bool, Exception)},
    "Ellipsis": ...,
    "NotImplemented": NotImplemented,
}
"""The builtins of generated text: those at import, whatever the user does to the module later."""


class Binder:
    """Names for objects without a literal form, one name per object."""

    def __init__(self) -> None:
        self.objects: dict[str, object] = {}
        self._names: dict[int, str] = {}

    def __call__(self, value: object) -> str:
        if has_literal(value):
            return repr(value)
        name = self._names.get(id(value))
        if name is None:
            word = type(value).__name__.lstrip("_").lower()
            name = self._names[id(value)] = f"___{word}_{len(self.objects)}"
            self.objects[name] = value
        return name


class _TensorChecks:
    """``___check_tensors(x, y)``: each tensor against its spec."""

    def __init__(self, specs: Sequence[_check.TensorSpec]) -> None:
        self._specs = specs

    def __call__(self, *tensors: object) -> bool:
        return all(spec.check(tensor) for spec, tensor in zip(self._specs, tensors, strict=True))


def user_comment(clauses: Sequence[Clause]) -> str:
    """``  # toy.py:14`` for the lines that made the clauses, or nothing."""
    lines = dict.fromkeys(c.guard.user_line for c in clauses if c.guard.user_line is not None)
    words = ", ".join(f"{file}:{line}" for file, line in lines)
    return "  # " + " ".join(words.splitlines()) if lines else ""  # a file's name may hold anything


@dataclass(frozen=True, slots=True)
class CheckText:
    """A generated check: its parts, its whole text, its code, and the objects that it names."""

    code_parts: tuple[str, ...]
    verbose_code_parts: tuple[str, ...]
    source: str
    code: CodeType
    objects: Mapping[str, object]
    arg_names: tuple[str, ...]

    def bind(
        self,
        guarded_code: object,
        report: Callable[[BaseException], bool],
        cells: Mapping[str, CellType],
        globals: Mapping[str, object],
        builtins: Mapping[str, object],
    ) -> CheckFn:
        """The check, looking at these cells, globals and builtins."""
        return self.function("check_fn", guarded_code, report, cells, globals, builtins)

    def function(
        self,
        name: str,
        guarded_code: object,
        report: Callable[[BaseException], bool],
        cells: Mapping[str, CellType],
        globals: Mapping[str, object],
        builtins: Mapping[str, object],
    ) -> Callable[..., Any]:
        """The function of this text, whatever it gives, under a name of its own."""
        env: dict[str, object] = {
            **FUNCTIONS,
            **self.objects,
            "__builtins__": _SAFE_BUILTINS,
            "___guarded_code": guarded_code,
            "___report": report,
            GLOBALS: globals,
            BUILTINS: builtins,
            CELLS: cells,
        }
        return FunctionType(self.code, env, name)


def _part(clause: Clause, binder: Binder) -> tuple[str, str]:
    return clause.text(clause.source.expression(binder), binder), user_comment([clause])


def _parts(clauses: Sequence[Clause], binder: Binder) -> list[tuple[str, str]]:
    parts = [(VALID, "")]
    tensors: list[TensorIs] = []
    relations: list[Related] = []
    for clause in clauses:
        if isinstance(clause, TensorIs):
            tensors.append(clause)
        elif isinstance(clause, Related):
            relations.append(clause)
        else:
            parts.append(_part(clause, binder))
    if tensors:
        refs = ", ".join(clause.source.expression(binder) for clause in tensors)
        parts.append((f"___check_tensors({refs})", user_comment(tensors)))
        binder.objects["___check_tensors"] = _TensorChecks([clause.spec for clause in tensors])
    parts += [_part(clause, binder) for clause in relations]  # they read what the tests before them vouch for
    return parts


def _compiled(source: str, filename: str) -> CodeType:
    module = compile(source, filename, "exec")
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    return next(const for const in module.co_consts if isinstance(const, CodeType))


def generate(clauses: Sequence[Clause], arg_names: Sequence[str]) -> CheckText:
    """The Python form of a check."""
    binder = Binder()
    parts = _parts(clauses, binder)
    names = tuple(parameter_name(name) for name in arg_names)
    joined = "\n            and ".join(text + comment for text, comment in parts)
    source = (
        f"def check_fn({', '.join((*names, '/')) if names else ''}):\n"
        f"    try:\n        return (\n            {joined}\n        )\n"
        "    except ___missing:\n        return False\n"
        "    except Exception as ___error:\n        return ___report(___error)\n"
    )
    filename = f"<guards {next(_numbers)}>"
    code = _compiled(source, filename)
    verbose = tuple(text + comment for text, comment in parts)
    return CheckText(tuple(text for text, _ in parts), verbose, source, code, binder.objects, names)


def generate_single(clauses: Sequence[Clause], arg_names: Sequence[str]) -> CheckText:
    """A function of the check's arguments that gives one function for each clause, to be asked one by one."""
    binder = Binder()
    parts = [_part(clause, binder) for clause in clauses]
    names = tuple(parameter_name(name) for name in arg_names)
    joined = "".join(f"\n        lambda: {text},{comment}" for text, comment in parts)
    source = f"def clauses({', '.join((*names, '/')) if names else ''}):\n    return ({joined}\n    )\n"
    code = _compiled(source, f"<guards {next(_numbers)}, one by one>")
    verbose = tuple(text + comment for text, comment in parts)
    return CheckText(tuple(text for text, _ in parts), verbose, source, code, binder.objects, names)
