"""Which sizes and integers vary from call to call, and so become symbols instead of being taken as they are.

The first capture of a code object takes every size as it is. When a later one meets another size or integer at the same
source, that value is a symbol from then on. `mark_dynamic` and `mark_static` say so beforehand.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import CodeType
from typing import TYPE_CHECKING, Final, final

import torch

from dynamo.eval.errors import CaptureError, UsageError
from dynamo.eval.resets import on_reset
from dynamo.guards import Source

if TYPE_CHECKING:
    from dynamo.eval.interop.symbols import DimPlan

_MARKS: Final = "_dynamo_eval_dims"


class NeedsSymbols(CaptureError):
    """A value varies: capture begins again, with symbols."""


@dataclass(slots=True)
class SizeHistory:
    """What earlier captures of one code object met, by source; None stands for "varies"."""

    sizes: dict[str, tuple[int | None, ...]] = field(default_factory=dict)
    integers: dict[str, int | None] = field(default_factory=dict)

    def dims(self, name: str, sizes: Sequence[int]) -> frozenset[int]:
        """Take note of the sizes of a tensor; the dimensions that have varied so far."""
        before = self.sizes.get(name)
        if before is None or len(before) != len(sizes):
            self.sizes[name] = tuple(sizes)
            return frozenset()
        now = tuple(old if old == new else None for old, new in zip(before, sizes, strict=True))
        self.sizes[name] = now
        return frozenset(dim for dim, size in enumerate(now) if size is None)

    def varies(self, name: str, value: int) -> bool:
        """Take note of an integer; whether it has varied so far."""
        now = value if self.integers.get(name, value) == value else None
        self.integers[name] = now
        return now is None


#: by the id of the code object, whose death removes the entry; equal code objects are told apart
_HISTORIES: Final[dict[int, tuple[weakref.ref[CodeType], SizeHistory]]] = {}


def history_of(code: CodeType) -> SizeHistory:
    """What is known of one code object."""
    key = id(code)
    entry = _HISTORIES.get(key)
    if entry is None:
        entry = _HISTORIES[key] = (weakref.ref(code, lambda _: _HISTORIES.pop(key, None)), SizeHistory())
    return entry[1]


@on_reset
def forget_sizes() -> None:
    """Every size is new again."""
    _HISTORIES.clear()


@dataclass(frozen=True, slots=True)
class Mark:
    """What the user said of one dimension."""

    free: bool
    demanded: bool = False
    low: int | None = None
    high: int | None = None


@final
class SizePolicy:
    """Decides for one capture.

    Args:
        history: earlier captures of the code.
        dynamic: True makes every size and integer a symbol, False none, None those that vary.
    """

    def __init__(self, history: SizeHistory, dynamic: bool | None = None) -> None:
        self.history = history
        self.dynamic = dynamic

    def plans(self, source: Source, value: torch.Tensor) -> list[DimPlan] | None:
        """A plan for each dimension, or None where all sizes are taken as they are."""
        marks: dict[int, Mark] = getattr(value, _MARKS, {})
        varying: frozenset[int] = frozenset()
        if not isinstance(value, torch.nn.Parameter) and not source.guard_source.is_nn_module():
            noted = self.history.dims(source.name(), value.shape)
            if self.dynamic is not False:
                varying = frozenset(range(value.dim())) if self.dynamic else noted
        wanted = {dim: marks.get(dim, Mark(dim in varying)) for dim in range(value.dim())}
        free = {dim for dim, mark in wanted.items() if mark.free and value.shape[dim] >= 2}
        for dim, mark in wanted.items():
            if mark.demanded and dim not in free:
                raise UsageError(
                    f"dimension {dim} of {source.name()} was marked dynamic, but has size {value.shape[dim]}: "
                    "sizes 0 and 1 are always taken as they are; pass a larger example first"
                )
        if not free or not _is_plain(value):
            return None
        from dynamo.eval.interop.symbols import DimPlan

        return [
            DimPlan(dim in free, mark.demanded and dim in free, mark.low, mark.high)
            for dim, mark in wanted.items()
        ]

    def is_symbol(self, source: Source, value: int) -> bool:
        """Whether an integer is a symbol."""
        if source.guard_source.is_nn_module() and self.dynamic:
            return False
        varies = self.history.varies(source.name(), value)
        return self.dynamic is not False and (varies or self.dynamic is True)


def _is_plain(value: torch.Tensor) -> bool:
    """Whether a fake tensor of it can be made from sizes and strides alone."""
    return (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and (value.is_leaf or not value.requires_grad)
        and value.layout is torch.strided
        and not (value.is_conj() or value.is_neg() or value.is_inference())
        and not (value._is_view() and torch._C._functorch.is_functorch_wrapped_tensor(value))
    )


def mark_dynamic(
    t: torch.Tensor, index: int | Sequence[int], *, min: int | None = None, max: int | None = None
) -> None:
    """Demand that a dimension of an argument is a symbol from the first capture on.

    Args:
        t: the tensor that will be passed to a captured function.
        index: one dimension, or several.
        min: the smallest size that will come (at least 2).
        max: the largest size that will come.

    Raises:
        IndexError: no such dimension.
        UsageError: from the capture, when the code forces one size: it says where.
    """
    _mark(t, index, Mark(True, True, min, max))


def maybe_mark_dynamic(t: torch.Tensor, index: int | Sequence[int]) -> None:
    """As `mark_dynamic`, but where the code forces one size, that size is taken."""
    _mark(t, index, Mark(True))


def mark_static(t: torch.Tensor, index: int | Sequence[int] | None = None) -> None:
    """Take a dimension (all of them without `index`) as it is, however often it varies: one capture for each size.

    Raises:
        IndexError: no such dimension.
    """
    _mark(t, range(t.dim()) if index is None else index, Mark(False))


def _mark(t: torch.Tensor, index: int | Sequence[int], mark: Mark) -> None:
    given = [index] if isinstance(index, int) else list(index)
    for dim in given:
        if not -t.dim() <= dim < t.dim():
            raise IndexError(f"a tensor of {t.dim()} dimensions has no dimension {dim}")
    marks: dict[int, Mark] = dict(getattr(t, _MARKS, {}))
    marks.update({dim % t.dim(): mark for dim in given})
    setattr(t, _MARKS, marks)
