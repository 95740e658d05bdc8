"""Whether Python code that is worth capturing may run inside the instruction that broke the graph.

If none can, the frame hook stays off while the broken frame runs, since its rest is entered without it. In doubt the
answer is that some may run: then the hook is on, which costs speed and nothing else. A callback that a built-in
function was told of earlier is not seen here; it runs plainly.
"""

from collections.abc import Callable, Sequence
from types import BuiltinFunctionType, CodeType
from typing import Final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import LazyVariable, VariableTracker, is_constant
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantMethodVariable
from dynamo.eval.variables.function import UserFunctionVariable
from dynamo.eval.variables.known import KnownCallableVariable
from dynamo.eval.variables.null import NULL
from dynamo.eval.variables.sequence import SequenceVariable
from dynamo.eval.variables.tensor import TensorMethodVariable, TensorVariable

_PLAIN: Final = (torch.Tensor, torch.nn.Parameter, int, float, bool, complex, str, bytes, type(None))
_RUNNING: Final = frozenset({"eval", "exec", "__import__", "__build_class__", "breakpoint"})


def runs_no_python(operands: Sequence[VariableTracker], is_foreign: Callable[[CodeType], bool]) -> bool:
    """Whether nothing among the operands of an instruction has Python code that capture could follow.

    Args:
        is_foreign: whether code is of torch, the standard library or capture itself, and never captured.
    """
    return all(_is_inert(var, is_foreign) for var in operands)


def _is_inert(var: VariableTracker, is_foreign: Callable[[CodeType], bool]) -> bool:
    if var is NULL:
        return True
    if isinstance(var, LazyVariable):
        if not var.is_read:
            return type(var.value) in _PLAIN
        var = var.realize()
    if isinstance(var, TensorVariable):
        return var.python_type() in _PLAIN
    if isinstance(var, TensorMethodVariable | ConstantMethodVariable):
        return True
    if isinstance(var, ClassVariable):
        return var.value in _PLAIN
    if isinstance(var, KnownCallableVariable):
        return isinstance(var.value, BuiltinFunctionType) and var.value.__name__ not in _RUNNING
    if isinstance(var, UserFunctionVariable):
        return is_foreign(var.value.__code__)
    if isinstance(var, SequenceVariable):
        return all(_is_inert(item, is_foreign) for item in var.items)
    try:
        kind = var.python_type()
    except GraphBreak:
        return False
    return kind in _PLAIN and is_constant(var)
