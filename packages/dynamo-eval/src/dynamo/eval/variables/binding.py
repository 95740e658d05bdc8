"""Descriptors: what reading a class attribute through an instance, or through the class, gives."""

import functools
import types
from typing import Any, final

from dynamo.eval._frame import FunctionEntryPoint
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import model_of
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.function import MethodVariable
from dynamo.eval.variables.known import KnownCallableVariable
from dynamo.eval.variables.lookup import is_descriptor, static_lookup
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import AttrSource, Source

#: descriptors made in C that give a method bound to the instance
C_METHODS = (types.MethodDescriptorType, types.WrapperDescriptorType)
#: descriptors that give themselves when they are read through the class
_SELF_GIVING = (property, types.GetSetDescriptorType, types.MemberDescriptorType, functools.cached_property)


@final
class BuiltinVariable(KnownCallableVariable):
    """A built-in or otherwise known callable; `dynamo.eval.models` says what calls give."""

    def describe(self) -> str:
        return f"{getattr(self.value, '__qualname__', self.value)}()"

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        model = model_of(self.value)
        if model is not None:
            return model(tx, args, kwargs)
        if isinstance(self.value, C_METHODS) and args:
            return self._call_unbound(tx, args, kwargs)
        raise GraphBreak(f"calling {self.describe()}", "move the call out of the captured function")

    def _call_unbound(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """``dict.get(owner, …)``: the built-in method itself, whatever the class of the owner overrides."""
        owner = realize(args[0])
        method: Any = self.value
        name: str = method.__name__
        if not issubclass(owner.python_type(), method.__objclass__):
            raise GraphBreak(f"TypeError: {self.describe()} of {owner.describe()}")
        content = owner.builtin_content()
        if content is None or method.__objclass__ is object:
            raise GraphBreak(f"calling {self.describe()} of {owner.describe()}")
        if static_lookup(content.python_type(), name) is not self.value:
            raise GraphBreak(f"calling {self.describe()} of {owner.describe()}")
        return content.call_method(tx, name, args[1:], kwargs)


@final
class BoundBuiltinVariable(VariableTracker):
    """A method made in C, bound to an object of a class written in Python."""

    mutable = True

    method: Any  # a descriptor made in C

    def __init__(self, owner: VariableTracker, method: object) -> None:
        super().__init__()
        self.owner = owner
        self.method = method

    def describe(self) -> str:
        return f"{self.method.__name__}() of {self.owner.describe()}"

    def python_type(self) -> type:
        return types.BuiltinMethodType if isinstance(self.method, C_METHODS[0]) else types.MethodWrapperType

    def truth(self, tx: Translator) -> bool:
        return True

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return BuiltinVariable(self.method).call(tx, [self.owner, *args], kwargs)


def bound_attribute(
    tx: Translator,
    name: str,
    found: object,
    source: Source,
    instance: VariableTracker | None,
    owner: VariableTracker,
) -> VariableTracker:
    """What ``found.__get__(instance, owner)`` gives, or `found` itself if it is no descriptor.

    Args:
        found: a value in the dict of a class, as `static_lookup` finds it.
        source: where it is found.
        instance: None when the attribute is read through the class.
        owner: the class.

    Raises:
        GraphBreak: a descriptor made in C that capture does not know.
    """
    if isinstance(found, types.FunctionType):
        function = wrap_value(tx.output, found, source)
        return function if instance is None else MethodVariable(function, instance)
    if isinstance(found, classmethod):
        return MethodVariable(wrap_value(tx.output, found.__func__, AttrSource(source, "__func__")), owner)
    if isinstance(found, staticmethod):
        return wrap_value(tx.output, found.__func__, AttrSource(source, "__func__"))
    if isinstance(found, property) and instance is not None:
        if not isinstance(found.fget, types.FunctionType):
            raise GraphBreak(f"property {name!r} of {owner.describe()}, which is not Python code")
        return wrap_value(tx.output, found.fget, AttrSource(source, "fget")).call(tx, [instance], {})
    if isinstance(found, types.ClassMethodDescriptorType):
        return BoundBuiltinVariable(owner, found)
    if isinstance(found, C_METHODS):
        return BuiltinVariable(found) if instance is None else BoundBuiltinVariable(instance, found)
    if isinstance(found, functools.cached_property) and instance is not None:
        value = wrap_value(tx.output, found.func, AttrSource(source, "func")).call(tx, [instance], {})
        instance.set_own(tx, name, value)
        return value
    if isinstance(found, functools._lru_cache_wrapper | FunctionEntryPoint) and instance is not None:
        return MethodVariable(wrap_value(tx.output, found, source), instance)
    if not is_descriptor(found) or isinstance(found, type) or model_of(found) is not None:
        return wrap_value(tx.output, found, source)
    if isinstance(static_lookup(type(found), "__get__"), types.FunctionType):
        descriptor = wrap_value(tx.output, found, source)
        through = ConstantVariable(None) if instance is None else instance
        return descriptor.call_special(tx, "__get__", [through, owner])
    if instance is None and isinstance(found, _SELF_GIVING):
        return wrap_value(tx.output, found, source)
    raise GraphBreak(f"descriptor {name!r} of {owner.describe()}")
