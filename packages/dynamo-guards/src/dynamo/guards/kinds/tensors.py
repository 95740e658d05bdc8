"""The test on a tensor: exact class, dtype, device, layout, requires_grad, sizes, strides, dispatch keys and flags.

A plain strided tensor whose raw reads agree with torch is compared in its memory; any other (a subclass, sparse, nested,
quantised, wrapped by a functional transform) through torch's public answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch

from dynamo.guards import _check
from dynamo.guards.kinds.clause import Clause, Test, short
from dynamo.guards.layout import torch_metadata
from dynamo.guards.sources import Bind

Extents = tuple[int | None, ...]


@final
@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What the check compares, as torch's public interface tells it; None stands for "any"."""

    class_name: str
    class_id: int
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    sizes: Extents | None
    strides: Extents | None
    is_conj: bool
    is_neg: bool
    is_inference: bool
    keys: int
    storage_offset: int | None
    data_pointer: int | None


def _strides(tensor: torch.Tensor) -> Extents | None:
    return tensor.stride() if tensor.layout is torch.strided and not tensor.is_nested else None


def read_facts(tensor: torch.Tensor, *, offset: bool, pointer: bool) -> TensorFacts:
    """The facts of a tensor, without its subclass's own code."""
    with torch._C.DisableTorchFunctionSubclass():
        return TensorFacts(
            class_name=type(tensor).__qualname__,
            class_id=id(type(tensor)),
            dtype=tensor.dtype,
            device=tensor.device,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            sizes=None if tensor.is_nested else tuple(tensor.shape),
            strides=_strides(tensor),
            is_conj=tensor.is_conj(),
            is_neg=tensor.is_neg(),
            is_inference=tensor.is_inference(),
            keys=int(torch._C._dispatch_keys(tensor).raw_repr()),
            storage_offset=int(tensor.storage_offset()) if offset else None,
            data_pointer=tensor.data_ptr() if pointer else None,
        )


def _extents_hold(expected: Extents | None, met: Extents | None) -> bool:
    if expected is None:
        return True
    if met is None or len(met) != len(expected):
        return False
    return all(want is None or want == have for want, have in zip(expected, met, strict=True))


def differences(expected: TensorFacts, tensor: torch.Tensor) -> list[tuple[str, object, object]]:
    """(fact, expected, met) for all that differ."""
    met = read_facts(
        tensor,
        offset=expected.storage_offset is not None,
        pointer=expected.data_pointer is not None,
    )
    found: list[tuple[str, object, object]] = []
    for name in TensorFacts.__dataclass_fields__:
        want, have = getattr(expected, name), getattr(met, name)
        same = _extents_hold(want, have) if name in ("sizes", "strides") else want == have
        if not same:
            found.append((name, want, have))
    return found


def check_facts(expected: TensorFacts, tensor: torch.Tensor) -> bool:
    """The check through torch's public answers; `_check` calls it for tensors that are not read raw."""
    return not differences(expected, tensor)


def _raw_reads_agree(tensor: torch.Tensor) -> bool:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return False
    keys = torch._C._dispatch_keys(tensor)
    if tensor.is_nested or tensor.is_quantized or keys.has(torch._C.DispatchKey.Python):
        return False
    met = _check.raw_metadata(tensor)
    return met is not None and (*met[:4], met[6]) == torch_metadata(tensor)


@final
@dataclass(frozen=True, slots=True)
class TensorIs(Clause):
    """The tensor has the metadata of the one at capture."""

    facts: TensorFacts
    spec: _check.TensorSpec

    def text(self, ref: str, bind: Bind) -> str:
        return f"{bind(self.spec)}.check({ref})"

    def native(self) -> Test:
        return Test("TEST_TENSOR", operand=self.spec)

    def expected(self) -> str:
        shape = "×".join("?" if size is None else str(size) for size in self.facts.sizes or ())
        return f"{self.facts.class_name} of {self.facts.dtype}, shape ({shape}), on {self.facts.device}"

    def met(self, value: object) -> str:
        if not isinstance(value, torch.Tensor):
            return f"type {type(value).__qualname__}"
        found = differences(self.facts, value)
        return ", ".join(f"{name} {short(have)} instead of {short(want)}" for name, want, have in found)


def tensor_spec(
    tensor: torch.Tensor,
    *,
    dynamic_dims: Sequence[int] | bool = (),
    offset: bool = False,
    pointer: bool = False,
) -> tuple[TensorFacts, _check.TensorSpec]:
    """The facts and the native spec of a tensor.

    Args:
        tensor: the tensor at capture; not kept.
        dynamic_dims: dimensions whose size may change (strides are then free too), or True for all.
        offset: whether the storage offset must stay.
        pointer: whether the data must stay where they are (an input that the backend treats as static).
    """
    facts = read_facts(tensor, offset=offset, pointer=pointer)
    sizes, strides = facts.sizes, facts.strides
    if sizes is not None and dynamic_dims is not False:
        free = set(range(len(sizes))) if dynamic_dims is True else {dim % len(sizes) for dim in dynamic_dims}
        if free:
            sizes = tuple(None if i in free else size for i, size in enumerate(sizes))
            strides = tuple(None for _ in sizes) if strides is not None else None
    names = {name: getattr(facts, name) for name in TensorFacts.__dataclass_fields__}
    facts = TensorFacts(**{**names, "sizes": sizes, "strides": strides})
    raw = not pointer and _raw_reads_agree(tensor)
    native = (sizes, strides) if raw else (None, None)
    return facts, _check.TensorSpec(tensor, native[0], native[1], offset, raw, facts)
