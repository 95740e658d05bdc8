"""Pure functions of literals: computed at capture when every argument is known."""

import math
import operator
from collections.abc import Callable
from typing import Any

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.exception import ExceptionVariable
from dynamo.eval.variables.symbolic import SymbolicVariable
from dynamo.eval.variables.tensor import TensorVariable

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
        if any(isinstance(value, list | dict | set) for value in known[0]) and function in (str, repr):
            raise GraphBreak(f"{name}() of a container")
        return fold(function, *known[0], **known[1])

    return model


for _function in (*_CONVERSIONS, *_MATH, torch.device, torch.promote_types, torch.can_cast, operator.index):
    models(_function)(pure_model(_function))


@models(torch.is_tensor)
def call_is_tensor(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if len(args) != 1 or kwargs:
        raise GraphBreak("torch.is_tensor() with these arguments")
    return ConstantVariable(isinstance(realize(args[0]), TensorVariable))
