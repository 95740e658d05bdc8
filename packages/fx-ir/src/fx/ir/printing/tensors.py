"""One short text about a tensor, from anything that has a shape and a dtype: ``f32[2, 3]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

_ABBREVIATIONS: Final = (
    ("bfloat", "bf"), ("complex", "c"), ("float", "f"), ("quint", "qu"), ("qint", "qi"), ("uint", "u"), ("int", "i"),
    ("bool", "b8"),
)  # fmt: skip


def format_tensor(value: Any, *, stride: bool = False, device: bool = False) -> str | None:
    """Dtype and sizes of ``value``, a tensor or a description of one; ``None`` if it is neither.

    Args:
        value: has ``shape`` and ``dtype``, and for the others ``stride`` (a method or a tuple) and ``device``.
        stride: add the strides, where they are known.
        device: add the device, where it is known.
    """
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or dtype is None:
        return None
    text = f"{abbreviation(dtype)}{_sizes(shape)}"
    if stride:
        strides = getattr(value, "stride", None)
        text += _sizes(strides() if callable(strides) else strides or ())
    where = getattr(value, "device", None) if device else None
    return text if where is None else f"{text}{where}"


def abbreviation(dtype: object) -> str:
    """``f32`` for ``torch.float32``, ``b8`` for ``torch.bool``."""
    name = str(dtype).removeprefix("torch.")
    for long, short in _ABBREVIATIONS:
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def _sizes(sizes: Iterable[object]) -> str:
    return f"[{', '.join([str(size) for size in sizes])}]"
