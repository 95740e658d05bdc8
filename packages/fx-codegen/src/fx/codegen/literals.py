"""How a constant is written, so that reading it back gives the same value to the last bit.

A registry by class.  A writer gets the value and the :class:`~fx.codegen.emit.writer.Writer`, and returns an
expression.  What no writer knows becomes a global that holds the object itself: always exact, also for tensors and
objects without a ``repr`` that means anything.

Exactness, by case: ``float`` keeps the sign of zero, and a nan whose bits are not those of ``nan`` is carried as an
object; ``complex`` is written as a call, because ``-0+1j`` is an addition that loses the sign; integers of any length
are written in hexadecimal once decimal digits are limited (PEP 670's ``sys.set_int_max_str_digits``).
"""

from __future__ import annotations

import enum
import math
import struct
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias, TypeVar

import torch
from torch._ops import HigherOrderOperator, OpOverload, OpOverloadPacket

from fx.codegen.globals import hint_for
from fx.codegen.names import is_plain
from fx.ir import immutable_dict, immutable_list

if TYPE_CHECKING:
    from fx.codegen.emit.writer import Writer

_T = TypeVar("_T")
Write: TypeAlias = "Callable[[Any, Writer], str]"

LITERALS: Final[dict[type, Write]] = {}
"""Class → how its instances (not those of subclasses) are written."""

FAMILIES: Final[dict[type, Write]] = {}
"""Class → how instances of its subclasses are written."""

_NAN: Final = struct.pack("<d", math.nan)
_DECIMAL_BITS: Final = 2000


def register_literal(*classes: type, subclasses: bool = False) -> Callable[[Write], Write]:
    """Decorator: write the instances of ``classes`` with this function, those of subclasses too if asked.

    Raises:
        ValueError: one of the classes has a writer already.
    """
    table = FAMILIES if subclasses else LITERALS

    def register(write: Write) -> Write:
        for cls in classes:
            if cls in table:
                raise ValueError(f"{cls.__qualname__} has a writer already")
            table[cls] = write
        return write

    return register


def writer_of(cls: type) -> Write:
    """The writer for values whose class is exactly ``cls``; remembered in :data:`LITERALS`."""
    if issubclass(cls, tuple) and hasattr(cls, "_fields"):
        found: Write = _named_tuple
    else:
        found = next((FAMILIES[base] for base in cls.__mro__ if base in FAMILIES), _object)
    LITERALS[cls] = found
    return found


def is_container(value: object) -> bool:
    """Is ``value`` written as brackets around what it holds?"""
    return isinstance(value, tuple | list | dict | slice)


def _object(value: object, to: Writer) -> str:
    return to.globals.reference(value, hint_for(value))


@register_literal(type(None), bool, str, bytes)
def _repr(value: object, to: Writer) -> str:
    return repr(value)


@register_literal(int)
def _int(value: int, to: Writer) -> str:
    return repr(value) if value.bit_length() < _DECIMAL_BITS else hex(value)


@register_literal(float)
def _float(value: float, to: Writer) -> str:
    if math.isfinite(value):
        return repr(value)
    if value == math.inf:
        return to.globals.reference(math.inf, "inf")
    if value == -math.inf:
        return "-" + to.globals.reference(math.inf, "inf")
    if struct.pack("<d", value) == _NAN:
        return to.globals.reference(math.nan, "nan")
    return to.globals.reference(value, "nan")


@register_literal(complex)
def _complex(value: complex, to: Writer) -> str:
    return f"{to.globals.builtin('complex')}({_float(value.real, to)}, {_float(value.imag, to)})"


@register_literal(types.EllipsisType)
def _ellipsis(value: object, to: Writer) -> str:
    return to.globals.builtin("Ellipsis")


@register_literal(slice)
def _slice(value: slice[Any, Any, Any], to: Writer) -> str:
    parts = f"{to.value(value.start)}, {to.value(value.stop)}, {to.value(value.step)}"
    return f"{to.globals.builtin('slice')}({parts})"


@register_literal(range)
def _range(value: range, to: Writer) -> str:
    step = "" if value.step == 1 else f", {_int(value.step, to)}"
    return f"{to.globals.builtin('range')}({_int(value.start, to)}, {_int(value.stop, to)}{step})"


@register_literal(tuple)
def _tuple(value: tuple[Any, ...], to: Writer) -> str:
    if len(value) == 1:
        return f"({to.value(value[0])},)"
    return f"({', '.join([to.value(item) for item in value])})"


@register_literal(list, immutable_list)
def _list(value: list[Any], to: Writer) -> str:
    return f"[{', '.join([to.value(item) for item in value])}]"


@register_literal(dict, immutable_dict)
def _dict(value: dict[Any, Any], to: Writer) -> str:
    return "{" + ", ".join([f"{to.value(key)}: {to.value(item)}" for key, item in value.items()]) + "}"


def _named_tuple(value: Any, to: Writer) -> str:
    return f"{to.globals.path(type(value))}({', '.join([to.value(item) for item in value])})"


@register_literal(enum.Enum, subclasses=True)
def _enum(value: enum.Enum, to: Writer) -> str:
    cls, name = type(value), value.name
    if isinstance(name, str) and is_plain(name) and getattr(cls, name, None) is value:
        return f"{to.globals.reference(cls, cls.__name__)}.{name}"
    return _object(value, to)


@register_literal(torch.dtype, torch.layout, torch.memory_format)
def _torch_name(value: object, to: Writer) -> str:
    name = str(value).removeprefix("torch.")
    return (
        to.globals.torch_path(f"torch.{name}") if getattr(torch, name, None) is value else _object(value, to)
    )


@register_literal(torch.device)
def _device(value: torch.device, to: Writer) -> str:
    index = "" if value.index is None else f", index={value.index}"
    return f"{to.globals.reference(torch.device, 'device')}(type={value.type!r}{index})"


@register_literal(torch.Size)
def _size(value: torch.Size, to: Writer) -> str:
    return f"{to.globals.torch_path('torch.Size')}({_list(list(value), to)})"


@register_literal(type, OpOverload, OpOverloadPacket, HigherOrderOperator, subclasses=True)
@register_literal(types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
def _callable(value: object, to: Writer) -> str:
    return to.globals.path(value)
