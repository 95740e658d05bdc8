"""Classes: attributes as `type.__getattribute__` finds them, the metaclass included."""

from typing import Final, final

from dynamo.eval.effects import AttributeWrite
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.binding import bound_attribute
from dynamo.eval.variables.calls import model_of
from dynamo.eval.variables.constant import ConstantVariable, from_constant
from dynamo.eval.variables.known import KnownVariable
from dynamo.eval.variables.lookup import MISSING, NoSuchAttribute, is_data_descriptor, static_lookup
from dynamo.eval.variables.sequence import TupleVariable
from dynamo.guards import AttrSource, ClassAttrSource, ConstantSource, ItemSource, Source, TypeSource

_NAMES: Final = ("__name__", "__qualname__", "__module__", "__doc__")
_CLASS_TUPLES: Final = ("__mro__", "__bases__")


def written_value(effect: AttributeWrite) -> VariableTracker:
    """What a logged store put there."""
    if not isinstance(effect.value, VariableTracker):
        raise NoSuchAttribute(f"attribute {effect.name!r} was deleted")
    return realize(effect.value)


def written_on_class(tx: Translator, kind: type, name: str) -> AttributeWrite | None:
    """The logged store that decides ``kind.name``: the first in the MRO, unless a class before it has the attribute."""
    if not tx.output.classes_written:
        return None
    for base in kind.__mro__:
        known = tx.output.wrapped.get(id(base))
        found = tx.output.effects.find(AttributeWrite(known[1], name, None)) if known is not None else None
        if isinstance(found, AttributeWrite):
            return found
        if name in base.__dict__:
            return None
    return None


@final
class ClassVariable(KnownVariable):
    """A class."""

    value: type

    def describe(self) -> str:
        return f"class {self.value.__qualname__}"

    def own_source(self) -> Source:
        """Where the class is found; one that capture reached by computing is kept as it is."""
        return self.source or ConstantSource(self.value, f"{self.value.__module__}.{self.value.__qualname__}")

    def metaclass(self) -> "ClassVariable":
        """``type(value)``."""
        return ClassVariable(type(self.value), TypeSource(self.own_source()))

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        written = written_on_class(tx, self.value, name)
        if written is not None:
            return written_value(written)
        if name in _NAMES:
            return from_constant(getattr(self.value, name))
        if name == "__class__":
            return self.metaclass()
        if name in _CLASS_TUPLES:
            source = AttrSource(self.own_source(), name)
            kinds = getattr(self.value, name)
            return TupleVariable([ClassVariable(each, ItemSource(source, i)) for i, each in enumerate(kinds)])
        on_metaclass = static_lookup(type(self.value), name)
        if on_metaclass is not MISSING and is_data_descriptor(on_metaclass):
            return self._of_metaclass(tx, name, on_metaclass)
        found = static_lookup(self.value, name)
        if found is not MISSING:
            return bound_attribute(tx, name, found, ClassAttrSource(self.own_source(), name), None, self)
        if on_metaclass is not MISSING:
            return self._of_metaclass(tx, name, on_metaclass)
        if static_lookup(type(self.value), "__getattr__") is not MISSING:
            return self.call_special(tx, "__getattr__", [ConstantVariable(name)])
        raise NoSuchAttribute(
            f"AttributeError: type object {self.value.__name__!r} has no attribute {name!r}"
        )

    def _of_metaclass(self, tx: Translator, name: str, found: object) -> VariableTracker:
        metaclass = self.metaclass()
        return bound_attribute(
            tx, name, found, ClassAttrSource(metaclass.own_source(), name), self, metaclass
        )

    def call_special(self, tx: Translator, name: str, args: list[VariableTracker]) -> VariableTracker:
        found = static_lookup(type(self.value), name)
        if found is MISSING or found is None:
            raise NoSuchAttribute(f"{self.describe()} has no {name}")
        return self._of_metaclass(tx, name, found).call(tx, args, {})

    def set_attr(self, tx: Translator, name: str, value: VariableTracker | None) -> None:
        hook = "__setattr__" if value is not None else "__delattr__"
        if static_lookup(type(self.value), hook) is not static_lookup(type, hook):
            raise GraphBreak(f"{hook} of {self.describe()}")
        if is_data_descriptor(static_lookup(type(self.value), name)) or name.startswith("__"):
            raise GraphBreak(f"storing attribute {name!r} of {self.describe()}")
        if value is not None and hasattr(value.python_type(), "__get__"):
            raise GraphBreak(f"storing a descriptor as attribute {name!r} of {self.describe()}")
        if value is None and name not in self.value.__dict__:
            raise GraphBreak(f"AttributeError: {name}")
        known = tx.output.wrapped.setdefault(id(self.value), (self.value, self))[1]
        tx.output.classes_written = True
        tx.output.effects.note(AttributeWrite(known, name, value))

    def truth(self, tx: Translator) -> bool:
        for name in ("__bool__", "__len__"):
            if static_lookup(type(self.value), name) is not MISSING:
                return self.call_special(tx, name, []).truth(tx)
        return True

    def iterate(self, tx: Translator) -> VariableTracker:
        return realize(self.call_special(tx, "__iter__", [])).iterate(tx)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return self.iterate(tx).unpack(tx)

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        model = model_of(self.value)
        if model is not None:
            return model(tx, args, kwargs)
        found = static_lookup(type(self.value), "__call__")
        if found is MISSING:
            raise GraphBreak(f"making a {self.value.__qualname__}")
        return self._of_metaclass(tx, "__call__", found).call(tx, args, kwargs)
