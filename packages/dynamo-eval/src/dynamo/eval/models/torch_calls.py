"""torch functions that are not one plain node: questions about modes, grad mode contexts, Tensor methods."""

from typing import Any

import torch
from torch._jit_internal import is_scripting
from torch.jit._trace import is_tracing

from dynamo.eval.ambient_state import READERS
from dynamo.eval.errors import GraphBreak
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.context import GradModeVariable
from dynamo.eval.variables.sequence import SequenceVariable
from dynamo.eval.variables.tensor import TensorVariable, call_torch


def _reader(function: Any) -> None:
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        known = constants(args, kwargs)
        if known is None:
            raise GraphBreak(f"{function.__name__}() of values not known at capture")
        return fold(function, *known[0], **known[1])

    models(function)(model)


for _function in READERS:
    _reader(_function)


@models(torch.set_grad_enabled)
def call_set_grad_enabled(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """The mode changes at once; as a context manager it comes back at the end of the block."""
    mode = constants([*args, *kwargs.values()], {})
    if mode is None or len(mode[0]) != 1:
        raise GraphBreak("set_grad_enabled() with these arguments")
    context = GradModeVariable(bool(mode[0][0]), sets_at_once=True)
    context.begin(tx)
    return context


@models(torch.no_grad)
def call_no_grad(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("no_grad", args, kwargs, 0)
    return GradModeVariable(False)


@models(torch.enable_grad)
def call_enable_grad(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("enable_grad", args, kwargs, 0)
    return GradModeVariable(True)


@models(is_scripting, is_tracing, torch.compiler.is_exporting)
def call_is_scripting(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return ConstantVariable(False)


@models(torch.numel)
def call_numel(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("numel", args, kwargs, 1)
    return realize(value).call_method(tx, "numel", [], {})


def _tensor_question(name: str) -> None:
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        (value,) = expect(name, args, kwargs, 1)
        return value.call_method(tx, name, [], {})

    models(getattr(torch, name))(model)


for _name in ("is_floating_point", "is_complex"):
    _tensor_question(_name)


@models(torch._C._get_tracing_state)
def call_tracing_state(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return ConstantVariable(None)


@models(torch._C._log_api_usage_once)
def call_log_api_usage(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """Torch's own count of what is used, kept once per process and name."""
    torch._C._log_api_usage_once(*[realize(arg).as_python_constant() for arg in args])
    return ConstantVariable(None)


@models(torch.compiler.is_compiling, torch.compiler.is_dynamo_compiling)
def call_torch_is_compiling(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return ConstantVariable(True)


@models(
    torch.overrides.has_torch_function, torch.overrides.has_torch_function_unary,
    torch.overrides.has_torch_function_variadic,
)  # fmt: skip
def call_has_torch_function(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """Tensors that capture takes are plain; anything else with an override is refused."""
    flat = [item for arg in args for item in (arg.unpack(tx) if isinstance(arg, SequenceVariable) else [arg])]
    for each in flat:
        kind = realize(each).python_type()
        if not issubclass(kind, torch.Tensor) and hasattr(kind, "__torch_function__"):
            raise GraphBreak(f"{realize(each).describe()} as an argument of torch")
    return ConstantVariable(False)


@models(torch.nn.Parameter)
def call_parameter(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    if not args or not isinstance(realize(args[0]), TensorVariable):
        raise GraphBreak("torch.nn.Parameter() of something else than a tensor")
    return call_torch(tx, "call_function", torch.nn.Parameter, args, kwargs)
