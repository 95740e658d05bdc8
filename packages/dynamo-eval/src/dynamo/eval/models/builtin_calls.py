"""Built-in functions that ask about a value: len, isinstance, getattr, type, abs, …"""

import builtins
import operator
import types
from typing import Any

import torch

from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.models import operators
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize
from dynamo.eval.variables.binding import BuiltinVariable
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.dictionary import DictVariable, DictViewVariable
from dynamo.eval.variables.function import FunctionVariable, MethodVariable
from dynamo.eval.variables.instance_dict import InstanceDictVariable
from dynamo.eval.variables.keys import key_of
from dynamo.eval.variables.lookup import MISSING, NoSuchAttribute, static_lookup
from dynamo.eval.variables.mapping_proxy import MappingProxyVariable
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import RangeVariable, SequenceVariable
from dynamo.eval.variables.sets import SetVariable
from dynamo.eval.variables.symbolic import settled
from dynamo.eval.variables.tensor import TensorVariable, call_torch

Args = list[VariableTracker]
Kwargs = dict[str, VariableTracker]


def expect(name: str, args: Args, kwargs: Kwargs, low: int, high: int | None = None) -> Args:
    """The read arguments, if their number is right.

    Raises:
        GraphBreak: Python would raise TypeError, or takes keywords that we do not model.
    """
    if kwargs or not low <= len(args) <= (low if high is None else high):
        raise GraphBreak(f"{name}() with these arguments")
    return [realize(arg) for arg in args]


