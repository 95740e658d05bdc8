"""Expansions and joins that more than one version uses."""

from __future__ import annotations

import dis
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from .facts import Expansion, Join, Write

__all__ = [
    "BINARY_OPS",
    "COMPARE_OPS",
    "INTRINSIC_EXPAND",
    "INTRINSIC_WRITE",
    "JUMPS_FORWARD_ONLY",
    "SLICE_EXPAND",
    "SLICE_JOIN",
    "SUPER_EXPAND",
    "SUPER_WRITE",
    "format_value_expansion",
    "format_value_join",
    "intrinsic_names",
]

COMPARE_OPS: Final = ("<", "<=", "==", "!=", ">", ">=")
BINARY_OPS: Final = (
    *("+", "&", "//", "<<", "@", "*", "%", "|", "**", ">>", "-", "/", "^"),
    *("+=", "&=", "//=", "<<=", "@=", "*=", "%=", "|=", "**=", ">>=", "-=", "/=", "^="),
)

JUMPS_FORWARD_ONLY: Final[Mapping[str, tuple[str, str]]] = {
    "JUMP": ("JUMP_FORWARD", "JUMP_BACKWARD"),
    "JUMP_NO_INTERRUPT": ("", "JUMP_BACKWARD_NO_INTERRUPT"),
    "POP_JUMP_IF_TRUE": ("POP_JUMP_IF_TRUE", ""),
    "POP_JUMP_IF_FALSE": ("POP_JUMP_IF_FALSE", ""),
    "POP_JUMP_IF_NONE": ("POP_JUMP_IF_NONE", ""),
    "POP_JUMP_IF_NOT_NONE": ("POP_JUMP_IF_NOT_NONE", ""),
    "FOR_ITER": ("FOR_ITER", ""),
    "SEND": ("SEND", ""),
}
"""Jumps of 3.12 and 3.13."""

# Unary plus and the like were instructions on 3.11 and are numbered intrinsics later; same stack effect.
_ONE: Final = {4: "ASYNC_GEN_WRAP", 5: "UNARY_POSITIVE", 6: "LIST_TO_TUPLE"}
_TWO: Final = {1: "PREP_RERAISE_STAR"}

INTRINSIC_EXPAND: Final[Mapping[str, Callable[[int], Expansion]]] = {
    "CALL_INTRINSIC_1": lambda arg: ((_ONE[arg], 0),) if arg in _ONE else (("CALL_INTRINSIC_1", arg),),
    "CALL_INTRINSIC_2": lambda arg: ((_TWO[arg], 0),) if arg in _TWO else (("CALL_INTRINSIC_2", arg),),
}


def _constant(name: str, arg: int) -> Write:
    return lambda _: (name, arg)


INTRINSIC_WRITE: Final[Mapping[str, Write]] = {
    **{name: _constant("CALL_INTRINSIC_1", arg) for arg, name in _ONE.items()},
    **{name: _constant("CALL_INTRINSIC_2", arg) for arg, name in _TWO.items()},
}

SLICE_EXPAND: Final[Mapping[str, Callable[[int], Expansion]]] = {
    "BINARY_SLICE": lambda _: (("BUILD_SLICE", 2), ("BINARY_SUBSCR", 0)),
    "STORE_SLICE": lambda _: (("BUILD_SLICE", 2), ("STORE_SUBSCR", 0)),
}
SLICE_JOIN: Final[Mapping[tuple[str, ...], Join]] = {
    ("BUILD_SLICE", "BINARY_SUBSCR"): lambda args: ("BINARY_SLICE", 0) if args[0] == 2 else None,
    ("BUILD_SLICE", "STORE_SUBSCR"): lambda args: ("STORE_SLICE", 0) if args[0] == 2 else None,
}

# LOAD_SUPER_ATTR: bit 0 is a method load, bit 1 a super() with explicit arguments (Python/bytecodes.c, 3.12).
_SUPER: Final = ("LOAD_ZERO_SUPER_ATTR", "LOAD_ZERO_SUPER_METHOD", "LOAD_SUPER_ATTR", "LOAD_SUPER_METHOD")
SUPER_EXPAND: Final[Mapping[str, Callable[[int], Expansion]]] = {
    "LOAD_SUPER_ATTR": lambda arg: ((_SUPER[arg & 3], arg >> 2),)
}


def _super(bits: int) -> Write:
    return lambda arg: ("LOAD_SUPER_ATTR", arg << 2 | bits)


SUPER_WRITE: Final[Mapping[str, Write]] = {name: _super(bits) for bits, name in enumerate(_SUPER)}


def format_value_expansion(arg: int) -> Expansion:
    """FORMAT_VALUE of 3.11 and 3.12 (bits 0-1 conversion, bit 2 with format spec) in the words of 3.13."""
    conversion = (("CONVERT_VALUE", arg & 3),) if arg & 3 else ()
    if not arg & 4:
        return (*conversion, ("FORMAT_SIMPLE", 0))
    around = (("SWAP", 2), *conversion, ("SWAP", 2)) if conversion else ()
    return (*around, ("FORMAT_WITH_SPEC", 0))


def _format_converted(args: Sequence[int]) -> tuple[str, int] | None:
    return "FORMAT_VALUE", args[0]


def _format_converted_with_spec(args: Sequence[int]) -> tuple[str, int] | None:
    return ("FORMAT_VALUE", args[1] | 4) if args[0] == 2 and args[2] == 2 else None


format_value_join: Final[Mapping[tuple[str, ...], Join]] = {
    ("CONVERT_VALUE", "FORMAT_SIMPLE"): _format_converted,
    ("SWAP", "CONVERT_VALUE", "SWAP", "FORMAT_WITH_SPEC"): _format_converted_with_spec,
}


def intrinsic_names(attribute: str) -> tuple[str, ...]:
    """Names of the numbered intrinsics of this Python, from `dis`; empty before 3.12."""
    names: object = getattr(dis, attribute, ())
    return tuple(str(name) for name in names) if isinstance(names, (list, tuple)) else ()
