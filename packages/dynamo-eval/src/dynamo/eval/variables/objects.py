"""Objects of user classes, classes themselves, and Python modules: attribute access as CPython does it."""

import types
from typing import Any, Final, final

from dynamo.eval.effects import AttributeWrite
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.calls import model_of
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.function import MethodVariable
from dynamo.eval.variables.known import KnownCallableVariable, KnownVariable
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import AttrSource, ClassAttrSource, Source, TypeSource

MISSING: Final = object()


class NoSuchAttribute(GraphBreak):
    """Python would raise AttributeError here."""


def static_lookup(kind: type, name: str) -> object:
    """The attribute of a class as `_PyType_Lookup` finds it, without binding; `MISSING` if there is none."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return MISSING


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
        if found is MISSING:
            raise NoSuchAttribute(f"module {self.value.__name__} has no attribute {name!r} yet")
        return wrap_value(tx.output, found, AttrSource(self.source, name))

    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        tx.output.effects.note(AttributeWrite(self, name, value))


def written_value(effect: AttributeWrite) -> VariableTracker:
    """What a logged store put there."""
    if not isinstance(effect.value, VariableTracker):
        raise NoSuchAttribute(f"attribute {effect.name!r} was deleted")
    return realize(effect.value)


class ClassVariable(KnownVariable):
    """A class."""

    value: type

    def describe(self) -> str:
        return f"class {self.value.__qualname__}"

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        written = tx.output.effects.find(AttributeWrite(self, name, None))
        if isinstance(written, AttributeWrite):
            return written_value(written)
        if name in ("__name__", "__qualname__", "__module__"):
            return ConstantVariable(getattr(self.value, name))
        if static_lookup(type(self.value), name) is not MISSING and name not in ("__init__", "__call__"):
            raise GraphBreak(f"attribute {name!r} of {self.describe()}, which its metaclass answers")
        found = static_lookup(self.value, name)
        if found is MISSING:
            raise NoSuchAttribute(f"{self.describe()} has no attribute {name!r}")
        source = ClassAttrSource(self.source, name) if self.source is not None else None
        if source is None:
            raise GraphBreak(f"attribute {name!r} of {self.describe()}")
        if isinstance(found, classmethod):
            function = wrap_value(tx.output, found.__func__, AttrSource(source, "__func__"))
            return MethodVariable(function, self)
        if isinstance(found, staticmethod):
            return wrap_value(tx.output, found.__func__, AttrSource(source, "__func__"))
        if hasattr(type(found), "__get__") and not isinstance(found, types.FunctionType):
            raise GraphBreak(f"descriptor {name!r} of {self.describe()}")
        return wrap_value(tx.output, found, source)

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        model = model_of(self.value)
        if model is not None:
            return model(tx, args, kwargs)
        return self.instantiate(tx, args, kwargs)

    def instantiate(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Make an object of a plain user class: `object.__new__`, then the followed ``__init__``."""
        kind = self.value
        if not is_plain_class(kind) or self.source is None:
            raise GraphBreak(f"making a {kind.__qualname__}", "make it outside of the captured function")
        var = UserObjectVariable(None, kind, None, self)
        init = static_lookup(kind, "__init__")
        if isinstance(init, types.FunctionType):
            function = wrap_value(tx.output, init, ClassAttrSource(self.source, "__init__"))
            function.call(tx, [var, *args], kwargs)
        elif init is not object.__init__ or args or kwargs:
            raise GraphBreak(f"making a {kind.__qualname__} with an __init__ that is not Python code")
        return var


_PLAIN: Final = ("__new__", "__getattribute__", "__setattr__", "__delattr__")


def is_plain_class(kind: type) -> bool:
    """Whether objects of a class can be made and written to without running user code or C code."""
    return (
        type(kind) is type
        and not hasattr(kind, "__del__")
        and all(static_lookup(kind, name) is static_lookup(object, name) for name in _PLAIN)
        and all(base is object or base.__flags__ & (1 << 9) for base in kind.__mro__)  # Py_TPFLAGS_HEAPTYPE
        and kind.__itemsize__ == 0
        and "__dict__" in dir(kind)
    )


