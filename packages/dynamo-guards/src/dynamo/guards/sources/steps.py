"""Steps from one value to the next: attribute, item, key, type, weak reference …

Each step says how it reads as Python, how it loads, and which native load follows it.  A step that would run the user's
code on every check (a property, a custom ``__getitem__``) is refused in `Source.native` with the reason.
"""

from __future__ import annotations

import keyword
import types
import weakref
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Final, final

import torch

from dynamo.guards import _check
from dynamo.guards.sources.base import Bind, GuardSource, Load, Scope, Source

MODULE_GETATTR: Final = torch.nn.Module.__getattr__
_PLAIN_DESCRIPTORS: Final = (
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodDescriptorType,
    types.WrapperDescriptorType,
    types.GetSetDescriptorType,
    types.MemberDescriptorType,
    types.ClassMethodDescriptorType,
    classmethod,
    staticmethod,
    type,
)
_PLAIN_GETATTRIBUTE: Final = (
    object.__getattribute__,
    type.__getattribute__,
    types.ModuleType.__getattribute__,
)
_ITEM_LOADS: Final[dict[type, str]] = {list: "LIST_ITEM", tuple: "TUPLE_ITEM", dict: "DICT_ITEM"}
_LITERALS: Final = (int, str, bytes, bool, type(None))


_LITERAL_BITS: Final = 4096
"""Longer ints are no literals: Python refuses to write them (`sys.set_int_max_str_digits`)."""

_FUNCTION_PARTS: Final = ("__code__", "__defaults__", "__kwdefaults__", "__closure__")
"""In the order of the numbers that the native load takes."""


def has_literal(value: object) -> bool:
    """Whether the repr of a value is short and reads back exactly."""
    return type(value) in _LITERALS and not (isinstance(value, int) and value.bit_length() > _LITERAL_BITS)


def literal(value: object, bind: Bind) -> str:
    """A key as text: its own repr when that reads back exactly, else a bound name."""
    return repr(value) if has_literal(value) else bind(value)


def ordered_keys(value: dict[Any, object]) -> tuple[Hashable, ...]:
    """The keys in the order of iteration, without a subclass's own code."""
    return tuple(OrderedDict.__iter__(value) if isinstance(value, OrderedDict) else dict.__iter__(value))


def _is_plain_name(name: str) -> bool:
    """Whether ``x.name`` reads this very attribute: the parser takes keywords and normalises what is not ASCII."""
    return name.isidentifier() and name.isascii() and not keyword.iskeyword(name)


def class_attribute(cls: type, name: str) -> object | None:
    """What the MRO of a class holds under a name, unbound; None when nothing."""
    try:
        return _check.class_lookup(cls, name)
    except AttributeError:
        return None


def is_torch_module(value: object) -> bool:
    """Whether attribute access on ``value`` is that of ``nn.Module``, unchanged by its class."""
    cls = type(value)
    return (
        isinstance(value, torch.nn.Module)
        and class_attribute(cls, "__getattr__") is MODULE_GETATTR
        and class_attribute(cls, "__getattribute__") in _PLAIN_GETATTRIBUTE
    )


def _attribute_refusal(base: object, name: str) -> str | None:
    """Why reading the attribute would run the user's code, or None when it does not."""
    cls = type(base)
    if isinstance(base, torch.Tensor):
        return None
    if class_attribute(cls, "__getattribute__") not in _PLAIN_GETATTRIBUTE and not isinstance(base, type):
        if not isinstance(class_attribute(cls, "__getattribute__"), types.WrapperDescriptorType):
            return f"{cls.__qualname__} defines __getattribute__; read the value another way"
    found = class_attribute(cls, name)
    if isinstance(found, property):
        return f"{name} is a property of {cls.__qualname__}, which runs code; guard what it reads"
    in_instance = name in getattr(base, "__dict__", ())
    wins = hasattr(type(found), "__set__") or not in_instance
    if hasattr(type(found), "__get__") and wins and not isinstance(found, _PLAIN_DESCRIPTORS):
        if found is not None:
            return f"{name} is a descriptor of {cls.__qualname__}, which runs code; guard what it reads"
    if found is None and not in_instance and not isinstance(base, type | types.ModuleType):
        if class_attribute(cls, "__getattr__") is not None and not is_torch_module(base):
            return f"{name} comes from {cls.__qualname__}.__getattr__, which runs code; guard what it reads"
    return None


def is_shadowed(base: object, name: str) -> bool:
    """Whether the attribute lies in the instance's dict, before a descriptor of the class that would run code.

    So it is with a `functools.cached_property` that was read: once deleted, reading it runs the user's function.
    """
    found = class_attribute(type(base), name)
    runs_code = hasattr(type(found), "__get__") and not isinstance(found, _PLAIN_DESCRIPTORS)
    return found is not None and runs_code and name in getattr(base, "__dict__", ())


