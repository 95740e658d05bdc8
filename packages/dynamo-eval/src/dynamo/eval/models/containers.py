"""Calls that make containers: list, tuple, dict, set, range, slice, super, …"""

from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.variables.base import Translator, VariableTracker, constants, realize
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.dictionary import DefaultDictVariable, DictVariable
from dynamo.eval.variables.iterator import iterator_of, unpacked_whole
from dynamo.eval.variables.sequence import (
    ListVariable,
    NamedTupleVariable,
    SizeVariable,
    SliceVariable,
    TupleVariable,
)
from dynamo.eval.variables.sets import SetVariable, set_of


def _items(tx: Translator, args: Args) -> list[VariableTracker]:
    return iterator_of(tx, args[0]).unpack(tx) if args else []


@models(list)
def call_list(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return ListVariable(_items(tx, expect("list", args, kwargs, 0, 1)))


@models(tuple)
def call_tuple(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    args = expect("tuple", args, kwargs, 0, 1)
    if args and type(args[0]) is TupleVariable:
        return args[0]
    return TupleVariable(_items(tx, args))


@models(set)
def call_set(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    given = expect("set", args, kwargs, 0, 1)
    return set_of(tx, given[0] if given else None, set)


@models(frozenset)
def call_frozenset(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    given = expect("frozenset", args, kwargs, 0, 1)
    if given and isinstance(given[0], SetVariable) and given[0].kind is frozenset:
        return given[0]
    return set_of(tx, given[0] if given else None, frozenset)


def _dict_model(kind: type) -> Callable[[Translator, Args, Kwargs], VariableTracker]:
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        var = DictVariable([], kind)
        var.call_method(tx, "update", args, kwargs)
        return var

    return model


models(dict)(_dict_model(dict))
models(OrderedDict)(_dict_model(OrderedDict))


@models(dict.__dict__["fromkeys"])
def call_fromkeys(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    kind, keys, *value = expect("fromkeys", args, kwargs, 2, 3)
    if kind.as_python_constant() not in (dict, OrderedDict):
        raise GraphBreak(f"fromkeys() of {kind.describe()}")
    made = DictVariable([], kind.as_python_constant())
    for key in unpacked_whole(tx, keys):
        made.set_item(tx, key, value[0] if value else ConstantVariable(None))
    return made


@models(defaultdict)
def call_defaultdict(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    factory = args[0] if args else ConstantVariable(None)
    var = DefaultDictVariable([], factory)
    var.call_method(tx, "update", args[1:], kwargs)
    return var


@models(range)
def call_range(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    known = constants(expect("range", args, kwargs, 1, 3), {})
    if known is None:
        raise GraphBreak("range() with bounds not known at capture")
    return fold(range, *known[0])


@models(slice)
def call_slice(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return SliceVariable(expect("slice", args, kwargs, 1, 3))


@models(torch.Size)
def call_size(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    return SizeVariable(_items(tx, expect("torch.Size", args, kwargs, 0, 1)))


def make_namedtuple(tx: Translator, kind: Any, args: Args, kwargs: Kwargs) -> VariableTracker:
    """An instance of a named tuple class, defaults included.

    Raises:
        GraphBreak: arguments that do not fit.
    """
    fields = kind._fields
    bound: dict[str, VariableTracker] = dict(zip(fields, args, strict=False))
    for name, value in kwargs.items():
        if name not in fields or name in bound:
            raise GraphBreak(f"TypeError: {kind.__name__}() called with arguments that do not fit")
        bound[name] = value
    for name, default in kind._field_defaults.items():
        if name not in bound:
            bound[name] = fold(lambda value=default: value)
    if len(bound) != len(fields) or len(args) > len(fields):
        raise GraphBreak(f"TypeError: {kind.__name__}() called with arguments that do not fit")
    return NamedTupleVariable([realize(bound[name]) for name in fields], kind)
