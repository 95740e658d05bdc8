"""The test on a tensor: exact class, dtype, device, layout, requires_grad, sizes, strides, dispatch keys and flags.

A plain strided tensor is compared natively, in the cheapest way that was proven on this torch (layout.py); any other (a
subclass, sparse, nested, quantised, wrapped by a functional transform) through torch's public answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final, final

import torch

from dynamo.guards import _check
from dynamo.guards.kinds.clause import Clause, Test, short, type_apart
from dynamo.guards.layout import torch_metadata
from dynamo.guards.sources import Bind

Extents = tuple[int | None, ...]


@final
@dataclass(frozen=True, slots=True)
class TensorKind:
    """What a tensor must be beside its extents, as torch's public interface tells it; None stands for "any"."""

    class_name: str
    class_id: int
    dtype: torch.dtype
    device: torch.device
    layout: torch.layout
    requires_grad: bool
    is_conj: bool
    is_neg: bool
    is_inference: bool
    keys: int
    data_pointer: int | None


_KIND_FACTS: Final = tuple(field.name for field in fields(TensorKind))
_CLASS_FACTS: Final = ("class_name", "class_id")
_NATIVE_KINDS: Final[dict[tuple[type, bytes], TensorKind]] = {}
"""Kinds whose native answers were compared with torch's, for tensors of torch's own two classes; a few dozen at most."""


def read_kind(tensor: torch.Tensor, *, pointer: bool) -> TensorKind:
    """The kind of a tensor, without its subclass's own code."""
    with torch._C.DisableTorchFunctionSubclass():
        return TensorKind(
            class_name=type(tensor).__qualname__,
            class_id=id(type(tensor)),
            dtype=tensor.dtype,
            device=tensor.device,
            layout=tensor.layout,
            requires_grad=tensor.requires_grad,
            is_conj=tensor.is_conj(),
            is_neg=tensor.is_neg(),
            is_inference=tensor.is_inference(),
            keys=int(torch._C._dispatch_keys(tensor).raw_repr()),
            data_pointer=tensor.data_ptr() if pointer else None,
        )


def read_extents(tensor: torch.Tensor) -> tuple[Extents | None, Extents | None]:
    """Sizes and strides, None where the tensor has no such thing."""
    with torch._C.DisableTorchFunctionSubclass():
        if tensor.is_nested:
            return None, None
        return tuple(tensor.shape), tensor.stride() if tensor.layout is torch.strided else None


def _extents_hold(expected: Extents | None, met: Extents | None) -> bool:
    if expected is None:
        return True
    if met is None or len(met) != len(expected):
        return False
    return all(want is None or want == have for want, have in zip(expected, met, strict=True))


def differences(spec: _check.TensorSpec, tensor: torch.Tensor) -> list[tuple[str, object, object]]:
    """(fact, expected, met) for all that differ."""
    expected = spec.kind
    met = read_kind(tensor, pointer=expected.data_pointer is not None)
    found: list[tuple[str, object, object]] = []
    for name in _KIND_FACTS:
        want, have = getattr(expected, name), getattr(met, name)
        if want != have:
            found.append((name, want, have))
    sizes, strides = read_extents(tensor)
    if not _extents_hold(spec.sizes, sizes):
        found.append(("sizes", spec.sizes, sizes))
    if not _extents_hold(spec.strides, strides):
        found.append(("strides", spec.strides, strides))
    if spec.storage_offset is not None and spec.storage_offset != tensor.storage_offset():
        found.append(("storage_offset", spec.storage_offset, tensor.storage_offset()))
    return found


def check_facts(spec: _check.TensorSpec, tensor: torch.Tensor) -> bool:
    """The check through torch's public answers; `_check` calls it for tensors that it does not read itself."""
    return not differences(spec, tensor)