@models(len)
def call_len(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("len", args, kwargs, 1)
    if isinstance(value, SequenceVariable):
        return ConstantVariable(len(value.items))
    if isinstance(value, DictVariable | SetVariable):
        return ConstantVariable(len(value.entries))
    if isinstance(value, DictViewVariable):
        return ConstantVariable(len(value.owner.entries))
    if isinstance(value, ConstantVariable | RangeVariable):
        return fold(len, value.as_python_constant())
    if isinstance(value, TensorVariable):
        return value.call_method(tx, "__len__", [], {})
    if isinstance(value, UserObjectVariable | ClassVariable | MappingProxyVariable | InstanceDictVariable):
        return (
            value.call_method(tx, "__len__", [], {})
            if isinstance(value, InstanceDictVariable)
            else value.call_special(tx, "__len__", [])
        )
    raise GraphBreak(f"len() of {value.describe()}")


@models(isinstance)
def call_isinstance(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    value, kinds = expect("isinstance", args, kwargs, 2)
    return ConstantVariable(_is_instance(tx, value, _classes(kinds)))


def _classes(var: VariableTracker) -> tuple[Any, ...]:
    known = constants([var], {})
    if known is None:
        raise GraphBreak(f"isinstance() against {var.describe()}")
    classes = known[0][0]
    flat = _flattened(classes)
    for each in flat:
        if not isinstance(each, type):
            raise GraphBreak(f"isinstance() against {each!r}")
    return flat


def _flattened(classes: Any) -> tuple[Any, ...]:
    """The classes in nested tuples and unions."""
    if isinstance(classes, types.UnionType):
        classes = classes.__args__
    if not isinstance(classes, tuple):
        return (classes,)
    return tuple(each for part in classes for each in _flattened(part))


def _is_instance(tx: Translator, value: VariableTracker, classes: tuple[Any, ...]) -> bool:
    kind = value.python_type()
    for each in classes:
        if isinstance(value, TensorVariable) and issubclass(each, torch.Tensor):
            if issubclass(kind, each) or each is torch.nn.Buffer and _is_buffer(tx, value):
                return True
            continue
        if issubclass(each, torch.Tensor):
            continue
        check = static_lookup(type(each), "__instancecheck__")
        if check is type.__instancecheck__ or type(each).__module__ == "abc" or check is None:
            if issubclass(kind, each):
                return True
        else:
            raise GraphBreak(f"isinstance() against {each.__name__}, whose metaclass answers")
    return False


def _is_buffer(tx: Translator, value: TensorVariable) -> bool:
    """What `torch.nn.Buffer` marks the tensors with that it gives; none that the graph makes has it."""
    given = next((each.value for each in tx.output.inputs if each.node is value.node), None)
    return bool(getattr(given, "_is_buffer", False))


@models(issubclass)
def call_issubclass(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    known = constants(expect("issubclass", args, kwargs, 2), {})
    if known is None:
        raise GraphBreak("issubclass() of classes not known at capture")
    return fold(issubclass, *known[0])


@models(type)
def call_type(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("type", args, kwargs, 1)
    if isinstance(value, UserObjectVariable):
        return value.class_variable()
    if isinstance(value, ClassVariable):
        return value.metaclass()
    return ClassVariable(value.python_type())


@models(callable)
def call_callable(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("callable", args, kwargs, 1)
    if isinstance(value, FunctionVariable | MethodVariable | BuiltinVariable | ClassVariable):
        return ConstantVariable(True)
    return ConstantVariable(static_lookup(value.python_type(), "__call__") is not MISSING)


def read_attribute(tx: Translator, value: VariableTracker, name: str) -> VariableTracker:
    """``value.name``, where an object that surely lacks it raises AttributeError.

    Raises:
        PythonRaise: the AttributeError.
        NoSuchAttribute: what Python would say is not known exactly.
    """
    try:
        return value.get_attr(tx, name)
    except NoSuchAttribute as error:
        if isinstance(value, UserObjectVariable):
            message = f"{value.kind.__name__!r} object has no attribute {name!r}"
            if error.what == f"AttributeError: {message}":
                value.guard_missing(tx, name)
                raise PythonRaise(AttributeError, (message,)) from error
        raise


@models(getattr)
def call_getattr(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    value, name, *default = expect("getattr", args, kwargs, 2, 3)
    if not isinstance(name, ConstantVariable) or not isinstance(name.value, str):
        raise GraphBreak("getattr() with a name not known at capture")
    if not default:
        return read_attribute(tx, value, name.value)
    try:
        return read_attribute(tx, value, name.value)
    except NoSuchAttribute:
        guard_missing(tx, value, name.value)
    except PythonRaise as error:
        if not issubclass(error.kind, AttributeError):
            raise
    return default[0]


def guard_missing(tx: Translator, value: VariableTracker, name: str) -> None:
    """Ask that the attribute stays absent.

    Raises:
        GraphBreak: no guard can tell.
    """
    if isinstance(value, UserObjectVariable):
        value.guard_missing(tx, name)
        return
    if isinstance(
        value,
        TensorVariable | ClassVariable | ConstantVariable | SequenceVariable | DictVariable | SetVariable,
    ):
        return  # of a built-in class, or guarded by identity
    raise GraphBreak(f"a missing attribute {name!r} of {value.describe()}")


@models(hasattr)
def call_hasattr(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    value, name = expect("hasattr", args, kwargs, 2)
    if not isinstance(name, ConstantVariable) or not isinstance(name.value, str):
        raise GraphBreak("hasattr() with a name not known at capture")
    if isinstance(value, TensorVariable) and hasattr(torch.Tensor, name.value):
        return ConstantVariable(True)
    try:
        value.get_attr(tx, name.value)
    except NoSuchAttribute:
        guard_missing(tx, value, name.value)
        return ConstantVariable(False)
    except PythonRaise as error:
        if not issubclass(error.kind, AttributeError):
            raise
        return ConstantVariable(False)
    return ConstantVariable(True)


@models(setattr)
def call_setattr(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    value, name, new = expect("setattr", args, kwargs, 3)
    if not isinstance(name, ConstantVariable) or not isinstance(name.value, str):
        raise GraphBreak("setattr() with a name not known at capture")
    value.set_attr(tx, name.value, new)
    return ConstantVariable(None)


@models(abs)
def call_abs(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("abs", args, kwargs, 1)
    if isinstance(value, TensorVariable):
        return call_torch(tx, "call_method", "abs", [value], {})
    return fold(abs, _known("abs", value))


def _known(name: str, value: VariableTracker) -> Any:
    value = settled(value)
    if not isinstance(value, ConstantVariable):
        raise GraphBreak(f"{name}() of {value.describe()}")
    return value.value


@models(bool)
def call_bool(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    args = expect("bool", args, kwargs, 0, 1)
    return ConstantVariable(args[0].truth(tx) if args else False)


@models(hash)
def call_hash(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("hash", args, kwargs, 1)
    if isinstance(value, UserObjectVariable) and not value.hashed_by_identity:
        return realize(value.call_special(tx, "__hash__", []))
    if value.hashed_by_identity:
        raise GraphBreak("hash() of an object that is hashed by its address")
    if isinstance(value, SequenceVariable) and value.python_type() is tuple:
        return fold(hash, value.as_python_constant())
    return fold(hash, key_of(value))


@models(id)
def call_id(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    raise GraphBreak("id()", "compare with `is` instead")


def _print(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    raise GraphBreak("print()", "the text is printed between two graphs, in the right order")


models(builtins.print)(_print)

_OPERATOR_BINARY = {
    operator.add: "+", operator.sub: "-", operator.mul: "*", operator.truediv: "/", operator.floordiv: "//",
    operator.mod: "%", operator.pow: "**", operator.matmul: "@", operator.and_: "&", operator.or_: "|",
    operator.xor: "^", operator.lshift: "<<", operator.rshift: ">>", operator.iadd: "+=",
    operator.isub: "-=", operator.imul: "*=", operator.itruediv: "/=",
}  # fmt: skip


def _register_operators() -> None:
    for function, symbol in _OPERATOR_BINARY.items():
        models(function)(_binary_model(symbol))
    for symbol, (function, _, _) in operators.COMPARE.items():
        models(function)(_compare_model(symbol))
    for symbol, (unary_function, _) in operators.UNARY.items():
        models(unary_function)(_unary_model(symbol))


def _binary_model(symbol: str) -> Any:
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        left, right = expect(symbol, args, kwargs, 2)
        return operators.binary(tx, symbol, left, right)

    return model


def _compare_model(symbol: str) -> Any:
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        left, right = expect(symbol, args, kwargs, 2)
        return operators.compare(tx, symbol, left, right)

    return model


def _unary_model(symbol: str) -> Any:
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        (value,) = expect(symbol, args, kwargs, 1)
        return operators.unary(tx, symbol, value)

    return model


_register_operators()


@models(operator.getitem)
def call_getitem(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    container, key = expect("getitem", args, kwargs, 2)
    return operators.get_item(tx, container, key)


@models(operator.setitem)
def call_setitem(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    container, key, value = expect("setitem", args, kwargs, 3)
    operators.set_item(tx, container, key, value)
    return ConstantVariable(None)


@models(operator.not_)
def call_not(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (value,) = expect("not_", args, kwargs, 1)
    return operators.negate(tx, value)


@models(operator.contains)
def call_contains(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    container, item = expect("contains", args, kwargs, 2)
    return operators.contains(tx, container, item)


@models(operator.is_)
def call_is(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    left, right = expect("is_", args, kwargs, 2)
    return ConstantVariable(operators.identical(tx, left, right))
