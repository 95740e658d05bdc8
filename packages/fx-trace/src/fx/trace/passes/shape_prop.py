"""Shapes, dtypes and layouts of all values, found by running the graph once, on real or on fake tensors.

Source: seed 003, "Interpreter pattern: shape propagation"; torch.fx ``ShapeProp``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
import torch.utils._pytree as pytree
from torch._subclasses.fake_tensor import FakeTensorMode

from fx.ir import Node
from fx.trace.interpreter import Interpreter

__all__ = ["ShapeProp", "TensorMetadata", "tensor_metadata"]


class TensorMetadata(NamedTuple):
    """What a tensor is, its contents aside.

    Attributes:
        shape: sizes.
        dtype: element type.
        requires_grad: whether it takes part in differentiation.
        stride: steps between elements, in elements.
        memory_format: the dense format that it has; None if none.
        is_quantized: whether it is quantised.
        device: where it is.
    """

    shape: torch.Size
    dtype: torch.dtype
    requires_grad: bool
    stride: tuple[int, ...]
    memory_format: torch.memory_format | None
    is_quantized: bool
    device: torch.device


_FORMATS = {4: torch.channels_last, 5: torch.channels_last_3d}


def tensor_metadata(tensor: torch.Tensor) -> TensorMetadata:
    """Describe ``tensor``."""
    is_strided = tensor.layout is torch.strided
    found = _memory_format(tensor) if is_strided and not tensor.is_nested else None
    return TensorMetadata(
        tensor.shape,
        tensor.dtype,
        tensor.requires_grad,
        tuple(tensor.stride()) if is_strided else (),
        found,
        tensor.is_quantized,
        tensor.device,
    )


def _memory_format(tensor: torch.Tensor) -> torch.memory_format | None:
    if tensor.is_contiguous():
        return torch.contiguous_format
    other = _FORMATS.get(tensor.ndim)
    return other if other is not None and tensor.is_contiguous(memory_format=other) else None


def _described(result: object) -> object:
    """``result`` with tensors described in it; None if it holds none."""
    found = False

    def describe(value: object) -> object:
        nonlocal found
        if isinstance(value, torch.Tensor):
            found = True
            return tensor_metadata(value)
        return value

    described = pytree.tree_map(describe, result)
    return described if found else None


class ShapeProp(Interpreter):
    """Runs a graph and writes ``meta["tensor_meta"]`` (a :class:`TensorMetadata`, or containers of them) and ``meta["type"]``.

    Args:
        module: its graph is annotated.
        fake_mode: run on fake tensors of this mode, which allocates and computes nothing; ``meta["val"]`` then holds them.
    """

    def __init__(self, module: torch.nn.Module, fake_mode: FakeTensorMode | None = None) -> None:
        super().__init__(module)
        self.fake_mode = fake_mode

    @classmethod
    def on_fake_tensors(cls, module: torch.nn.Module) -> ShapeProp:
        """With a fake mode of its own that takes real inputs and parameters."""
        return cls(module, FakeTensorMode(allow_non_fake_inputs=True))

    def run_node(self, n: Node) -> Any:
        """Run one node and describe its value."""
        result = super().run_node(n)
        meta = n.meta
        if self.fake_mode is not None:
            meta["val"] = result
        meta["type"] = type(result)
        described = tensor_metadata(result) if isinstance(result, torch.Tensor) else _described(result)
        if described is not None:
            meta["tensor_meta"] = described
        return result

    def fetch_attr(self, target: str) -> Any:
        """The attribute; a tensor as a fake one when running on fake tensors."""
        value = super().fetch_attr(target)
        return self._as_fake(value) if self.fake_mode is not None else value

    def propagate(self, *args: Any) -> Any:
        """Run on ``args`` and give the result."""
        if self.fake_mode is None:
            return self.run(*args)
        given = pytree.tree_map(self._as_fake, args)
        with self.fake_mode or nullcontext():
            return self.run(*given)

    def _as_fake(self, value: Any) -> Any:
        make: Callable[[torch.Tensor], torch.Tensor] | None = (
            None if self.fake_mode is None else self.fake_mode.from_tensor
        )
        if make is None or not isinstance(value, torch.Tensor):
            return value
        return make(value)
