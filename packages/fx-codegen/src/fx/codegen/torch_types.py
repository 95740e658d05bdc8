"""What :mod:`fx.ir` is told about torch's values and operators: how they are named, printed and written to files.

Leaf types are written to files as plain data.  Decoding looks names up among torch's own constants and operators; it
runs nothing that a file chooses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import torch
from torch._ops import OpOverload, OpOverloadPacket

from fx.codegen import torch_effects
from fx.codegen.globals import torch_path_of
from fx.ir import register_argument_type, register_namespace, register_target_namer, register_target_resolver


def register() -> None:
    """Tell :mod:`fx.ir`; done once, when :mod:`fx.codegen` is imported."""
    _register_types()
    torch_effects.register()
    register_target_namer(_operator_name)
    register_target_resolver(_operator)
    for module in ("torch._C._nn", "torch._C._fft", "torch._C._linalg", "torch._C._special"):
        register_namespace(module)


def _operator_name(target: Callable[..., Any]) -> str | None:
    """Operators by the path on which users find them, not by the module that makes them."""
    return torch_path_of(target) if isinstance(target, OpOverload | OpOverloadPacket) else None


def _operator(name: str) -> Callable[..., Any] | None:
    """The operator of this name, which torch makes when it is first asked for."""
    if not name.startswith("torch.ops.") or "__" in name:
        return None
    found: Any = torch.ops
    for part in name.split(".")[2:]:
        found = getattr(found, part, None)
    return cast("Callable[..., Any]", found) if isinstance(found, OpOverload | OpOverloadPacket) else None


# -- values -----------------------------------------------------------------------------------------------------------


def _constant(cls: type[Any]) -> Callable[[Any], Any]:
    """Decoder for the names of torch's constants of one class."""

    def decode(name: Any) -> Any:
        value = getattr(torch, name, None) if isinstance(name, str) else None
        if not isinstance(value, cls):
            raise ValueError(f"{name!r} is no {cls.__name__} of torch")
        return value

    return decode


def _name(value: Any) -> str:
    return str(value).removeprefix("torch.")


def _decode_device(name: Any) -> torch.device:
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no device")
    return torch.device(name)


def _decode_size(sizes: Any) -> torch.Size:
    return torch.Size([int(size) for size in sizes])


def _register_types() -> None:
    for cls in (torch.dtype, torch.layout, torch.memory_format):
        register_argument_type(cls, name=f"torch.{cls.__name__}", encode=_name, decode=_constant(cls))
    register_argument_type(torch.device, name="torch.device", encode=str, decode=_decode_device)
    register_argument_type(torch.Size, name="torch.Size", encode=list, decode=_decode_size)
    register_argument_type(torch.Tensor, name="torch.Tensor", format=_tensor_text)


def _tensor_text(value: torch.Tensor) -> str:
    return f"Tensor({_name(value.dtype)}, {list(value.shape)})"
