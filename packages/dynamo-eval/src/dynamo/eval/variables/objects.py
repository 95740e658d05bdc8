"""Objects of user classes and Python modules: attribute access as CPython does it."""

import types
import weakref
from collections.abc import Iterator, Mapping
from typing import Any, Final, final

import torch

from dynamo.eval.effects import AttributeWrite
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.binding import bound_attribute
from dynamo.eval.variables.classes import ClassVariable, written_on_class, written_value
from dynamo.eval.variables.constant import LITERALS, ConstantVariable
from dynamo.eval.variables.instance_dict import InstanceDictVariable
from dynamo.eval.variables.iterator import IteratorVariable, StopSymbolicIteration
from dynamo.eval.variables.keys import has_default_hash
from dynamo.eval.variables.lookup import (
    MISSING,
    NoSuchAttribute,
    has_instance_dict,
    is_data_descriptor,
    is_descriptor,
    static_lookup,
)
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import (
    AttrSource,
    ClassAttrSource,
    ConstantSource,
    InstanceDictSource,
    ItemSource,
    Source,
    TypeSource,
    WeakRefCallSource,
)


@final
class PythonModuleVariable(VariableTracker):
    """A module, such as `torch` or `math`."""

    def __init__(self, value: types.ModuleType, source: Source) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return types.ModuleType

    def describe(self) -> str:
        return f"module {self.value.__name__}"

    def as_python_constant(self) -> Any:
        return self.value

    def truth(self, tx: Translator) -> bool:
        return True

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        assert self.source is not None
        written = tx.output.effects.find(AttributeWrite(self, name, None))
        if isinstance(written, AttributeWrite):
            return written_value(written)
        found = self.value.__dict__.get(name, MISSING)
        computed = static_lookup(type(self.value), name)
        if (
            type(self.value) is not types.ModuleType
            and is_descriptor(computed)
            and not isinstance(computed, types.FunctionType)
        ):
            return self._setting(tx, name)
        if found is MISSING and type(self.value) is not types.ModuleType:
            found = _behind(self.value).get(name, MISSING)
            if found is not MISSING:
                return wrap_value(tx.output, found, ConstantSource(found, f"{self.value.__name__}.{name}"))
        if found is MISSING:
            raise NoSuchAttribute(f"module {self.value.__name__} has no attribute {name!r} yet")
        return wrap_value(tx.output, found, AttrSource(self.source, name))

    def _setting(self, tx: Translator, name: str) -> VariableTracker:
        """A flag of torch that a descriptor of the module's class reads, such as ``torch.backends.cudnn.enabled``."""
        assert self.source is not None
        module, value = self.value, getattr(self.value, name)
        if type(value) not in LITERALS:
            raise GraphBreak(f"attribute {name!r} of {self.describe()}")
        tx.output.guard_that(
            self.source,
            lambda _: getattr(module, name, None) == value,
            f"{module.__name__}.{name} to be {value!r}",
        )
        return ConstantVariable(value)

    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        tx.output.effects.note(AttributeWrite(self, name, value))


def _behind(module: types.ModuleType) -> Mapping[str, Any]:
    """What torch's own kinds of modules, such as `torch._VF` and `torch.backends`, give beside their dict."""
    if module is torch._VF:
        return _Members(torch._C._VariableFunctions)
    inner = module.__dict__.get("m")
    return inner.__dict__ if isinstance(inner, types.ModuleType) else {}


@final
class _Members(Mapping[str, Any]):
    """The attributes of a namespace."""

    def __init__(self, namespace: object) -> None:
        self.namespace = namespace

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self.namespace, name)
        except AttributeError:
            raise KeyError(name) from None

    def __iter__(self) -> Iterator[str]:
        return iter(dir(self.namespace))

    def __len__(self) -> int:
        return len(dir(self.namespace))


_PLAIN_GETATTRIBUTE: Final = tuple(
    static_lookup(kind, "__getattribute__") for kind in (object, dict, list, tuple, set, frozenset)
)
_PLAIN_SETATTR: Final = {
    "__setattr__": static_lookup(object, "__setattr__"),
    "__delattr__": static_lookup(object, "__delattr__"),
}


