"""Values that are known exactly and never change: numbers, strings, dtypes, devices, None, …"""

import enum
from typing import Any, Final, final

import torch

from dynamo.eval.errors import GraphBreak, PythonRaise, raised_by_python
from dynamo.eval.variables.base import Translator, VariableTracker, constants
from dynamo.guards import Source

SCALARS: Final = (int, float, bool, complex, str, bytes, type(None), type(...), type(NotImplemented))
TORCH_SCALARS: Final = (torch.dtype, torch.device, torch.layout, torch.memory_format)
LITERALS: Final = frozenset(SCALARS + TORCH_SCALARS)

_IMPURE_METHODS: Final = frozenset({"__setattr__", "__delattr__"})


@final
class ConstantVariable(VariableTracker):
    """A literal."""

    def __init__(self, value: Any, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value

    def builtin_content(self) -> VariableTracker | None:
        return self

    def python_type(self) -> type:
        return type(self.value)

    def describe(self) -> str:
        return repr(self.value)[:60]

    def as_python_constant(self) -> Any:
        return self.value

    def as_graph_arg(self) -> Any:
        return self.value

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        try:
            found = getattr(self.value, name)
        except AttributeError as error:
            raise PythonRaise(AttributeError, (str(error),)) from error
        if type(found) in LITERALS:
            return ConstantVariable(found)
        if callable(found):
            return ConstantMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        known = constants(args, kwargs)
        if known is None or name in _IMPURE_METHODS:
            raise GraphBreak(f"{type(self.value).__name__}.{name}() with values not known at capture")
        return fold(getattr(self.value, name), *known[0], **known[1])

    def truth(self, tx: Translator) -> bool:
        return bool(self.value)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        if not isinstance(self.value, str | bytes):
            raise GraphBreak(f"iterating over {self.describe()}")
        return [ConstantVariable(item) for item in self.value]

    def iterate(self, tx: Translator) -> VariableTracker:
        if not isinstance(self.value, str | bytes):
            raise GraphBreak(f"iterating over {self.describe()}")
        items: VariableTracker = FRESH[tuple](tuple(self.value))
        return items.iterate(tx)

    def __repr__(self) -> str:
        return f"<ConstantVariable {self.value!r}>"


@final
class OpaqueConstant(VariableTracker):
    """A constant object that code only passes on, such as the code of an inner function."""

    def __init__(self, value: Any) -> None:
        super().__init__()
        self.value = value

    def python_type(self) -> type:
        return type(self.value)


@final
class ConstantMethodVariable(VariableTracker):
    """A bound method of a literal, such as ``"a{}".format``."""

    def __init__(self, owner: ConstantVariable, name: str) -> None:
        super().__init__()
        self.owner = owner
        self.name = name

    def python_type(self) -> type:
        return type(getattr(self.owner.value, self.name))

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.owner.call_method(tx, self.name, args, kwargs)


def is_literal(value: object) -> bool:
    """Whether `value` can be a `ConstantVariable`."""
    return type(value) in LITERALS or (isinstance(value, enum.Enum) and type(value.value) in LITERALS)


def fold(function: Any, *args: Any, **kwargs: Any) -> VariableTracker:
    """Call a pure function of known values at capture.

    Raises:
        GraphBreak: it raised (Python will raise it in the right place) or gave no literal.
    """
    try:
        result = function(*args, **kwargs)
    except Exception as error:
        raise raised_by_python(error) from error
    return from_constant(result)


def from_constant(value: Any) -> VariableTracker:
    """The variable of a freshly computed immutable value.

    Raises:
        GraphBreak: the value is not a literal, nor a tuple of such.
    """
    if is_literal(value):
        return ConstantVariable(value)
    maker = FRESH.get(type(value))
    if maker is None:
        raise GraphBreak(f"a fresh {type(value).__name__}")
    made: VariableTracker = maker(value)
    return made


#: makers of variables for fresh values of other types; sequence and range kinds add themselves
FRESH: dict[type, Any] = {}
