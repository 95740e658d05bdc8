"""`inspect.signature` and `dataclasses.fields` of what is known: made at capture, for they last as long as that."""

import dataclasses
import inspect
import types
from typing import Any

from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import NotConstant, Translator, VariableTracker
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.function import MethodVariable, UserFunctionVariable
from dynamo.eval.variables.mapping_proxy import MappingProxyVariable
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import ConstantSource


@models(inspect.signature)
def call_signature(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (function,) = expect("signature", args, kwargs, 1)
    known: Any
    if isinstance(function, MethodVariable) and isinstance(function.function, UserFunctionVariable):
        known = _bound(function.function.value)
    elif isinstance(function, UserFunctionVariable):
        known = function.value
    else:
        try:
            known = function.as_python_constant()
        except NotConstant:
            raise GraphBreak(f"the signature of {function.describe()}") from None
    try:
        found = inspect.signature(known)
    except (TypeError, ValueError) as error:
        raise GraphBreak(f"{type(error).__name__}: {error}") from error
    return wrap_value(
        tx.output, found, ConstantSource(found, f"signature({getattr(known, '__qualname__', known)})")
    )


def _bound(function: types.FunctionType) -> Any:
    """A bound method whose signature is that of any other."""
    return types.MethodType(function, object())


@models(dataclasses.fields)
def call_fields(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """The fields of a data class, made with it and never changed."""
    (value,) = expect("fields", args, kwargs, 1)
    kind = value.value if isinstance(value, ClassVariable) else value.python_type()
    try:
        found = dataclasses.fields(kind)
    except TypeError as error:
        raise PythonRaise(TypeError, tuple(error.args)) from error
    return wrap_value(tx.output, found, ConstantSource(found, f"fields({kind.__qualname__})"))


@models(types.MappingProxyType)
def call_mapping_proxy(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (owner,) = expect("MappingProxyType", args, kwargs, 1)
    if not isinstance(owner, DictVariable):
        raise GraphBreak(f"MappingProxyType() of {owner.describe()}")
    return MappingProxyVariable(owner)
