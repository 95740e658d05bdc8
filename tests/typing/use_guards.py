"""The public API of dynamo.guards as a user writes it: type-checked, never run."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_type

import torch

from dynamo.guards import (
    AttrSource,
    CheckFunctionManager,
    Failure,
    Guard,
    GuardBuilder,
    GuardScope,
    GuardSource,
    LocalSource,
    NativeStatus,
    native_status,
)

source = AttrSource(LocalSource("x"), "weight")
guard = source.make_guard(GuardBuilder.TENSOR_MATCH, ("model.py", 3))
scope = GuardScope(("x",), (), (torch.ones(2),), None, {}, {})
manager = CheckFunctionManager([guard, Guard("x", GuardSource.LOCAL, GuardBuilder.TYPE_MATCH)], scope)

assert_type(guard, Guard)
assert_type(source.name(), str)
assert_type(manager.check([torch.ones(2)]), bool)
assert_type(manager.check_fn, Callable[..., bool])
assert_type(manager.code_parts, tuple[str, ...])
assert_type(manager.explain_failure([1]), str)
assert_type(manager.failures([1]), list[Failure])
assert_type(native_status(), NativeStatus)