def _native_answers_agree(tensor: torch.Tensor) -> bool:
    if type(tensor) not in (torch.Tensor, torch.nn.Parameter) or tensor.layout is not torch.strided:
        return False
    keys = torch._C._dispatch_keys(tensor)
    if tensor.is_nested or tensor.is_quantized or keys.has(torch._C.DispatchKey.Python):
        return False
    met = _check.tensor_metadata(tensor)
    return met is not None and met[:5] == torch_metadata(tensor)


def _native_kind(tensor: torch.Tensor) -> TensorKind | None:
    """The kind that tensors of one native key share; None for one that is not read natively."""
    key = _check.tensor_key(tensor)
    if key is None:
        return None
    kind = _NATIVE_KINDS.get(key)
    if kind is None and _native_answers_agree(tensor):
        kind = _NATIVE_KINDS[key] = read_kind(tensor, pointer=False)
    return kind


def _instead(name: str, want: object, have: object) -> str:
    if name == "keys" and isinstance(want, int) and isinstance(have, int):
        want, have = map(torch._C.DispatchKeySet.from_raw_repr, (want, have))
    return f"{name} {short(have)} instead of {short(want)}"


@final
@dataclass(slots=True, eq=False)
class TensorIs(Clause):
    """The tensor has the metadata of the one at capture."""

    spec: _check.TensorSpec

    def text(self, ref: str, bind: Bind) -> str:
        return f"{bind(self.spec)}.check({ref})"

    def native(self) -> Test:
        return Test("TEST_TENSOR", operand=self.spec)

    def expected(self) -> str:
        kind = self.spec.kind
        shape = "×".join("?" if size is None else str(size) for size in self.spec.sizes or ())
        words = f"{kind.class_name} of {kind.dtype}, shape ({shape}), on {kind.device}"
        if self.spec.storage_offset is not None:
            words += f", storage offset {self.spec.storage_offset}"
        return words if kind.data_pointer is None else f"{words}, data at address {kind.data_pointer}"

    def met(self, value: object) -> str:
        if not isinstance(value, torch.Tensor):
            return f"type {type(value).__qualname__}"
        kind = self.spec.kind
        words = [] if id(type(value)) == kind.class_id else [type_apart(type(value), kind.class_name)]
        told = [fact for fact in differences(self.spec, value) if fact[0] not in _CLASS_FACTS]
        others = [fact for fact in told if fact[0] != "keys"]  # the keys follow from most of the others
        words += [_instead(*fact) for fact in (others or ([] if words else told))]
        return ", ".join(words)


def _free_dims(tensor: torch.Tensor, dynamic_dims: Sequence[int] | bool) -> tuple[int, ...]:
    if not dynamic_dims:  # none, or no tuple at all
        return ()
    dims = tensor.dim()
    return tuple(range(dims)) if dynamic_dims is True else tuple({dim % dims for dim in dynamic_dims})


def _python_spec(
    tensor: torch.Tensor, free: tuple[int, ...], *, offset: bool, pointer: bool
) -> _check.TensorSpec:
    sizes, strides = read_extents(tensor)
    if sizes is not None and free:
        sizes = tuple(None if i in free else size for i, size in enumerate(sizes))
        strides = tuple(None for _ in sizes) if strides is not None else None
    place = int(tensor.storage_offset()) if offset else -1
    return _check.TensorSpec(tensor, read_kind(tensor, pointer=pointer), sizes, strides, place)


def tensor_spec(
    tensor: torch.Tensor,
    *,
    dynamic_dims: Sequence[int] | bool = (),
    offset: bool = False,
    pointer: bool = False,
) -> _check.TensorSpec:
    """What a tensor must be.

    Args:
        tensor: the tensor at capture; not kept.
        dynamic_dims: dimensions whose size may change (strides are then free too), or True for all.
        offset: whether the storage offset must stay.
        pointer: whether the data must stay where they are (an input that the backend treats as static).
    """
    kind = _native_kind(tensor) if not pointer else None
    free = _free_dims(tensor, dynamic_dims) if dynamic_dims else ()
    spec = _check.native_spec(tensor, kind, free, offset) if kind is not None else None
    return spec if spec is not None else _python_spec(tensor, free, offset=offset, pointer=pointer)