class UserObjectVariable(VariableTracker):
    """An object of a user class: one that existed (`value`), or one made inside (`value` None)."""

    mutable = True

    def __init__(
        self, value: object, kind: type, source: Source | None, class_var: ClassVariable | None = None
    ) -> None:
        super().__init__(source)
        self.value = value
        self.kind = kind
        self.class_var = class_var
        self.fresh_attributes: dict[str, VariableTracker] = {}

    @property
    def is_fresh(self) -> bool:
        """Whether the captured code made this object."""
        return self.source is None

    def python_type(self) -> type:
        return self.kind

    def class_source(self) -> Source:
        """Where the class of the object is found."""
        if self.source is not None:
            return TypeSource(self.source)
        assert self.class_var is not None and self.class_var.source is not None
        return self.class_var.source

    def truth(self, tx: Translator) -> bool:
        for name in ("__bool__", "__len__"):
            if static_lookup(self.kind, name) is not MISSING:
                result = self.call_special(tx, name, [])
                return result.truth(tx)
        return True

    def call_special(self, tx: Translator, name: str, args: list[VariableTracker]) -> VariableTracker:
        """``type(value).name(value, *args)``: a dunder method.

        Raises:
            NoSuchAttribute: the class has none.
            GraphBreak: it is not Python code.
        """
        found = static_lookup(self.kind, name)
        if found is MISSING or found is None:
            raise NoSuchAttribute(f"{self.describe()} has no {name}")
        if not isinstance(found, types.FunctionType):
            raise GraphBreak(f"{name} of {self.describe()}, which is not Python code")
        return self._class_attribute(tx, name, found).call(tx, args, {})

    # -- reading ----------------------------------------------------------------------------------------
    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if static_lookup(self.kind, "__getattribute__") is not object.__getattribute__:
            raise GraphBreak(f"attribute {name!r} of {self.describe()}, which has its own __getattribute__")
        on_class = static_lookup(self.kind, name)
        if on_class is not MISSING and _is_data_descriptor(on_class):
            return self._descriptor(tx, name, on_class)
        found = self.instance_attribute(tx, name)
        if found is not None:
            return found
        if on_class is not MISSING:
            return self._class_attribute(tx, name, on_class)
        if name == "__class__":
            return ClassVariable(self.kind, self.class_source())
        return self.missing_attribute(tx, name)

    def instance_attribute(self, tx: Translator, name: str) -> VariableTracker | None:
        """The value in the instance's own dict, stores of this capture included."""
        written = tx.output.effects.find(AttributeWrite(self, name, None))
        if isinstance(written, AttributeWrite):
            return realize(written.value) if isinstance(written.value, VariableTracker) else None
        if self.is_fresh:
            found = self.fresh_attributes.get(name)
            return realize(found) if found is not None else None
        assert self.source is not None
        attributes = getattr(self.value, "__dict__", {})
        if name in attributes:
            return wrap_value(tx.output, attributes[name], AttrSource(self.source, name))
        return None

    def missing_attribute(self, tx: Translator, name: str) -> VariableTracker:
        """What ``__getattr__`` gives, if the class has one."""
        if static_lookup(self.kind, "__getattr__") is not MISSING:
            self.guard_absent(tx, name)
            return self.call_special(tx, "__getattr__", [ConstantVariable(name)])
        raise NoSuchAttribute(f"AttributeError: {self.kind.__name__!r} object has no attribute {name!r}")

    def guard_absent(self, tx: Translator, name: str) -> None:
        """Ask that the instance's own dict still lacks `name`."""
        if self.source is not None and hasattr(self.value, "__dict__"):
            tx.output.guard_absent(self.source, name)

    def _descriptor(self, tx: Translator, name: str, found: object) -> VariableTracker:
        source = ClassAttrSource(self.class_source(), name)
        if isinstance(found, property) and isinstance(found.fget, types.FunctionType):
            getter = wrap_value(tx.output, found.fget, AttrSource(source, "fget"))
            return getter.call(tx, [self], {})
        if isinstance(found, types.MemberDescriptorType):
            written = tx.output.effects.find(AttributeWrite(self, name, None))
            if isinstance(written, AttributeWrite):
                return written_value(written)
            if self.source is not None and hasattr(self.value, name):
                return wrap_value(tx.output, getattr(self.value, name), AttrSource(self.source, name))
        raise GraphBreak(f"descriptor {name!r} of {self.describe()}")

    def _class_attribute(self, tx: Translator, name: str, found: object) -> VariableTracker:
        source = ClassAttrSource(self.class_source(), name)
        self.guard_absent(tx, name)
        if isinstance(found, types.FunctionType):
            return MethodVariable(wrap_value(tx.output, found, source), self)
        if isinstance(found, classmethod) and isinstance(found.__func__, types.FunctionType):
            function = wrap_value(tx.output, found.__func__, AttrSource(source, "__func__"))
            return MethodVariable(function, ClassVariable(self.kind, self.class_source()))
        if isinstance(found, staticmethod):
            return wrap_value(tx.output, found.__func__, AttrSource(source, "__func__"))
        if hasattr(type(found), "__get__"):
            raise GraphBreak(f"descriptor {name!r} of {self.describe()}")
        return wrap_value(tx.output, found, source)

    # -- writing ----------------------------------------------------------------------------------------
    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        hook = "__setattr__" if value is not None else "__delattr__"
        if static_lookup(self.kind, hook) is not static_lookup(object, hook):
            raise GraphBreak(f"{hook} of {self.describe()}")
        on_class = static_lookup(self.kind, name)
        if on_class is not MISSING and _is_data_descriptor(on_class):
            if isinstance(on_class, property) and isinstance(on_class.fset, types.FunctionType) and value:
                source = AttrSource(ClassAttrSource(self.class_source(), name), "fset")
                wrap_value(tx.output, on_class.fset, source).call(tx, [self, value], {})
                return
            if not isinstance(on_class, types.MemberDescriptorType) or self.is_fresh:
                raise GraphBreak(f"storing to descriptor {name!r} of {self.describe()}")
        if value is None and self.instance_attribute(tx, name) is None:
            raise GraphBreak(f"AttributeError: {name}")
        if not self.is_fresh:
            tx.output.effects.note(AttributeWrite(self, name, value))
        elif value is None:
            del self.fresh_attributes[name]
        else:
            self.fresh_attributes[name] = value

    # -- calling ----------------------------------------------------------------------------------------
    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        found = static_lookup(self.kind, "__call__")
        if not isinstance(found, types.FunctionType):
            raise GraphBreak(f"calling {self.describe()}")
        source = ClassAttrSource(self.class_source(), "__call__")
        return wrap_value(tx.output, found, source).call(tx, [self, *args], kwargs)

    def iterate(self, tx: Translator) -> VariableTracker:
        result = self.call_special(tx, "__iter__", [])
        if result is self:
            raise GraphBreak(f"iterating over {self.describe()}")
        return realize(result).iterate(tx)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return self.iterate(tx).unpack(tx)


def _is_data_descriptor(found: object) -> bool:
    kind = type(found)
    return hasattr(kind, "__get__") and (hasattr(kind, "__set__") or hasattr(kind, "__delete__"))


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


@final
class BuiltinVariable(KnownCallableVariable):
    """A built-in or otherwise known callable; `dynamo.eval.models` says what calls give."""

    def describe(self) -> str:
        return f"{getattr(self.value, '__qualname__', self.value)}()"

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        model = model_of(self.value)
        if model is None:
            raise GraphBreak(f"calling {self.describe()}", "move the call out of the captured function")
        return model(tx, args, kwargs)
