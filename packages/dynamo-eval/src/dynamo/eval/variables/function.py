"""Python functions, those that exist and those that the frame makes, and their bound methods."""

import inspect
import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from dynamo.eval.effects import AttributeWrite
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.cell import CellVariable
from dynamo.eval.variables.constant import ConstantVariable, from_constant
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.lookup import NoSuchAttribute
from dynamo.eval.variables.sequence import TupleVariable
from dynamo.eval.variables.wrap import Builder, wrap_value
from dynamo.guards import AttrSource, ItemSource, Source


@dataclass(frozen=True, slots=True)
class FrameParts:
    """What a call needs of a function: its code and everything that the code reaches by itself."""

    code: types.CodeType
    namespace: dict[str, Any]
    namespace_source: Source | None
    cells: dict[str, CellVariable]
    defaults: Sequence[VariableTracker]
    keyword_defaults: Mapping[str, VariableTracker]


class FunctionVariable(VariableTracker):
    """What can be followed into: has code."""

    mutable = True

    def python_type(self) -> type:
        return types.FunctionType

    def parts(self, tx: Translator) -> FrameParts:
        """The pieces of the function, read and guarded."""
        raise NotImplementedError

    def truth(self, tx: Translator) -> bool:
        return True

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return tx.inline(self, args, kwargs)


@final
class UserFunctionVariable(FunctionVariable):
    """A function that existed before the frame began."""

    def __init__(self, value: types.FunctionType, source: Source | None) -> None:
        super().__init__(source)
        self.value = value

    def describe(self) -> str:
        return f"function {self.value.__qualname__}()"

    def as_python_constant(self) -> Any:
        return self.value

    def parts(self, tx: Translator) -> FrameParts:
        function, source = self.value, self.source
        if source is None:
            raise GraphBreak(f"{self.describe()} whose origin is not known")
        build = Builder(tx.output)
        defaults = [
            build(value, ItemSource(AttrSource(source, "__defaults__"), i))
            for i, value in enumerate(function.__defaults__ or ())
        ]
        keyword_defaults = {
            name: build(value, ItemSource(AttrSource(source, "__kwdefaults__"), name))
            for name, value in (function.__kwdefaults__ or {}).items()
        }
        cells = {
            name: cell_variable(tx, cell, ItemSource(AttrSource(source, "__closure__"), i))
            for i, (name, cell) in enumerate(
                zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
            )
        }
        return FrameParts(
            function.__code__,
            function.__globals__,
            AttrSource(source, "__globals__"),
            cells,
            defaults,
            keyword_defaults,
        )

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        source = self.source
        written = tx.output.effects.find(AttributeWrite(self, name, None))
        if isinstance(written, AttributeWrite):
            if not isinstance(written.value, VariableTracker):
                raise NoSuchAttribute(f"AttributeError: 'function' object has no attribute {name!r}")
            return realize(written.value)
        if name in ("__name__", "__qualname__", "__module__", "__doc__"):
            return ConstantVariable(getattr(self.value, name))
        if source is None:
            raise GraphBreak(f"attribute {name!r} of {self.describe()}")
        if name == "__code__":
            return CodeVariable(self.value.__code__, AttrSource(source, name))
        if name in ("__defaults__", "__kwdefaults__", "__annotations__"):
            return wrap_value(tx.output, getattr(self.value, name), AttrSource(source, name))
        if name in self.value.__dict__:
            return wrap_value(tx.output, self.value.__dict__[name], AttrSource(source, name))
        if hasattr(types.FunctionType, name):
            raise GraphBreak(f"attribute {name!r} of {self.describe()}")
        tx.output.guard_absent(source, name)
        raise NoSuchAttribute(f"AttributeError: 'function' object has no attribute {name!r}")

    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        if hasattr(types.FunctionType, name):
            raise GraphBreak(f"storing attribute {name!r} of {self.describe()}")
        if value is None:
            self.get_attr(tx, name)
        tx.output.effects.note(AttributeWrite(self, name, value))


@final
class CodeVariable(VariableTracker):
    """The code of a function; the function's own guard holds it."""

    def __init__(self, value: types.CodeType, source: Source) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return types.CodeType

    def as_python_constant(self) -> Any:
        return self.value

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if not name.startswith("co_") or name in ("co_consts", "co_positions", "co_lines"):
            raise GraphBreak(f"attribute {name!r} of a code object")
        return from_constant(getattr(self.value, name))


