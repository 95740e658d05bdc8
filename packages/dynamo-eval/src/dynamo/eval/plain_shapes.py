"""What comes out of the commonest operators on plain tensors, without asking torch's fake kernels.

The fake kernels of these operators are written in Python and import torch's own capture stack and sympy, seconds in a
fresh process. On tensors whose strides are the canonical contiguous ones the answer is known: a broadcast shape, the
promoted type, canonical strides. Whatever is not of that kind (other strides, sizes 0 and, where shapes differ,
1, other than floating tensors, several devices) is left to the fake kernels.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import torch

Found: TypeAlias = tuple[Sequence[int], torch.dtype] | None
Rule: TypeAlias = Callable[[Sequence[Any]], Found]


def _canonical(value: torch.Tensor) -> bool:
    expected = 1
    for size, stride in zip(reversed(value.shape), reversed(value.stride()), strict=True):
        if size == 0 or stride != expected:
            return False
        expected *= size
    return True


def _broadcast(operands: Sequence[Any]) -> Sequence[int] | None:
    """The common shape of tensors and numbers where canonical strides are sure to come out."""
    shapes = [value.shape if isinstance(value, torch.Tensor) else () for value in operands]
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    width = max(map(len, shapes))
    common: list[int] = []
    for column in zip(*((1,) * (width - len(shape)) + tuple(shape) for shape in shapes), strict=True):
        sizes = set(column) - {1}
        if len(sizes) != 1:
            return None
        common += sizes
    return common


Kind: TypeAlias = tuple[bool, torch.dtype] | str


def _kind(operand: Any) -> Kind:
    """Of a tensor: whether it has dimensions, and its type; of a number: the name of its type."""
    if isinstance(operand, torch.Tensor):
        return operand.dim() > 0, operand.dtype
    return "float" if isinstance(operand, float) else "int"


@functools.cache
def _promoted(first: Kind, second: Kind) -> torch.dtype:
    """The type that operands of these kinds are brought to; real ones are asked, for fake ones would be dispatched."""
    numbers = {"int": 1, "float": 1.0}

    def example(kind: Kind) -> Any:
        return torch.empty((1,) * kind[0], dtype=kind[1]) if isinstance(kind, tuple) else numbers[kind]

    return torch.result_type(example(first), example(second))


def _unary(args: Sequence[Any]) -> Found:
    return (args[0].shape, args[0].dtype) if len(args) == 1 else None


def _binary(args: Sequence[Any]) -> Found:
    if len(args) != 2:
        return None
    shape = _broadcast(args)
    first, second = (_kind(value) for value in args)
    return (shape, _promoted(first, second)) if shape is not None else None


def _binary_of_tensors(args: Sequence[Any]) -> Found:
    return _binary(args) if all(isinstance(value, torch.Tensor) for value in args) else None


def _comparison(args: Sequence[Any]) -> Found:
    shape = _broadcast(args)
    return (shape, torch.bool) if shape is not None else None


def _comparison_of_tensors(args: Sequence[Any]) -> Found:
    return _comparison(args) if all(isinstance(value, torch.Tensor) for value in args) else None


def _total(args: Sequence[Any]) -> Found:
    return ((), args[0].dtype) if len(args) == 1 else None


def _product(args: Sequence[Any]) -> Found:
    left, right = args
    if (
        not isinstance(left, torch.Tensor)
        or not isinstance(right, torch.Tensor)
        or left.dtype is not right.dtype
    ):
        return None
    if left.dim() != 2 or right.dim() != 2 or left.shape[1] != right.shape[0]:
        return None
    return (left.shape[0], right.shape[1]), left.dtype


_aten = torch.ops.aten
_UNARY = (
    "abs neg relu sigmoid tanh exp expm1 log log2 log10 log1p sqrt rsqrt reciprocal sin cos tan asin acos atan sinh cosh "
    "erf erfc floor ceil round trunc sign gelu silu"
)
_RULES: Final[dict[object, Rule]] = {
    **{getattr(_aten, name).default: _unary for name in _UNARY.split()},
    **{getattr(_aten, name).Tensor: _binary for name in ("add", "sub", "mul", "div")},
    **{getattr(_aten, name).default: _binary_of_tensors for name in ("maximum", "minimum")},
    **{getattr(_aten, name).Scalar: _comparison for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{getattr(_aten, name).Tensor: _comparison_of_tensors for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    _aten.sum.default: _total,
    _aten.mean.default: _total,
    _aten.mm.default: _product,
}


def known_result(
    func: object, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[torch.Tensor, torch.device] | None:
    """A tensor without data (on ``meta``) like the result, and the result's device; None where it is not known here.

    Args:
        func: the operator, an overload of ``torch.ops.aten``.
        args, kwargs: what it is called with; all tensors are fake.
    """
    rule = _RULES.get(func)
    if rule is None or kwargs:
        return None
    device: torch.device | None = None
    for value in args:
        if isinstance(value, torch.Tensor):
            if not (value.is_floating_point() and value.layout is torch.strided and _canonical(value)):
                return None
            if device not in (None, value.device):
                return None
            device = value.device
        elif type(value) not in (int, float):
            return None
    found = rule(args) if device is not None else None
    if found is None or device is None:
        return None
    return torch.empty(tuple(found[0]), dtype=found[1], device="meta"), device
