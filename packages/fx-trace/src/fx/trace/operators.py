"""Python's operators on a traced value: each method records one call of the matching function.

The methods are written out, one for each operator, so that type checkers and editors see them and a recorded operation
costs no extra call. In-place operators are recorded as in-place functions (``operator.iadd``), because the object that they
change may be known under other names; ``torch.fx`` records the out-of-place ones.
"""

from __future__ import annotations

import math
import operator
from typing import Any, Generic, Protocol, TypeVar

__all__ = ["Operators", "Recorder"]

ValueT = TypeVar("ValueT")
ValueT_co = TypeVar("ValueT_co", covariant=True)


class Recorder(Protocol[ValueT_co]):
    """The part of a tracer that operators need."""

    def create_proxy(
        self, kind: Any, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> ValueT_co:
        """Record one operation and give the traced value of its result."""
        ...


class Operators(Generic[ValueT]):
    """Operators of a traced value. ``tracer`` receives what they record."""

    __slots__ = ()

    @property
    def tracer(self) -> Recorder[ValueT]:
        """The tracer that records what is done with this value."""
        raise NotImplementedError

    def __eq__(self, other: object) -> ValueT:  # type: ignore[override]  # object promises bool
        return self.tracer.create_proxy("call_function", operator.eq, (self, other), {})

    def __ne__(self, other: object) -> ValueT:  # type: ignore[override]  # object promises bool
        return self.tracer.create_proxy("call_function", operator.ne, (self, other), {})

    def __lt__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.lt, (self, other), {})

    def __gt__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.gt, (self, other), {})

    def __le__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.le, (self, other), {})

    def __ge__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.ge, (self, other), {})

    def __pos__(self) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.pos, (self,), {})

    def __neg__(self) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.neg, (self,), {})

    def __invert__(self) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.invert, (self,), {})

    def __abs__(self) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __getitem__(self, index: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.getitem, (self, index), {})

    def __add__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.add, (self, other), {})

    def __sub__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.sub, (self, other), {})

    def __mul__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.mul, (self, other), {})

    def __floordiv__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.floordiv, (self, other), {})

    def __truediv__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.truediv, (self, other), {})

    def __mod__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.mod, (self, other), {})

    def __pow__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.pow, (self, other), {})

    def __lshift__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.lshift, (self, other), {})

    def __rshift__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.rshift, (self, other), {})

    def __and__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.and_, (self, other), {})

    def __or__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.or_, (self, other), {})

    def __xor__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.xor, (self, other), {})

    def __matmul__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.matmul, (self, other), {})

    def __radd__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.add, (other, self), {})

    def __rsub__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.sub, (other, self), {})

    def __rmul__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.mul, (other, self), {})

    def __rfloordiv__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.floordiv, (other, self), {})

    def __rtruediv__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.truediv, (other, self), {})

    def __rmod__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.mod, (other, self), {})

    def __rpow__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.pow, (other, self), {})

    def __rlshift__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.lshift, (other, self), {})

    def __rrshift__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.rshift, (other, self), {})

    def __rand__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.and_, (other, self), {})

    def __ror__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.or_, (other, self), {})

    def __rxor__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.xor, (other, self), {})

    def __rmatmul__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.matmul, (other, self), {})

    def __iadd__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.iadd, (self, other), {})

    def __isub__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.isub, (self, other), {})

    def __imul__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.imul, (self, other), {})

    def __ifloordiv__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.ifloordiv, (self, other), {})

    def __itruediv__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.itruediv, (self, other), {})

    def __imod__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.imod, (self, other), {})

    def __ipow__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.ipow, (self, other), {})

    def __ilshift__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.ilshift, (self, other), {})

    def __irshift__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.irshift, (self, other), {})

    def __iand__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.iand, (self, other), {})

    def __ior__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.ior, (self, other), {})

    def __ixor__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.ixor, (self, other), {})

    def __imatmul__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", operator.imatmul, (self, other), {})

    def __divmod__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", divmod, (self, other), {})

    def __rdivmod__(self, other: object) -> ValueT:
        return self.tracer.create_proxy("call_function", divmod, (other, self), {})

    def __trunc__(self) -> ValueT:
        return self.tracer.create_proxy("call_function", math.trunc, (self,), {})

    def __floor__(self) -> ValueT:
        return self.tracer.create_proxy("call_function", math.floor, (self,), {})

    def __ceil__(self) -> ValueT:
        return self.tracer.create_proxy("call_function", math.ceil, (self,), {})

    def __round__(self, digits: object = None) -> ValueT:
        args: tuple[object, ...] = (self,) if digits is None else (self, digits)
        return self.tracer.create_proxy("call_function", round, args, {})

    def __setitem__(self, index: object, value: object) -> None:
        self.tracer.create_proxy("call_function", operator.setitem, (self, index, value), {})

    def __delitem__(self, index: object) -> None:
        self.tracer.create_proxy("call_function", operator.delitem, (self, index), {})

    def __hash__(self) -> int:
        return id(self)
