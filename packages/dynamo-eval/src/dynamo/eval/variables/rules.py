"""The rules of `wrap`: which variable stands for which Python value, and which guard it needs."""

import enum
import functools
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import torch

from dynamo.eval._frame import EntryPoint, FunctionEntryPoint
from dynamo.eval.errors import GraphBreak
from dynamo.eval.output_graph import OutputGraph
from dynamo.eval.variables.base import VariableTracker
from dynamo.eval.variables.binding import BuiltinVariable
from dynamo.eval.variables.cached import CachedFunctionVariable
from dynamo.eval.variables.calls import model_of
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import SCALARS, TORCH_SCALARS, ConstantVariable, is_literal
from dynamo.eval.variables.deques import DequeVariable
from dynamo.eval.variables.dictionary import DefaultDictVariable, DictVariable
from dynamo.eval.variables.entry_point import EntryPointVariable
from dynamo.eval.variables.function import MethodVariable, UserFunctionVariable
from dynamo.eval.variables.lookup import builtin_layout, is_python_class, static_lookup
from dynamo.eval.variables.mapping_proxy import MappingProxyVariable
from dynamo.eval.variables.module import NNModuleVariable
from dynamo.eval.variables.objects import (
    OpaqueVariable,
    PythonModuleVariable,
    UserObjectVariable,
    WeakReferenceVariable,
)
from dynamo.eval.variables.partial import GETTERS, GetterVariable, PartialVariable
from dynamo.eval.variables.sequence import (
    ListVariable,
    NamedTupleVariable,
    RangeVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from dynamo.eval.variables.sets import SetVariable
from dynamo.eval.variables.symbolic import SymbolicVariable
from dynamo.eval.variables.tensor import TensorVariable
from dynamo.eval.variables.torch_function import TorchVariable, is_graph_function
from dynamo.eval.variables.wrap import Builder, wraps, wraps_where
from dynamo.guards import AttrSource, ConstantSource, ItemSource, Source


@wraps(*SCALARS, *TORCH_SCALARS)
def wrap_literal(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    """Numbers are taken as they are, another value is another capture; but for integers that are known to vary."""
    if type(value) is int:
        symbol = output.add_integer(value, source, _input_name(source))
        if symbol is not None:
            return SymbolicVariable(*symbol, source)
    output.guard(source, "CONSTANT_MATCH")
    return ConstantVariable(value, source)


@wraps_where(10, lambda value: isinstance(value, enum.Enum) and is_literal(value))
def wrap_enum(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return ConstantVariable(value, source)


@wraps(torch.Tensor, torch.nn.Parameter)
def wrap_tensor(output: OutputGraph, value: torch.Tensor, source: Source) -> VariableTracker:
    """A graph input."""
    if value.is_quantized or value.is_nested or value.layout is not torch.strided:
        raise GraphBreak("a tensor that is sparse, nested or quantised")
    if type(value.grad_fn).__name__ == "AsStridedBackward0":
        raise GraphBreak("a strided view under autograd")
    node, fake = output.add_input(value, source, _input_name(source))
    var = TensorVariable(node, fake, source)
    output.tensors[id(fake)] = var
    return var


def _input_name(source: Source) -> str:
    text = "".join(char if char.isalnum() else "_" for char in source.name())
    return "_".join(part for part in text.split("_") if part) or "arg"


@wraps(tuple)
def wrap_tuple(output: OutputGraph, value: tuple[Any, ...], source: Source) -> VariableTracker:
    output.guard(source, "SEQUENCE_LENGTH")
    build = Builder(output)
    return TupleVariable([build(item, ItemSource(source, i)) for i, item in enumerate(value)], source)


@wraps(torch.Size)
def wrap_size(output: OutputGraph, value: torch.Size, source: Source) -> VariableTracker:
    output.guard(source, "EQUALS_MATCH")
    return SizeVariable([ConstantVariable(item) for item in value], source)


@wraps(list)
def wrap_list(output: OutputGraph, value: list[Any], source: Source) -> VariableTracker:
    output.guard(source, "SEQUENCE_LENGTH")
    build = Builder(output)
    return ListVariable([build(item, ItemSource(source, i)) for i, item in enumerate(value)], source)


@wraps_where(20, lambda value: isinstance(value, tuple) and hasattr(type(value), "_fields"))
def wrap_namedtuple(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    kind = type(value)
    if kind.__bases__ != (tuple,):
        raise GraphBreak(f"a {kind.__name__}, a subclass of a named tuple")
    output.guard(source, "SEQUENCE_LENGTH")
    build = Builder(output)
    items = [build(item, ItemSource(source, i)) for i, item in enumerate(value)]
    return NamedTupleVariable(items, kind, source)


@wraps(dict, OrderedDict)
def wrap_dict(output: OutputGraph, value: dict[Any, Any], source: Source) -> VariableTracker:
    return DictVariable(_entries(output, value, source), type(value), source)


@wraps(defaultdict)
def wrap_defaultdict(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    factory = Builder(output)(value.default_factory, AttrSource(source, "default_factory"))
    return DefaultDictVariable(_entries(output, value, source), factory, source)


def _entries(
    output: OutputGraph, value: dict[Any, Any], source: Source
) -> list[tuple[VariableTracker, VariableTracker]]:
    for key in value:
        if not is_literal(key) and not isinstance(key, type):
            raise GraphBreak(f"a dict with a {type(key).__name__} as key")
    output.guard(source, "DICT_KEYS")
    build = Builder(output)
    return [(_key(key), build(item, ItemSource(source, key))) for key, item in value.items()]


def _key(key: Any) -> VariableTracker:
    return ClassVariable(key) if isinstance(key, type) else ConstantVariable(key)


@wraps(set, frozenset)
def wrap_set(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    for key in value:
        if not is_literal(key):
            raise GraphBreak(f"a set with a {type(key).__name__}")
    output.guard(source, "EQUALS_MATCH")
    return SetVariable([ConstantVariable(key) for key in value], type(value), source, value=value)


@wraps(range)
def wrap_range(output: OutputGraph, value: range, source: Source) -> VariableTracker:
    output.guard(source, "EQUALS_MATCH")
    return RangeVariable(value, source)


@wraps(slice)
def wrap_slice(output: OutputGraph, value: slice, source: Source) -> VariableTracker:
    output.guard(source, "TYPE_MATCH")
    build = Builder(output)
    parts = [build(getattr(value, name), AttrSource(source, name)) for name in ("start", "stop", "step")]
    return SliceVariable(parts, source)


@wraps(types.ModuleType)
@wraps_where(
    5, lambda value: isinstance(value, types.ModuleType) and type(value).__module__.startswith("torch")
)
def wrap_python_module(output: OutputGraph, value: types.ModuleType, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return PythonModuleVariable(value, source)


@wraps(types.FunctionType)
def wrap_function(output: OutputGraph, value: types.FunctionType, source: Source) -> VariableTracker:
    if model_of(value) is not None:
        output.guard(source, "ID_MATCH")
        return BuiltinVariable(value, source)
    if is_graph_function(value):
        output.guard(source, "ID_MATCH")
        return TorchVariable(value, source)
    output.guard(source, "FUNCTION_MATCH")
    return UserFunctionVariable(value, source)


@wraps(types.MethodType)
def wrap_method(output: OutputGraph, value: types.MethodType, source: Source) -> VariableTracker:
    output.guard(source, "TYPE_MATCH")
    build = Builder(output)
    function = build.read(value.__func__, AttrSource(source, "__func__"))
    return MethodVariable(function, build.read(value.__self__, AttrSource(source, "__self__")), source)


@wraps_where(30, lambda value: isinstance(value, type))
def wrap_class(output: OutputGraph, value: type, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return ClassVariable(value, source)


@wraps_where(40, lambda value: is_graph_function(value))
def wrap_torch_function(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return TorchVariable(value, source)


_CALLABLES = (
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.MethodWrapperType,
    type(torch.Tensor.add),
)


@wraps_where(50, lambda value: isinstance(value, _CALLABLES) or model_of(value) is not None)
def wrap_builtin(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return BuiltinVariable(value, source)


@wraps_where(60, lambda value: isinstance(value, torch.nn.Module))
def wrap_nn_module(output: OutputGraph, value: torch.nn.Module, source: Source) -> VariableTracker:
    if isinstance(value, torch.jit.ScriptModule):
        raise GraphBreak("a scripted module")
    output.guard(source, "TYPE_MATCH")
    return NNModuleVariable(value, type(value), source)


@wraps(functools.partial)
def wrap_partial(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "TYPE_MATCH")
    build = Builder(output)
    output.guard(AttrSource(source, "args"), "SEQUENCE_LENGTH")
    output.guard(AttrSource(source, "keywords"), "DICT_KEYS")
    args = [build(each, ItemSource(AttrSource(source, "args"), i)) for i, each in enumerate(value.args)]
    kwargs = {
        name: build(each, ItemSource(AttrSource(source, "keywords"), name))
        for name, each in value.keywords.items()
    }
    return PartialVariable(build(value.func, AttrSource(source, "func")), args, kwargs, source)


@wraps(*GETTERS)
def wrap_getter(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return GetterVariable(value, source)


@wraps(functools._lru_cache_wrapper)
def wrap_cached_function(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return CachedFunctionVariable(value, source)


@wraps(deque)
def wrap_deque(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    """No source leads to an item of a deque, so that only literals in one are known, all of them guarded at once."""
    items, limit = list(value), value.maxlen
    if not all(is_literal(item) for item in items):
        raise GraphBreak("a deque of something else than literals")
    output.guard(source, "TYPE_MATCH")
    output.guard_that(source, _holds_items(items, limit), f"the items {items!r:.60} and maxlen {limit}")
    return DequeVariable([ConstantVariable(item) for item in items], limit, source)


def _holds_items(items: list[Any], limit: int | None) -> Callable[[Any], bool]:
    shown = [(type(item), repr(item)) for item in items]
    return lambda value: value.maxlen == limit and [(type(item), repr(item)) for item in value] == shown


@wraps(EntryPoint, FunctionEntryPoint)
def wrap_entry_point(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return EntryPointVariable(value, source)


@wraps(types.MappingProxyType)
def wrap_mapping_proxy(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    """No source leads through a proxy: what it shows now is kept, and must stay the same objects."""
    shown = dict(value)
    output.guard(source, "TYPE_MATCH")
    output.guard_that(source, _shows(shown), f"the same {len(shown)} entries behind a mapping proxy")
    return MappingProxyVariable(
        DictVariable(_entries(output, shown, ConstantSource(shown, f"dict({source.name()})")))
    )


def _shows(shown: dict[Any, Any]) -> Callable[[Any], bool]:
    return lambda value: list(value) == list(shown) and all(value[key] is shown[key] for key in shown)


@wraps(weakref.ref)
def wrap_weak_reference(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "TYPE_MATCH")
    return WeakReferenceVariable(value, source)


def _is_user_object(value: Any) -> bool:
    """An instance of a class written in Python whose state is attributes, slots and the items of a plain container."""
    kind = type(value)
    return is_python_class(kind) and builtin_layout(kind) is not None and not isinstance(value, torch.Tensor)


@wraps_where(70, _is_user_object)
def wrap_object(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "TYPE_MATCH")
    var = UserObjectVariable(value, type(value), source)
    var.content = _content(output, value, source)
    return var


def _content(output: OutputGraph, value: Any, source: Source) -> VariableTracker | None:
    """What an object of a subclass of a built-in container holds.

    Raises:
        GraphBreak: the class has its own ``__getitem__``, so that no plain path leads to the items.
    """
    layout = builtin_layout(type(value))
    if layout is None or layout is object:
        return None
    if static_lookup(type(value), "__getitem__") is not static_lookup(layout, "__getitem__"):
        raise GraphBreak(f"a {type(value).__name__}, which has its own __getitem__")
    build = Builder(output)
    if issubclass(layout, dict):
        return DictVariable(_entries(output, value, source), layout, source)
    if layout in (set, frozenset):
        raise GraphBreak(f"a {type(value).__name__}, a subclass of {layout.__name__}")
    output.guard(source, "SEQUENCE_LENGTH")
    items = [
        build(item, ItemSource(source, i))
        for i, item in enumerate(list.__iter__(value) if layout is list else tuple.__iter__(value))
    ]
    return ListVariable(items, source) if layout is list else TupleVariable(items, source)


@wraps_where(90, lambda value: not isinstance(value, torch.Tensor))
def wrap_opaque(output: OutputGraph, value: Any, source: Source) -> VariableTracker:
    output.guard(source, "ID_MATCH")
    return OpaqueVariable(value, source)
