"""torch functions that are not one plain node: questions about modes, grad mode contexts, Tensor methods."""

import torch
from torch._jit_internal import is_scripting
from torch.jit._trace import is_tracing

from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.context import GradModeVariable


@models(torch.is_grad_enabled)
def call_is_grad_enabled(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("is_grad_enabled", args, kwargs, 0)
    return ConstantVariable(torch.is_grad_enabled())


@models(torch.get_default_dtype)
def call_get_default_dtype(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("get_default_dtype", args, kwargs, 0)
    return ConstantVariable(torch.get_default_dtype())


@models(torch.no_grad)
def call_no_grad(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("no_grad", args, kwargs, 0)
    return GradModeVariable(False)


@models(torch.enable_grad)
def call_enable_grad(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("enable_grad", args, kwargs, 0)
    return GradModeVariable(True)


@models(is_scripting, is_tracing)
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
