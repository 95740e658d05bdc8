"""Pure functions of literals: computed at capture when every argument is known."""

import math
import operator
from collections.abc import Callable
from typing import Any, final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.exception import ExceptionVariable
from dynamo.eval.variables.known import KnownVariable
from dynamo.eval.variables.symbolic import SymbolicVariable
from dynamo.eval.variables.tensor import TensorVariable, call_torch

Args = list[VariableTracker]
Kwargs = dict[str, VariableTracker]

_CONVERSIONS = (int, float, complex, str, bytes, repr, ord, chr, round, divmod, pow, format, bin, hex, ascii)
_MATH = tuple(value for name, value in vars(math).items() if callable(value) and not name.startswith("_"))


def _varies(var: VariableTracker) -> bool:
    return isinstance(var, SymbolicVariable) and var.python_type() is int


def pure_model(function: Callable[..., Any]) -> Callable[[Translator, Args, Kwargs], VariableTracker]:
    """The model of a pure function: called at capture when all arguments are known."""
    name = getattr(function, "__name__", repr(function))

    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        if function in (int, operator.index) and len(args) == 1 and not kwargs and _varies(realize(args[0])):
            return realize(args[0])
        first = realize(args[0]) if args else None
        if function is str and len(args) == 1 and isinstance(first, ExceptionVariable):
            return first.text(tx)
        known = constants(args, kwargs)
        if known is None:
            hint = ""
            if any(isinstance(realize(arg), TensorVariable) for arg in args):
                hint = "keep the value in a tensor to avoid the break"
            raise GraphBreak(f"{name}() of values not known at capture", hint)
        if any(isinstance(value, set | frozenset) for value in known[0]) and function in (str, repr):
            raise GraphBreak(f"{name}() of a container")
        return fold(function, *known[0], **known[1])

    return model


for _function in (*_CONVERSIONS, *_MATH, torch.device, torch.promote_types, torch.can_cast, operator.index,
    torch._C._get_privateuse1_backend_name, torch._C._is_torch_function_mode_enabled):  # fmt: skip
    models(_function)(pure_model(_function))


def _info_model(kind: Any) -> None:
    @models(kind)
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        known = constants(args, kwargs)
        if known is None:
            raise GraphBreak(f"torch.{kind.__name__}() of values not known at capture")
        try:
            return NumericLimitsVariable(kind(*known[0], **known[1]))
        except TypeError as error:
            raise GraphBreak(f"TypeError: {error}") from error


_info_model(torch.finfo)
_info_model(torch.iinfo)


@final
class NumericLimitsVariable(KnownVariable):
    """A `torch.finfo` or `torch.iinfo`."""

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        return fold(getattr, self.value, name)


@models(torch.result_type)
def call_result_type(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if kwargs or len(args) != 2:
        raise GraphBreak("torch.result_type() with these arguments")
    with tx.output.fake_mode:
        return fold(torch.result_type, *(realize(arg).as_fake() for arg in args))


@models(torch.as_tensor)
def call_as_tensor(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """A tensor as it is, or brought to another type; of numbers, what `torch.tensor` makes."""
    value = realize(args[0]) if args else None
    if value is None or len(args) > 1 or not set(kwargs) <= {"dtype", "device"}:
        raise GraphBreak("torch.as_tensor() with these arguments")
    if isinstance(value, TensorVariable):
        for name in [name for name, given in kwargs.items() if realize(given).as_python_constant() is None]:
            del kwargs[name]
        return value.call_method(tx, "to", [], kwargs) if kwargs else value
    return call_torch(tx, "call_function", torch.tensor, args, kwargs)


@models(torch.is_tensor)
def call_is_tensor(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if len(args) != 1 or kwargs:
        raise GraphBreak("torch.is_tensor() with these arguments")
    return ConstantVariable(isinstance(realize(args[0]), TensorVariable))
