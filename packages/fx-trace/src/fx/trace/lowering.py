"""Arguments of a traced program as a graph can hold them.

The common types are looked up by exact type in a table; subclasses, data classes, enumerations and objects that lower themselves
take the slower way.
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, cast

import torch

from fx.ir import Argument, Node
from fx.trace.errors import ArgumentTypeError
from fx.trace.location import location_of_user

__all__ = ["LEAVES", "RULES", "Lowering", "lower_by_shape"]


class Lowering(Protocol):
    """The part of a tracer that lowering needs."""

    def create_arg(self, a: Any, /) -> Argument:
        """Lower one argument."""
        ...

    def create_node(
        self, kind: Any, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Argument], /
    ) -> Node:
        """Insert a node that makes an argument."""
        ...


def _as_is(tracer: Lowering, a: Any) -> Argument:
    return cast("Argument", a)


def _lower_tuple(tracer: Lowering, a: tuple[Any, ...]) -> Argument:
    elements: list[Argument] = [tracer.create_arg(element) for element in a]
    return tuple(elements)


def _lower_list(tracer: Lowering, a: list[Any]) -> Argument:
    return [tracer.create_arg(element) for element in a]


def _lower_dict(tracer: Lowering, a: Mapping[Any, Any]) -> Argument:
    lowered: dict[str, Argument] = {}
    for key, value in a.items():
        if type(key) is not str:
            _refuse_traced_key(key)
        lowered[key] = tracer.create_arg(value)
    return lowered


def _refuse_traced_key(key: object) -> None:
    parts = key if isinstance(key, (tuple, frozenset)) else (key,)
    if any(isinstance(part, Node) or isinstance(getattr(part, "node", None), Node) for part in parts):
        raise ArgumentTypeError(
            f"Keys for dictionaries used as an argument cannot contain a traced value. Got key: {key!r}. Use a plain key.",
            location_of_user(),
        )


def _lower_slice(tracer: Lowering, a: slice) -> Argument:
    return slice(tracer.create_arg(a.start), tracer.create_arg(a.stop), tracer.create_arg(a.step))


def lower_by_shape(tracer: Lowering, a: Any) -> Argument:
    """Lower what the table of exact types does not name: subclasses, data classes, enumerations, self-lowering objects."""
    if hasattr(a, "__fx_create_arg__"):
        return cast("Argument", a.__fx_create_arg__(tracer))
    if isinstance(a, torch.Size):
        return cast("Argument", a)
    if isinstance(a, tuple):
        elements: list[Any] = [tracer.create_arg(element) for element in a]
        return cast("Argument", type(a)(*elements) if hasattr(a, "_fields") else type(a)(elements))
    if isinstance(a, list):
        return _lower_list(tracer, a)
    if isinstance(a, Mapping):
        return _lower_dict(tracer, a)
    if dataclasses.is_dataclass(a) and not isinstance(a, type):
        fields = {
            field.name: tracer.create_arg(getattr(a, field.name))
            for field in dataclasses.fields(a)
            if field.init
        }
        return tracer.create_node("call_function", type(a), (), fields)
    if isinstance(a, (*_LEAF_BASES, enum.Enum)):
        return cast("Argument", a)
    raise ArgumentTypeError(
        f"argument of type: {type(a)} cannot be held by a graph. Pass its parts (numbers, strings, tensors, containers of "
        "these), make it a data class, give it __fx_create_arg__(tracer), or override Tracer.create_arg.",
        location_of_user(),
    )


_LEAF_BASES: Final = (
    str,
    int,
    float,
    bool,
    complex,
    bytes,
    torch.dtype,
    torch.Tensor,
    torch.device,
    torch.memory_format,
    torch.layout,
    torch.SymInt,
    torch.SymFloat,
    torch.SymBool,
    torch._ops.OpOverload,
    torch._ops.HigherOrderOperator,
)
LEAVES: Final = frozenset(
    {str, int, float, bool, complex, bytes, torch.dtype, torch.device, torch.memory_format, torch.layout}
    | {type(None), type(...), torch._ops.OpOverload, torch._ops.HigherOrderOperator, Node}
)
RULES: Final[dict[type, Callable[[Lowering, Any], Argument]]] = {
    **{leaf: _as_is for leaf in LEAVES},
    tuple: _lower_tuple,
    list: _lower_list,
    dict: _lower_dict,
    slice: _lower_slice,
    range: _as_is,
}