@dataclass(frozen=True, slots=True)
class StepSource(Source):
    """A path that extends another one."""

    origin: Source

    @property
    def base(self) -> Source:
        return self.origin

    @property
    def guard_source(self) -> GuardSource:
        return self.origin.guard_source

    @abstractmethod
    def step(self, base: str, bind: Bind) -> str:
        """The path as Python, given the text of the path that it extends."""

    def expression(self, bind: Bind) -> str:
        return self.step(self.origin.expression(bind), bind)

    def name(self) -> str:
        return self.step(self.origin.name(), repr)


@final
@dataclass(frozen=True, slots=True)
class AttrSource(StepSource):
    """``origin.attr``: of an instance, a class, a module, a function; through ``__slots__`` too."""

    attr: str

    def step(self, base: str, bind: Bind) -> str:
        return f"{base}.{self.attr}" if _is_plain_name(self.attr) else f"getattr({base}, {self.attr!r})"

    def load(self, scope: Scope) -> object:
        return getattr(self.origin.load(scope), self.attr)

    def native(self, scope: Scope) -> Load:
        base = self.origin.load(scope)
        refusal = _attribute_refusal(base, self.attr)
        if refusal is not None:
            raise ValueError(refusal)
        if type(base) is types.FunctionType and self.attr in _FUNCTION_PARTS:
            return Load("FUNCTION_PART", number=_FUNCTION_PARTS.index(self.attr))
        return Load("MODULE_ATTR" if is_torch_module(base) else "ATTR", operand=self.attr)


@final
@dataclass(frozen=True, slots=True)
class InstanceDictSource(StepSource):
    """``origin.__dict__``."""

    def step(self, base: str, bind: Bind) -> str:
        return f"{base}.__dict__"

    def load(self, scope: Scope) -> object:
        return self.origin.load(scope).__dict__

    def native(self, scope: Scope) -> Load:
        return Load("INSTANCE_DICT")


@final
@dataclass(frozen=True, slots=True)
class ItemSource(StepSource):
    """``origin[key]`` of a list, a tuple (by position, not negative) or a dict (by key)."""

    key: Hashable

    def step(self, base: str, bind: Bind) -> str:
        return f"{base}[{literal(self.key, bind)}]"

    def load(self, scope: Scope) -> object:
        base = self.origin.load(scope)
        if isinstance(base, dict):
            return dict.__getitem__(base, self.key)
        if isinstance(base, list | tuple) and isinstance(self.key, int):
            return (
                list.__getitem__(base, self.key)
                if isinstance(base, list)
                else tuple.__getitem__(base, self.key)
            )
        raise LookupError(f"{type(base).__qualname__} is not a list, tuple or dict")

    def native(self, scope: Scope) -> Load:
        base = self.origin.load(scope)
        builtin = next(cls for cls in _ITEM_LOADS if isinstance(base, cls))
        if class_attribute(type(base), "__getitem__") is not class_attribute(builtin, "__getitem__"):
            raise ValueError(f"{type(base).__qualname__} defines __getitem__, which runs code")
        op = _ITEM_LOADS[builtin]
        if op == "DICT_ITEM":
            return Load(op, number=hash(self.key), operand=self.key)
        if not isinstance(self.key, int) or self.key < 0:
            raise ValueError(f"the position {self.key!r} must be an int from 0 up")
        return Load(op, number=self.key)


@final
@dataclass(frozen=True, slots=True)
class DictKeySource(StepSource):
    """The key at a position of a dict, in insertion order."""

    index: int

    def step(self, base: str, bind: Bind) -> str:
        return f"list({base})[{self.index}]"

    def load(self, scope: Scope) -> object:
        base = self.origin.load(scope)
        if not isinstance(base, dict):
            raise LookupError(f"{type(base).__qualname__} is not a dict")
        return ordered_keys(base)[self.index]

    def native(self, scope: Scope) -> Load:
        if self.index < 0:
            raise ValueError("the position of a key must not be negative")
        return Load("DICT_KEY_AT", number=self.index)


@final
@dataclass(frozen=True, slots=True)
class TypeSource(StepSource):
    """``type(origin)``."""

    def step(self, base: str, bind: Bind) -> str:
        return f"type({base})"

    def load(self, scope: Scope) -> object:
        return type(self.origin.load(scope))

    def native(self, scope: Scope) -> Load:
        return Load("TYPE_OF")


@final
@dataclass(frozen=True, slots=True)
class ClassAttrSource(StepSource):
    """What the MRO of the class ``origin`` holds under a name, unbound (a function, not a method)."""

    attr: str

    def step(self, base: str, bind: Bind) -> str:
        return f"___class_lookup({base}, {self.attr!r})"

    def load(self, scope: Scope) -> object:
        base = self.origin.load(scope)
        if not isinstance(base, type):
            raise LookupError(f"{base!r} is not a class")
        return _check.class_lookup(base, self.attr)

    def native(self, scope: Scope) -> Load:
        return Load("CLASS_ATTR", operand=self.attr)


