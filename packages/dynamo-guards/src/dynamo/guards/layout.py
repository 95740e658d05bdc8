"""Where this torch keeps a tensor's metadata: found by comparing memory with torch's own answers.

c10::TensorImpl is no public interface, so nothing about it is assumed: each offset is the only place at which the words
of every probe tensor agree with what torch says.  After that the reads of a second set of tensors must give exactly
torch's answers.  Any doubt, and that way of reading stays off (`native_status` says why); the next tier is tried:

raw     the memory of the TensorImpl
shim    libtorch's stable C interface, and of the memory only the TensorImpl's address and its dispatch keys (which
        alone tell conjugate, negative, inference and functionally wrapped tensors)
python  torch's public answers

Source: c10/core/TensorImpl.h and c10/core/impl/SizesAndStrides.h of torch 2.13, for what to look for.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import torch

from dynamo.guards import _check

WORDS: Final = 30
"""8-byte words of a TensorImpl that are searched; the object is 192 bytes or more in every torch so far."""

_BYTES: Final = 192
_STATE_WORDS: Final = 20
"""Words of the autograd state that are searched; the object has more in every torch so far."""

_INLINE_DIMS: Final = 5
TIERS: Final = ("raw", "shim", "python")
TIER_VARIABLE: Final = "DYNAMO_GUARDS_TENSORS"
"""Environment variable that names the best tier to use, for measuring and for telling faults apart."""

_REQUIRES_GRAD: Final = "_ZNK3c1010TensorImpl13requires_gradEv"
_DTYPES: Final = (
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int8,
    torch.uint8,
    torch.int16,
    torch.int32,
    torch.int64,
    torch.bool,
    torch.complex64,
    torch.complex128,
)


class LayoutError(Exception):
    """The probes do not agree with this torch; the message says on what."""


@dataclass(frozen=True, slots=True)
class KeyLayout:
    """Byte offsets: of the impl pointer in the Python object, of keys and autograd state in the impl (-1: not known).

    ``flag`` is the offset of requires_grad in the autograd state (-1: not known); without it, or where it is not set,
    libtorch is asked.
    """

    impl: int
    key_set: int
    autograd: int
    flag: int


@dataclass(frozen=True, slots=True)
class RawLayout:
    """Byte offsets in the impl."""

    sizes: int
    storage_offset: int
    dtype: int
    device: int


def library_path(name: str) -> str:
    """The path of one of torch's own libraries."""
    return str(Path(torch.__file__).parent / "lib" / name)


def _probe_tensors() -> list[torch.Tensor]:
    """Tensors that differ in everything that is looked for."""
    base = torch.empty(7, 11, 13)
    tensors = [torch.empty(3, 5, dtype=dtype) for dtype in _DTYPES]
    tensors += [torch.empty(2, 3, dtype=dtype, device="meta") for dtype in _DTYPES[:3]]
    tensors += [base[2:, 1:], base[1:].transpose(0, 2), base[3, 4], base.permute(2, 0, 1)[1:]]
    tensors += [
        torch.tensor(1.0),
        torch.empty(0),
        torch.empty(1, 2, 1, 4, 1),
        torch.empty(2, 3, 5, 7, 1, 2, 3),
    ]
    leaf = torch.empty(4, requires_grad=True)
    tensors += [
        leaf,
        torch.nn.Parameter(torch.empty(4, 6)),
        leaf * 2,
        leaf[1:],
        leaf.detach(),
        leaf[1:].detach(),
    ]
    tensors += [torch.empty(4, requires_grad=True).requires_grad_(False)]
    tensors += [torch.empty(4, dtype=torch.complex64).conj(), torch.empty(5, 9).expand(3, 5, 9)]
    with torch.inference_mode():
        tensors.append(torch.empty(6, 2))
    return tensors


def _key_set(tensor: torch.Tensor) -> int:
    return int(torch._C._dispatch_keys(tensor).raw_repr())


def _only(found: list[int], what: str) -> int:
    if not found:
        raise LayoutError(f"no place holds the {what}")
    return found[0]