class UserObjectVariable(VariableTracker):
    """An object of a user class: one that existed (`value`), or one made inside (`value` None).

    Attributes:
        kind: its class.
        content: for a subclass of a built-in container, the container that it is.
        fresh_attributes: the attributes of an object that the captured code made.
    """

    mutable = True

    def __init__(
        self,
        value: object,
        kind: type,
        source: Source | None,
        class_var: ClassVariable | None = None,
        content: VariableTracker | None = None,
    ) -> None:
        super().__init__(source)
        self.value = value
        self.kind = kind
        self.class_var = class_var
        self.content = content
        self.fresh_attributes: dict[str, VariableTracker] = {}

    @property
    def hashed_by_identity(self) -> bool:
        return has_default_hash(self.kind)

    @property
    def is_fresh(self) -> bool:
        """Whether the captured code made this object."""
        return self.source is None

    def python_type(self) -> type:
        return self.kind

    def builtin_content(self) -> VariableTracker | None:
        return self.content

    def class_variable(self) -> ClassVariable:
        """``type(value)``."""
        if self.class_var is None:
            assert self.source is not None
            self.class_var = ClassVariable(self.kind, TypeSource(self.source))
        return self.class_var

    def class_source(self) -> Source:
        """Where the class of the object is found."""
        return self.class_variable().own_source()

    def truth(self, tx: Translator) -> bool:
        for name in ("__bool__", "__len__"):
            if static_lookup(self.kind, name) is not MISSING:
                return realize(self.call_special(tx, name, [])).truth(tx)
        return True

    def call_special(self, tx: Translator, name: str, args: list[VariableTracker]) -> VariableTracker:
        """``type(value).name(value, *args)``: a dunder method.

        Raises:
            NoSuchAttribute: the class has none.
            GraphBreak: capture does not know what it does.
        """
        found = static_lookup(self.kind, name)
        if found is MISSING or found is None:
            raise NoSuchAttribute(f"{self.describe()} has no {name}")
        return self._bound(tx, name, found).call(tx, args, {})

    # -- reading ----------------------------------------------------------------------------------------
    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        hook = static_lookup(self.kind, "__getattribute__")
        try:
            if hook in _PLAIN_GETATTRIBUTE:
                return self.generic_get_attr(tx, name)
            return self.call_special(tx, "__getattribute__", [ConstantVariable(name)])
        except (NoSuchAttribute, PythonRaise) as error:
            if isinstance(error, PythonRaise) and not issubclass(error.kind, AttributeError):
                raise
            if static_lookup(self.kind, "__getattr__") is MISSING:
                raise
        return self.missing_attribute(tx, name)

    def generic_get_attr(self, tx: Translator, name: str) -> VariableTracker:
        """``object.__getattribute__(value, name)``.

        Raises:
            NoSuchAttribute: there is none; ``__getattr__`` is not asked.
        """
        written = written_on_class(tx, self.kind, name)
        on_class = static_lookup(self.kind, name) if written is None else MISSING
        if on_class is not MISSING and is_data_descriptor(on_class):
            return self._data_descriptor(tx, name, on_class)
        found = self.instance_attribute(tx, name)
        if found is not None:
            return found
        if written is not None:
            return written_value(written)
        if on_class is not MISSING:
            self.guard_absent(tx, name)
            return self._bound(tx, name, on_class)
        self.guard_missing(tx, name)
        raise NoSuchAttribute(f"AttributeError: {self.kind.__name__!r} object has no attribute {name!r}")

    def instance_attribute(self, tx: Translator, name: str) -> VariableTracker | None:
        """The value in the instance's own dict, stores of this capture included."""
        written = tx.output.effects.find(AttributeWrite(self, name, None))
        if isinstance(written, AttributeWrite):
            return realize(written.value) if isinstance(written.value, VariableTracker) else None
        if self.is_fresh:
            found = self.fresh_attributes.get(name)
            return realize(found) if found is not None else None
        attributes = self.own_attributes()
        if name in attributes:
            return wrap_value(tx.output, attributes[name], self._own_source(name))
        return None

    def own_attributes(self) -> dict[str, Any]:
        """The dict of an object that existed; empty for one without."""
        if not has_instance_dict(self.kind):
            return {}
        found: dict[str, Any] = object.__getattribute__(self.value, "__dict__")
        return found

    def _own_source(self, name: str) -> Source:
        """Where an attribute of the own dict is found, without running a ``__getattribute__`` of the class."""
        assert self.source is not None
        if static_lookup(self.kind, "__getattribute__") in _PLAIN_GETATTRIBUTE and name.isidentifier():
            return AttrSource(self.source, name)
        return ItemSource(InstanceDictSource(self.source), name)

    def missing_attribute(self, tx: Translator, name: str) -> VariableTracker:
        """What ``__getattr__`` gives."""
        return self.call_special(tx, "__getattr__", [ConstantVariable(name)])

    def guard_absent(self, tx: Translator, name: str) -> None:
        """Ask that the instance's own dict still lacks `name`."""
        if self.source is not None and has_instance_dict(self.kind):
            tx.output.guard_absent(self.source, name)

    def guard_missing(self, tx: Translator, name: str) -> None:
        """Ask that neither instance nor class get the attribute."""
        if self.source is not None and name != "__class__":
            self.guard_absent(tx, name)
            tx.output.guard_class_attribute(self.source, name)

    def _data_descriptor(self, tx: Translator, name: str, found: object) -> VariableTracker:
        if name == "__class__" and found is static_lookup(object, "__class__"):
            return self.class_variable()
        if name == "__dict__" and isinstance(found, types.GetSetDescriptorType):
            return InstanceDictVariable(self)
        if isinstance(found, types.MemberDescriptorType):
            return self._slot(tx, name)
        return self._bound(tx, name, found)

    def _slot(self, tx: Translator, name: str) -> VariableTracker:
        written = tx.output.effects.find(AttributeWrite(self, name, None))
        if isinstance(written, AttributeWrite):
            return written_value(written)
        if self.is_fresh:
            found = self.fresh_attributes.get(name)
            if found is not None:
                return realize(found)
        elif static_lookup(self.kind, "__getattribute__") in _PLAIN_GETATTRIBUTE:
            assert self.source is not None
            try:
                value = object.__getattribute__(self.value, name)
            except AttributeError:
                tx.output.guard_that(self.source, _lacks_slot(name), f"slot {name!r} to be empty")
            else:
                return wrap_value(tx.output, value, AttrSource(self.source, name))
        else:
            raise GraphBreak(f"slot {name!r} of {self.describe()}, which has its own __getattribute__")
        raise NoSuchAttribute(f"AttributeError: {self.kind.__name__!r} object has no attribute {name!r}")

    def _bound(self, tx: Translator, name: str, found: object) -> VariableTracker:
        source = ClassAttrSource(self.class_source(), name)
        return bound_attribute(tx, name, found, source, self, self.class_variable())

    # -- writing ----------------------------------------------------------------------------------------
    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        hook = "__setattr__" if value is not None else "__delattr__"
        if static_lookup(self.kind, hook) is _PLAIN_SETATTR[hook]:
            self.generic_set_attr(tx, name, value)
        elif value is None:
            self.call_special(tx, hook, [ConstantVariable(name)])
        else:
            self.call_special(tx, hook, [ConstantVariable(name), value])

    def generic_set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        """``object.__setattr__(value, name, …)``, or ``object.__delattr__`` for None."""
        on_class = static_lookup(self.kind, name)
        if on_class is not MISSING and is_data_descriptor(on_class):
            self._set_descriptor(tx, name, on_class, value)
            return
        if not has_instance_dict(self.kind):
            raise GraphBreak(f"AttributeError: {name}")
        if value is None and self.instance_attribute(tx, name) is None:
            raise GraphBreak(f"AttributeError: {name}")
        self.set_own(tx, name, value)

    def set_own(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        if not self.is_fresh:
            tx.output.effects.note(AttributeWrite(self, name, value))
        elif value is None:
            del self.fresh_attributes[name]
        else:
            self.fresh_attributes[name] = value
        tx.output.effects.count += 1

    def _set_descriptor(
        self, tx: Translator, name: str, found: object, value: VariableTracker | None
    ) -> None:
        source = ClassAttrSource(self.class_source(), name)
        if isinstance(found, types.MemberDescriptorType):
            if value is None:
                self._slot(tx, name)
            self.set_own(tx, name, value)
        elif isinstance(found, property):
            function = found.fdel if value is None else found.fset
            if not isinstance(function, types.FunctionType):
                raise GraphBreak(f"storing to property {name!r} of {self.describe()}")
            setter = wrap_value(tx.output, function, AttrSource(source, "fdel" if value is None else "fset"))
            setter.call(tx, [self] if value is None else [self, value], {})
        elif value is not None and isinstance(static_lookup(type(found), "__set__"), types.FunctionType):
            wrap_value(tx.output, found, source).call_special(tx, "__set__", [self, value])
        elif value is None and isinstance(static_lookup(type(found), "__delete__"), types.FunctionType):
            wrap_value(tx.output, found, source).call_special(tx, "__delete__", [self])
        else:
            raise GraphBreak(f"storing to descriptor {name!r} of {self.describe()}")

    # -- calling and iterating --------------------------------------------------------------------------
    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        found = static_lookup(self.kind, "__call__")
        if found is MISSING:
            raise GraphBreak(f"TypeError: {self.describe()} is not callable")
        return self._bound(tx, "__call__", found).call(tx, args, kwargs)

    def iterate(self, tx: Translator) -> VariableTracker:
        if static_lookup(self.kind, "__iter__") is MISSING:
            if static_lookup(self.kind, "__getitem__") is MISSING:
                raise GraphBreak(f"TypeError: {self.describe()} is not iterable")
            raise GraphBreak(f"iterating over {self.describe()} by its __getitem__")
        result = realize(self.call_special(tx, "__iter__", []))
        if isinstance(result, IteratorVariable):
            return result
        if not isinstance(result, UserObjectVariable):
            return result.iterate(tx)
        return UserIteratorVariable(result)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return self.iterate(tx).unpack(tx)


def _lacks_slot(name: str) -> Any:
    def lacks(value: object) -> bool:
        try:
            object.__getattribute__(value, name)
        except AttributeError:
            return True
        return False

    return lacks


@final
class WeakReferenceVariable(VariableTracker):
    """A `weakref.ref` that existed before the frame began."""

    mutable = True

    def __init__(self, value: Any, source: Source) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return weakref.ref

    def truth(self, tx: Translator) -> bool:
        return True

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        target = self.value()
        if args or kwargs or target is None:
            raise GraphBreak("a weak reference whose object is gone")
        assert self.source is not None
        return wrap_value(tx.output, target, WeakRefCallSource(self.source))


@final
class UserIteratorVariable(IteratorVariable):
    """An object with a ``__next__`` written in Python, being iterated."""

    def __init__(self, owner: UserObjectVariable) -> None:
        super().__init__()
        self.owner = owner

    def describe(self) -> str:
        return self.owner.describe()

    def python_type(self) -> type:
        return self.owner.python_type()

    def next(self, tx: Translator) -> VariableTracker:
        try:
            return realize(self.owner.call_special(tx, "__next__", []))
        except PythonRaise as error:
            if issubclass(error.kind, StopIteration):
                raise StopSymbolicIteration from error
            raise


@final
class OpaqueVariable(VariableTracker):
    """A value that is only passed on, compared by identity, or looked at for one attribute: guarded by identity."""

    mutable = True

    def __init__(self, value: object, source: Source) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def as_python_constant(self) -> Any:
        return self.value
