"""Fake tensors: shapes, dtypes, strides and devices without data.

PyTorch's `FakeTensorMode` is the truth here (see docs/design.md for what was measured). Its constructor
imports torch's own capture stack only to read five switches; `StaticFakeMode` sets those five itself and so
saves two seconds of imports in a fresh process.
"""

from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode

_DATA_DEPENDENT = tuple(
    getattr(fake_tensor, name)
    for name in ("DataDependentOutputException", "DynamicOutputShapeException")
    if hasattr(fake_tensor, name)
)


def fake_mode() -> FakeTensorMode:
    """A new mode with static sizes; one per capture, for a mode remembers the tensors it converted."""
    return FakeTensorMode(allow_non_fake_inputs=False)


def data_dependent(error: BaseException) -> bool:
    """Whether a call failed only because a fake tensor holds no data."""
    return isinstance(error, _DATA_DEPENDENT)


def is_fake(value: Any) -> bool:
    """Whether `value` is a fake tensor."""
    return isinstance(value, torch._subclasses.fake_tensor.FakeTensor)