def _find_impl(tensors: Sequence[torch.Tensor]) -> int:
    """Where the Python object keeps the pointer whose value is ``_cdata`` (at once, or behind an ownership flag)."""
    count = torch.Tensor.__basicsize__ // 8
    objects = [
        (tensor, struct.unpack(f"{count}Q", _check.read_words(id(tensor), count))) for tensor in tensors
    ]
    places = [8 * i for i in range(count) if all(words[i] == tensor._cdata for tensor, words in objects)]
    return _only(places, "address of the tensor")


def _extents_at(words: Sequence[int], place: int, dims: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if dims <= _INLINE_DIMS:
        first = place + 1
        sizes = words[first : first + dims]
        return tuple(sizes), tuple(words[first + _INLINE_DIMS : first + _INLINE_DIMS + dims])
    outside = struct.unpack(f"{2 * dims}q", _check.read_words(words[place + 1], 2 * dims))
    return outside[:dims], outside[dims:]


def _find_word(
    samples: Sequence[tuple[torch.Tensor, Sequence[int]]], answer: Callable[[torch.Tensor], int]
) -> list[int]:
    count = _BYTES // 8
    return [8 * i for i in range(count) if all(words[i] == answer(tensor) for tensor, words in samples)]


def _find_sizes(samples: Sequence[tuple[torch.Tensor, Sequence[int]]]) -> int:
    dims = [place // 8 for place in _find_word(samples, lambda tensor: tensor.dim())]
    return 8 * _only(
        [
            place
            for place in dims
            if all(
                _extents_at(words, place, tensor.dim()) == (tuple(tensor.shape), tensor.stride())
                for tensor, words in samples
            )
        ],
        "sizes and strides",
    )


def _is_code(pairs: Sequence[tuple[object, int]]) -> bool:
    """Whether raw numbers and torch's values stand for each other one to one."""
    forward = dict(pairs)
    return len(set(pairs)) == len(forward) == len(set(forward.values()))


def _find_code(
    samples: Sequence[tuple[torch.Tensor, bytes]],
    answer: Callable[[torch.Tensor], object],
    start: int,
    what: str,
) -> int:
    for place in range(start, _BYTES - 1, 2):
        pairs = [
            (answer(tensor), int.from_bytes(raw[place : place + 2], "little")) for tensor, raw in samples
        ]
        if _is_code(pairs):
            return place
    raise LayoutError(f"no place holds the {what}")


def _words(tensor: torch.Tensor) -> tuple[int, ...]:
    return struct.unpack(f"{_BYTES // 8}Q", _check.read_words(tensor._cdata, _BYTES // 8))


def _words_set_by_requires_grad() -> set[int]:
    leaf = torch.empty(4)
    before = _words(leaf)
    leaf.requires_grad_()
    after = _words(leaf)
    return {i for i, (old, new) in enumerate(zip(before, after, strict=True)) if old == 0 and new != 0}


def _find_autograd(tensors: Sequence[torch.Tensor]) -> int:
    """The word that is NULL until a gradient is asked for, or -1 when there is not exactly one such word."""
    places = set.intersection(*(_words_set_by_requires_grad() for _ in range(4)))
    if len(places) != 1:
        return -1
    place = places.pop()
    return 8 * place if all(_words(each)[place] for each in tensors if each.requires_grad) else -1


def _flags_of_leaf(autograd: int) -> set[int]:
    """The places of bytes in a leaf's autograd state that follow requires_grad."""
    leaf = torch.empty(4, requires_grad=True)
    state = _words(leaf)[autograd // 8]
    before = _check.read_words(state, _STATE_WORDS)
    leaf.requires_grad_(False)
    after = _check.read_words(state, _STATE_WORDS)
    leaf.requires_grad_()
    again = _check.read_words(state, _STATE_WORDS)
    return {i for i, flags in enumerate(zip(before, after, again, strict=True)) if flags == (1, 0, 1)}


def _find_flag(autograd: int) -> int:
    """The place of the flag in the autograd state; -1 when there is not exactly one."""
    places = set.intersection(*(_flags_of_leaf(autograd) for _ in range(4))) if autograd >= 0 else set()
    return places.pop() if len(places) == 1 else -1


def find_keys(tensors: Sequence[torch.Tensor]) -> KeyLayout:
    """Search the objects of the probe tensors. Raises: LayoutError when something is not found."""
    impl = _find_impl(tensors)
    key_set = _only(_find_word([(each, _words(each)) for each in tensors], _key_set), "dispatch keys")
    autograd = _find_autograd(tensors)
    return KeyLayout(impl, key_set, autograd, _find_flag(autograd))


def find_raw(tensors: Sequence[torch.Tensor]) -> RawLayout:
    """Search the memory of the probe tensors. Raises: LayoutError when something is not found."""
    raw = [(tensor, _check.read_words(tensor._cdata, _BYTES // 8)) for tensor in tensors]
    words = [(tensor, struct.unpack(f"{_BYTES // 8}q", data)) for tensor, data in raw]
    sizes = _find_sizes(words)
    offset = _only(_find_word(words, lambda tensor: int(tensor.storage_offset())), "storage offset")
    dtype = _find_code(raw, lambda tensor: tensor.dtype, offset + 8, "dtype")
    device = _find_code(raw, lambda tensor: tensor.device, dtype + 2, "device")
    return RawLayout(sizes, offset, dtype, device)


def torch_metadata(tensor: torch.Tensor) -> tuple[object, ...]:
    """What torch says, in the order of ``_check.tensor_metadata`` without the two coded fields."""
    return (
        _key_set(tensor),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.requires_grad,
    )


def verify(tensors: Sequence[torch.Tensor]) -> None:
    """Compare the tier's reads with torch's answers. Raises: LayoutError naming the first tensor that differs."""
    codes: set[tuple[object, int, object, int]] = set()
    for tensor in tensors:
        met = _check.tensor_metadata(tensor)
        if met is None or met[:5] != torch_metadata(tensor):
            raise LayoutError(f"reads differ for {tensor.dtype} {tuple(tensor.shape)} on {tensor.device}")
        codes.add((tensor.dtype, met[5], tensor.device, met[6]))
    if not (_is_code([(c[0], c[1]) for c in codes]) and _is_code([(c[2], c[3]) for c in codes])):
        raise LayoutError("dtype or device codes are not one to one")


def _install_raw(tensors: Sequence[torch.Tensor]) -> None:
    found = find_raw(tensors)
    _check.tensor_raw(found.sizes, found.storage_offset, found.dtype, found.device)


def _install_shim(tensors: Sequence[torch.Tensor]) -> None:
    missing = _check.tensor_shim(library_path("libtorch_cpu.so"))
    if missing is not None:
        raise LayoutError(f"libtorch_cpu has no {missing}")


_INSTALL: Final = {"raw": _install_raw, "shim": _install_shim}


def _try(tier: str, tensors: Sequence[torch.Tensor]) -> str:
    try:
        _INSTALL[tier](tensors)
        _check.tensor_tier(tier)
        verify(_probe_tensors())
    except (LayoutError, AttributeError, RuntimeError) as error:
        _check.tensor_tier("python")
        return str(error)
    return ""


def install_layout(best: str | None = None) -> tuple[str, dict[str, str]]:
    """Find the first tier from ``best`` on that agrees with torch; checks made from now on use it.

    Args:
        best: the tier to start with; by default the one that `TIER_VARIABLE` names, or "raw".

    Returns:
        The tier, and why each one before it is not used.

    Raises:
        ValueError: there is no tier of that name.
    """
    start = best if best is not None else os.environ.get(TIER_VARIABLE, "raw")
    if start not in TIERS:
        raise ValueError(f"{start!r} is no way of reading tensors: {', '.join(TIERS)}")
    _check.tensor_tier("python")
    place = TIERS.index(start)
    reasons = dict.fromkeys(TIERS[:place], "it was turned off")
    tensors = _probe_tensors()
    try:
        keys = find_keys(tensors)
        known = _check.tensor_keys(
            keys.impl, keys.key_set, keys.autograd, keys.flag, library_path("libc10.so"), _REQUIRES_GRAD
        )
        if not known:
            raise LayoutError("libc10 has no TensorImpl::requires_grad")
    except (LayoutError, AttributeError, RuntimeError) as error:
        return "python", reasons | dict.fromkeys(TIERS[place:-1], str(error))
    for tier in TIERS[place:-1]:
        reason = _try(tier, tensors)
        if not reason:
            return tier, reasons
        reasons[tier] = reason
    return "python", reasons
