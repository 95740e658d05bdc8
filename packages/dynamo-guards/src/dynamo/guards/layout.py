"""Where this torch keeps a tensor's metadata: found by comparing memory with torch's own answers.

c10::TensorImpl is no public interface, so nothing about it is assumed: each offset is the only place at which the words
of every probe tensor agree with what torch says.  After that the raw reads of a second set of tensors must give exactly
torch's answers.  Any doubt, and raw reading stays off (`native_status` says why).

Source: c10/core/TensorImpl.h and c10/core/impl/SizesAndStrides.h of torch 2.13, for what to look for.
"""

from __future__ import annotations

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
_INLINE_DIMS: Final = 5
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
class Layout:
    """Byte offsets: of the impl pointer in the Python object, of the rest in the impl."""

    impl: int
    key_set: int
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
    tensors += [torch.empty(4, requires_grad=True), torch.nn.Parameter(torch.empty(4, 6))]
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


def find_layout() -> Layout:
    """Search the memory of the probe tensors. Raises: LayoutError when something is not found."""
    tensors = _probe_tensors()
    impl = _find_impl(tensors)
    raw = [(tensor, _check.read_words(tensor._cdata, _BYTES // 8)) for tensor in tensors]
    words = [(tensor, struct.unpack(f"{_BYTES // 8}q", data)) for tensor, data in raw]
    unsigned = [(tensor, struct.unpack(f"{_BYTES // 8}Q", data)) for tensor, data in raw]
    sizes = _find_sizes(words)
    offset = _only(_find_word(words, lambda tensor: int(tensor.storage_offset())), "storage offset")
    dtype = _find_code(raw, lambda tensor: tensor.dtype, offset + 8, "dtype")
    return Layout(
        impl=impl,
        key_set=_only(_find_word(unsigned, _key_set), "dispatch keys"),
        sizes=sizes,
        storage_offset=offset,
        dtype=dtype,
        device=_find_code(raw, lambda tensor: tensor.device, dtype + 2, "device"),
    )


def torch_metadata(tensor: torch.Tensor) -> tuple[object, ...]:
    """What torch says, in the order of ``_check.raw_metadata`` without the two coded fields."""
    return (
        _key_set(tensor),
        tuple(tensor.shape),
        tensor.stride(),
        tensor.storage_offset(),
        tensor.requires_grad,
    )


def verify(tensors: Sequence[torch.Tensor]) -> None:
    """Compare raw reads with torch's answers. Raises: LayoutError naming the first tensor that differs."""
    codes: set[tuple[object, int, object, int]] = set()
    for tensor in tensors:
        met = _check.raw_metadata(tensor)
        if met is None or (*met[:4], met[6]) != torch_metadata(tensor):
            raise LayoutError(f"raw reads differ for {tensor.dtype} {tuple(tensor.shape)} on {tensor.device}")
        codes.add((tensor.dtype, met[4], tensor.device, met[5]))
    if not (_is_code([(c[0], c[1]) for c in codes]) and _is_code([(c[2], c[3]) for c in codes])):
        raise LayoutError("raw dtype or device codes are not one to one")


def install_layout() -> str:
    """Turn raw reading on when everything agrees; returns the reason when it does not, else an empty string."""
    try:
        found = find_layout()
        on = _check.tensor_layout(
            found.impl,
            found.key_set,
            found.sizes,
            found.storage_offset,
            found.dtype,
            found.device,
            library_path("libc10.so"),
            _REQUIRES_GRAD,
        )
        if not on:
            return "libc10 has no TensorImpl::requires_grad"
        verify(_probe_tensors())
    except (LayoutError, AttributeError, RuntimeError) as error:
        _check.tensor_layout(-1, 0, 0, 0, 0, 0, "", "")
        return str(error)
    return ""