@final
@dataclass(frozen=True, slots=True, init=False)
class SuperSource(StepSource):
    """What ``super(after, origin)`` holds under a name, unbound; the class ``after`` is not kept alive."""

    reference: weakref.ref[type]
    attr: str

    def __init__(self, origin: Source, after: type, attr: str) -> None:
        object.__setattr__(self, "origin", origin)
        object.__setattr__(self, "reference", weakref.ref(after))
        object.__setattr__(self, "attr", attr)

    @property
    def after(self) -> type:
        """The class whose place in the MRO counts. Raises: LookupError when it died."""
        found = self.reference()
        if found is None:
            raise LookupError("the class of super() has died")
        return found

    def step(self, base: str, bind: Bind) -> str:
        found = self.reference()
        after = f"{id(found)}" if found is not None else "0"
        return f"___super_lookup({after}, {base}, {self.attr!r})"

    def name(self) -> str:
        found = self.reference()
        after = found.__qualname__ if found is not None else "a dead class"
        return f"super({after}, {self.origin.name()}).{self.attr}"

    def load(self, scope: Scope) -> object:
        return super_lookup(id(self.after), self.origin.load(scope), self.attr)

    def native(self, scope: Scope) -> Load:
        return Load("SUPER_ATTR", number=id(self.after), operand=self.attr)


def super_lookup(after_id: int, value: object, name: str) -> object:
    """The first definition of a name after a class in the MRO of a value (or of a class). Raises: AttributeError."""
    mro = (value if isinstance(value, type) else type(value)).__mro__
    ids = [id(cls) for cls in mro]
    position = ids.index(after_id) if after_id in ids else len(mro)
    for cls in mro[position + 1 :]:
        if name in vars(cls):
            return vars(cls)[name]
    raise AttributeError(f"super() has no {name!r}")


@final
@dataclass(frozen=True, slots=True)
class WeakRefCallSource(StepSource):
    """``origin()`` of a weak reference: the object it points to."""

    def step(self, base: str, bind: Bind) -> str:
        return f"{base}()"

    def load(self, scope: Scope) -> object:
        ref = self.origin.load(scope)
        found = ref() if isinstance(ref, weakref.ref) else None
        if found is None:
            raise LookupError("the weak reference is dead")
        return found

    def native(self, scope: Scope) -> Load:
        if not isinstance(self.origin.load(scope), weakref.ref):
            raise ValueError("it is not a weak reference")
        return Load("WEAKREF_CALL")


@final
@dataclass(frozen=True, slots=True)
class TupleIteratorItemSource(StepSource):
    """The item that a tuple iterator gives after ``offset`` others; the iterator does not move."""

    offset: int

    def step(self, base: str, bind: Bind) -> str:
        return f"___tuple_iterator_item({base}, {self.offset})"

    def load(self, scope: Scope) -> object:
        return _check.tuple_iterator_item(self.origin.load(scope), self.offset)

    def native(self, scope: Scope) -> Load:
        return Load("TUPLE_ITERATOR_ITEM", number=self.offset)


@dataclass(frozen=True, slots=True)
class FunctionPartSource(StepSource):
    """A part of a function: ``__code__``, ``__defaults__``, ``__kwdefaults__`` or ``__closure__``."""

    part: str

    def step(self, base: str, bind: Bind) -> str:
        return f"{base}.{self.part}"

    def load(self, scope: Scope) -> object:
        return getattr(self.origin.load(scope), self.part)

    def native(self, scope: Scope) -> Load:
        if self.part not in _FUNCTION_PARTS or type(self.origin.load(scope)) is not types.FunctionType:
            raise ValueError(f"{self.part} is no part of a Python function")
        return Load("FUNCTION_PART", number=_FUNCTION_PARTS.index(self.part))


def code_source(function: Source) -> Source:
    """``function.__code__``."""
    return FunctionPartSource(function, "__code__")


def default_source(function: Source, index: int) -> Source:
    """The default of the ``index``-th argument that has one."""
    return ItemSource(FunctionPartSource(function, "__defaults__"), index)


def keyword_default_source(function: Source, name: str) -> Source:
    """The default of a keyword-only argument."""
    return ItemSource(FunctionPartSource(function, "__kwdefaults__"), name)


def closure_cell_source(function: Source, index: int) -> Source:
    """The content of the ``index``-th cell of another function."""
    return AttrSource(ItemSource(FunctionPartSource(function, "__closure__"), index), "cell_contents")


@dataclass(frozen=True, slots=True)
class NNModuleSource(StepSource):
    """The same value, marked as state of an ``nn.Module`` (``guard_nn_modules=False`` leaves its guards out)."""

    @property
    def guard_source(self) -> GuardSource:
        local = self.origin.guard_source.is_local()
        return GuardSource.LOCAL_NN_MODULE if local else GuardSource.GLOBAL_NN_MODULE

    def step(self, base: str, bind: Bind) -> str:
        return base

    def load(self, scope: Scope) -> object:
        return self.origin.load(scope)

    def native(self, scope: Scope) -> Load:
        return Load("SAME")