def cell_variable(tx: Translator, cell: types.CellType, source: Source) -> CellVariable:
    """The one variable of an existing cell, by whichever way it is reached first."""
    known = tx.output.wrapped.get(id(cell))
    if known is not None:
        return known[1]  # type: ignore[no-any-return]  # cells are entered only here
    var = CellVariable(outer=True, source=source)
    try:
        content = cell.cell_contents
    except ValueError:
        tx.output.guard(AttrSource(source, "cell_contents"), "UNBOUND")
    else:
        var.content = Builder(tx.output)(content, AttrSource(source, "cell_contents"))
    tx.output.wrapped[id(cell)] = (cell, var)
    return var


@final
class NestedFunctionVariable(FunctionVariable):
    """A function that the frame made with ``def`` or ``lambda``."""

    def __init__(
        self,
        code: types.CodeType,
        namespace: dict[str, Any],
        namespace_source: Source | None,
        defaults: VariableTracker | None,
        keyword_defaults: VariableTracker | None,
        annotations: VariableTracker | None,
        closure: Sequence[CellVariable],
    ) -> None:
        super().__init__()
        self.code = code
        self.namespace = namespace
        self.namespace_source = namespace_source
        self.defaults = defaults
        self.keyword_defaults = keyword_defaults
        self.annotations = annotations
        self.closure = list(closure)

    @property
    def hashed_by_identity(self) -> bool:
        return True

    def describe(self) -> str:
        return f"function {self.code.co_qualname}()"

    def parts(self, tx: Translator) -> FrameParts:
        defaults = realize(self.defaults).unpack(tx) if self.defaults is not None else []
        named: dict[str, VariableTracker] = {}
        if self.keyword_defaults is not None:
            given = realize(self.keyword_defaults)
            assert isinstance(given, DictVariable)
            named = {key: realize(value) for key, (_, value) in given.entries.items()}
        return FrameParts(
            self.code,
            self.namespace,
            self.namespace_source,
            dict(zip(self.code.co_freevars, self.closure, strict=True)),
            defaults,
            named,
        )

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name == "__name__":
            return ConstantVariable(self.code.co_name)
        if name == "__qualname__":
            return ConstantVariable(self.code.co_qualname)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")


@final
class MethodVariable(VariableTracker):
    """A function bound to its first argument."""

    mutable = True

    def __init__(
        self, function: VariableTracker, owner: VariableTracker, source: Source | None = None
    ) -> None:
        super().__init__(source)
        self.function = function
        self.owner = owner

    def python_type(self) -> type:
        return types.MethodType

    def describe(self) -> str:
        return f"method {self.function.describe()}"

    def truth(self, tx: Translator) -> bool:
        return True

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name == "__self__":
            return self.owner
        if name == "__func__":
            return self.function
        return self.function.get_attr(tx, name)

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.function.call(tx, [self.owner, *args], kwargs)


def bind(
    parts: FrameParts, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
) -> dict[str, VariableTracker]:
    """Distribute arguments over parameters as a call does.

    Raises:
        GraphBreak: Python would raise TypeError, and will.
    """
    code = parts.code
    names = code.co_varnames
    count, only = code.co_argcount, code.co_kwonlyargcount
    positional, keyword_only = names[:count], names[count : count + only]
    bound: dict[str, VariableTracker] = dict(zip(positional, args, strict=False))
    place = count + only
    wrong = GraphBreak(f"TypeError: {code.co_name}() called with arguments that do not fit")
    if code.co_flags & inspect.CO_VARARGS:
        bound[names[place]] = TupleVariable(list(args[count:]))
        place += 1
    elif len(args) > count:
        raise wrong
    extra: list[tuple[VariableTracker, VariableTracker]] = []
    nameable = set(positional[code.co_posonlyargcount :]) | set(keyword_only)
    for name, value in kwargs.items():
        if name in nameable:
            if name in bound:
                raise wrong
            bound[name] = value
        else:
            extra.append((ConstantVariable(name), value))
    if code.co_flags & inspect.CO_VARKEYWORDS:
        bound[names[place]] = DictVariable(extra)
    elif extra:
        raise wrong
    for name, value in zip(positional[count - len(parts.defaults) :], parts.defaults, strict=True):
        bound.setdefault(name, value)
    for name, value in parts.keyword_defaults.items():
        bound.setdefault(name, value)
    if any(name not in bound for name in (*positional, *keyword_only)):
        raise wrong
    return bound
