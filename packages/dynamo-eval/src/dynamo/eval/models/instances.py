"""How objects of user classes are made, and what `object`'s own methods do with them."""

import abc
import enum
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final

import torch

from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.models.builtin_calls import Args, Kwargs, expect
from dynamo.eval.models.exceptions import make_exception
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.binding import bound_attribute
from dynamo.eval.variables.calls import models
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable, fold
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.iterator import iterator_of
from dynamo.eval.variables.lookup import (
    MISSING,
    NoSuchAttribute,
    builtin_layout,
    is_python_class,
    static_lookup,
)
from dynamo.eval.variables.module import NNModuleVariable
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.eval.variables.sequence import ListVariable, TupleVariable
from dynamo.eval.variables.sets import SetVariable
from dynamo.guards import ClassAttrSource


@models(type.__dict__["__call__"])
def call_class(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    """``type.__call__(kind, …)``: ``__new__``, then ``__init__`` of what it gave."""
    kind = realize(args[0])
    if not isinstance(kind, ClassVariable):
        raise GraphBreak(f"making an object of {kind.describe()}")
    cls = kind.value
    if issubclass(cls, BaseException):
        return make_exception(tx, kind, args[1:], kwargs)
    _refuse_unknown_layout(cls)
    new = static_lookup(cls, "__new__")
    source = ClassAttrSource(kind.own_source(), "__new__")
    made = realize(bound_attribute(tx, "__new__", new, source, None, kind).call(tx, args, kwargs))
    if not isinstance(made, UserObjectVariable) or not issubclass(made.kind, cls):
        return made
    init = static_lookup(made.kind, "__init__")
    init_source = ClassAttrSource(made.class_source(), "__init__")
    bound_attribute(tx, "__init__", init, init_source, made, made.class_variable()).call(tx, args[1:], kwargs)
    return made


def _refuse_unknown_layout(cls: type) -> None:
    """Refuse a class whose objects capture cannot make.

    Raises:
        GraphBreak: state in C that is not that of a plain container, or a ``__del__``, which must run at its time.
    """
    if cls is not object and (not is_python_class(cls) or builtin_layout(cls) is None):
        raise GraphBreak(f"making a {cls.__qualname__}", "make it outside of the captured function")
    if static_lookup(cls, "__del__") is not MISSING:
        raise GraphBreak(f"making a {cls.__qualname__}, which has a __del__")
    if getattr(cls, "__abstractmethods__", None) and isinstance(cls, abc.ABCMeta):
        raise GraphBreak(f"TypeError: making a {cls.__qualname__}, which is abstract")
    if issubclass(cls, torch.Tensor | enum.Enum):
        raise GraphBreak(f"making a {cls.__qualname__}")


def _new(layout: type, content: Callable[[Translator, Args, Kwargs], VariableTracker | None]) -> None:
    """Register the model of ``layout.__new__``; `content` makes what an object of a subclass holds."""

    @models(layout.__new__)
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        kind = realize(args[0]) if args else None
        if not isinstance(kind, ClassVariable):
            raise GraphBreak(f"{layout.__name__}.__new__() with these arguments")
        if kind.value is layout and layout is not object:
            return kind.call(tx, args[1:], kwargs)
        _refuse_unknown_layout(kind.value)
        found = builtin_layout(kind.value)
        if found is not layout and not (layout is dict and found is OrderedDict):
            raise GraphBreak(f"TypeError: {layout.__name__}.__new__({kind.value.__qualname__}) is not safe")
        if layout is object and len(args) + len(kwargs) > 1:
            _refuse_surplus(kind.value)
        if issubclass(kind.value, torch.nn.Module):
            return NNModuleVariable(None, kind.value, None, kind)
        return UserObjectVariable(None, kind.value, None, kind, content(tx, args, kwargs))


def _refuse_surplus(kind: type) -> None:
    """`object.__new__` takes arguments only where ``__init__`` or, calling up, ``__new__`` is the class's own."""
    own_new = static_lookup(kind, "__new__") is not static_lookup(object, "__new__")
    own_init = static_lookup(kind, "__init__") is not static_lookup(object, "__init__")
    if own_new or not own_init:
        raise GraphBreak(f"TypeError: {kind.__qualname__}() takes no arguments")


def _dict_content(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    kind = realize(args[0]).as_python_constant()
    return DictVariable([], OrderedDict if issubclass(kind, OrderedDict) else dict)


def _tuple_content(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    items = expect("tuple.__new__", args[1:], kwargs, 0, 1)
    return TupleVariable(iterator_of(tx, items[0]).unpack(tx) if items else [])


def _frozenset_content(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    items = expect("frozenset.__new__", args[1:], kwargs, 0, 1)
    return SetVariable(iterator_of(tx, items[0]).unpack(tx) if items else [], frozenset)


_new(object, lambda tx, args, kwargs: None)
_new(dict, _dict_content)
if OrderedDict.__new__ is not dict.__new__:
    _new(OrderedDict, _dict_content)
_new(list, lambda tx, args, kwargs: ListVariable([]))
_new(set, lambda tx, args, kwargs: SetVariable([]))
_new(tuple, _tuple_content)
_new(frozenset, _frozenset_content)


def _owner(name: str, args: Args) -> UserObjectVariable:
    owner = realize(args[0]) if args else None
    if not isinstance(owner, UserObjectVariable):
        raise GraphBreak(f"{name}() of {owner.describe() if owner is not None else 'nothing'}")
    return owner


def _name(args: Args) -> str:
    name = realize(args[1]).as_python_constant() if len(args) > 1 else None
    if not isinstance(name, str):
        raise GraphBreak("an attribute whose name is not known at capture")
    return name


@models(*{static_lookup(kind, "__getattribute__") for kind in (object, dict, list, tuple, set, frozenset)})
def call_getattribute(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("__getattribute__", args, kwargs, 2)
    owner, name = _owner("object.__getattribute__", args), _name(args)
    try:
        return owner.generic_get_attr(tx, name)
    except NoSuchAttribute as error:
        message = f"{owner.kind.__name__!r} object has no attribute {name!r}"
        if error.what != f"AttributeError: {message}":
            raise
        raise PythonRaise(AttributeError, (message,)) from error


@models(object.__dict__["__setattr__"])
def call_object_setattr(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("__setattr__", args, kwargs, 3)
    _owner("object.__setattr__", args).generic_set_attr(tx, _name(args), args[2])
    return ConstantVariable(None)


@models(object.__dict__["__delattr__"])
def call_object_delattr(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    expect("__delattr__", args, kwargs, 2)
    _owner("object.__delattr__", args).generic_set_attr(tx, _name(args), None)
    return ConstantVariable(None)


@models(object.__dict__["__init__"])
def call_object_init(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    owner = _owner("object.__init__", args)
    surplus = len(args) > 1 or bool(kwargs)
    own_init = static_lookup(owner.kind, "__init__") is not static_lookup(object, "__init__")
    own_new = static_lookup(owner.kind, "__new__") is not static_lookup(object, "__new__")
    if surplus and (own_init or not own_new):
        raise GraphBreak(f"TypeError: {owner.kind.__qualname__}.__init__() takes no arguments")
    return ConstantVariable(None)


def _content_init(layout: type, replace: Callable[[Translator, Any, Args, Kwargs], None]) -> None:
    @models(static_lookup(layout, "__init__"))
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        content = realize(args[0]).builtin_content() if args else None
        if content is None or not issubclass(content.python_type(), layout):
            raise GraphBreak(f"{layout.__name__}.__init__() with these arguments")
        replace(tx, content, args[1:], kwargs)
        return ConstantVariable(None)


def _init_dict(tx: Translator, content: DictVariable, args: Args, kwargs: Kwargs) -> None:
    content.call_method(tx, "update", args, kwargs)


def _init_list(tx: Translator, content: ListVariable, args: Args, kwargs: Kwargs) -> None:
    given = expect("list.__init__", args, kwargs, 0, 1)
    content.items[:] = iterator_of(tx, given[0]).unpack(tx) if given else []
    content.changed(tx)


def _init_set(tx: Translator, content: SetVariable, args: Args, kwargs: Kwargs) -> None:
    given = expect("set.__init__", args, kwargs, 0, 1)
    content.call_method(tx, "clear", [], {})
    content.call_method(tx, "update", given, {})


_content_init(dict, _init_dict)
_content_init(OrderedDict, _init_dict)
_content_init(list, _init_list)
_content_init(set, _init_set)


@models(object.__dict__["__eq__"])
def call_object_eq(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    left, right = expect("__eq__", args, kwargs, 2)
    return ConstantVariable(True if left is right else NotImplemented)


_ENUM_CALLS: Final = tuple(
    static_lookup(enum.EnumMeta, name) for name in ("__call__", "__getitem__", "__contains__", "__len__")
)


def _enum_call(method: Any) -> None:
    @models(method)
    def model(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
        known = [realize(arg).as_python_constant() for arg in args]
        if kwargs or len(known) > 2:
            raise GraphBreak(f"{method.__qualname__}() with these arguments")
        return fold(method, *known)


for _method in _ENUM_CALLS:
    _enum_call(_method)


@models(static_lookup(enum.EnumMeta, "__iter__"))
def call_enum_iter(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    (kind,) = expect("iter", args, kwargs, 1)
    return fold(tuple, kind.as_python_constant()).iterate(tx)


@models(torch.nn.Module.__call__)
def call_module(tx: Translator, args: Args, kwargs: Kwargs) -> VariableTracker:
    module = realize(args[0]) if args else None
    if not isinstance(module, NNModuleVariable):
        raise GraphBreak("torch.nn.Module.__call__() of something else than a module")
    return module.call_module(tx, args[1:], kwargs)
