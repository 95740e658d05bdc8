"""Fake tensors: shapes, dtypes, strides and devices without data.

PyTorch's `FakeTensorMode` is the truth here (see docs/design.md for what was measured). Its constructor
imports torch's own capture stack only to read five switches; `StaticFakeMode` sets those five itself and so
saves two seconds of imports in a fresh process.
"""

import inspect
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from dynamo.eval.plain_shapes import known_result

_DATA_DEPENDENT = tuple(
    getattr(fake_tensor, name)
    for name in ("DataDependentOutputException", "DynamicOutputShapeException")
    if hasattr(fake_tensor, name)
)

_DISPATCH: Final[Callable[..., Any]] = inspect.unwrap(FakeTensorMode.__torch_dispatch__)


class StaticFakeMode(FakeTensorMode):  # type: ignore[no-untyped-call]  # torch leaves __init_subclass__ untyped
    """`FakeTensorMode` for static sizes, without the imports that its own constructor makes."""

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] = MappingProxyType({}),
    ) -> Any:
        if self.shape_env is None and all(map(self._is_plain, args)):
            known = known_result(func, args, kwargs or {})
            if known is not None:
                return fake_tensor.FakeTensor(self, *known)
        return _DISPATCH(self, func, types, args, kwargs or {})

    def _is_plain(self, value: object) -> bool:
        """Whether an argument is no tensor at all, or a fake one of this mode whose value is not known."""
        if not isinstance(value, torch.Tensor):
            return True
        if not isinstance(value, fake_tensor.FakeTensor):
            return False
        return value.fake_mode is self and value.constant is None

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Torch wraps the dispatch of modes for which this is true in a function that imports its capture stack."""
        return False

    def __init__(self) -> None:
        TorchDispatchMode.__init__(self)  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.allow_fallback_kernels = True
        self.propagate_real_tensors = False
        self.fake_tensor_converter = fake_tensor.FakeTensorConverter(copy_data=False, export=False)
        self.static_shapes = True
        self.allow_scalar_outputs = False
        self._allow_unsafe_data_ptr_access = True
        self.allow_meta = False
        self.cache_enabled = True
        self.cache_crosscheck_enabled = False
        self.allow_non_fake_inputs = False
        self.in_kernel_invocation = False
        self.enter_stack = []
        self.shape_env = None
        self._stack_trace = traceback.StackSummary()
        self._stack = None
        self._mode_key = torch._C._TorchDispatchModeKey.FAKE
        self.nt_tensor_id_initial_count = self.nt_tensor_id_counter = 0


def fake_of(mode: FakeTensorMode, value: torch.Tensor) -> torch.Tensor:
    """The fake tensor of a real one.

    A plain strided leaf is made directly; torch's converter, which imports torch's own capture stack, serves views,
    results of autograd and whatever else is not plain.
    """
    plain = (
        type(value) in (torch.Tensor, torch.nn.Parameter)
        and value.is_leaf
        and not (value._is_view() or value.is_conj() or value.is_neg() or value.is_inference())
        and value.grad is None
        and value.storage_offset() == 0
    )
    if not plain:
        return mode.from_tensor(value, static_shapes=True)
    meta = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
    fake: torch.Tensor = fake_tensor.FakeTensor(mode, meta, value.device)
    if type(value) is torch.nn.Parameter:
        return torch.nn.Parameter(fake, requires_grad=value.requires_grad)
    return fake.requires_grad_() if value.requires_grad else fake


def data_dependent(error: BaseException) -> bool:
    """Whether a call failed only because a fake tensor holds no data."""
    return isinstance(error, _DATA_DEPENDENT)


def is_fake(value: Any) -> bool:
    """Whether `value` is a fake tensor."""
    return isinstance(value, torch._subclasses.fake_tensor.FakeTensor)
