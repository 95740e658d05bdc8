"""Arguments whose value, or whose structure, is fixed while tracing.

A structure (a pytree of torch's) is taken apart into leaves. ``PH`` leaves become placeholders; any other leaf is used as it
is, and the graph asserts that later calls give the same.
"""

from __future__ import annotations

import enum
import warnings
from collections.abc import Callable
from typing import Any, Final

import torch
import torch.utils._pytree as pytree

__all__ = ["PH", "PHBase", "PHWithMeta", "assert_is_none", "specialise"]


class PHBase:
    """Marks a place in ``concrete_args`` that stays an input of the graph.

    Source: torch.fx ``PHBase``.
    """

    def __repr__(self) -> str:
        return "PH"


class PHWithMeta(PHBase):
    """A ``PH`` whose attributes are copied to the ``meta`` of its placeholder.

    Args:
        ph_key: a name by which the placeholder can be found again; ``meta["ph_key"]``.
    """

    def __init__(self, ph_key: str | None = None) -> None:
        self.ph_key = ph_key


PH: Final = PHBase()

_COMPARABLE: Final = (bool, int, float, complex, str, bytes, torch.dtype, torch.device, torch.layout)


def assert_is_none(value: object, message: str) -> None:
    """Recorded for an argument that was specialised to None.

    Raises:
        AssertionError: ``value`` is anything else.
    """
    if value is not None:
        raise AssertionError(message)


def specialise(
    name: str, value: object, placeholder: Callable[[str], Any], record: Callable[..., Any]
) -> Any:
    """``value`` with traced values in place of ``PH``, and assertions recorded for all other leaves.

    Args:
        name: of the parameter; placeholders are called ``name_1``, ``name_2`` ...
        value: what ``concrete_args`` gave.
        placeholder: makes a placeholder of a given name.
        record: records a call of a function.
    """
    count = 0

    def leaf(x: object) -> object:
        nonlocal count
        count += 1
        out = placeholder(f"{name}_{count}")
        if isinstance(x, PHBase):
            if isinstance(x, PHWithMeta):
                out.node.meta.update(vars(x))
            return out
        _assert_same(name, x, out, record)
        return x

    return pytree.tree_map(leaf, value)


def _assert_same(name: str, x: object, out: Any, record: Callable[..., Any]) -> None:
    if x is None:
        record(assert_is_none, (out, f"{name} has been specialized to have value None but got another value"))
    elif isinstance(x, (*_COMPARABLE, enum.Enum)):
        message = f"{name} has been specialized to have value {x!s} but got another value"
        record(torch._assert, (out == x, message))
    else:
        warnings.warn(
            f"Was not able to add assertion to guarantee correct input {name} to specialized function: a value of "
            f"{type(x)} cannot be compared. It is up to the user to make sure that your inputs match the inputs you "
            "specialized the function with.",
            stacklevel=2,
        )
