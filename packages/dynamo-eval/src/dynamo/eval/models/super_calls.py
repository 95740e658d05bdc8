"""`super()`: the next class of the MRO that has the attribute."""

from typing import final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.binding import bound_attribute
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.lookup import NoSuchAttribute
from dynamo.eval.variables.objects import UserObjectVariable
from dynamo.guards import AttrSource, ClassAttrSource, ItemSource


@final
class SuperVariable(VariableTracker):
    """``super(kind, owner)``."""

    def __init__(self, kind: ClassVariable, owner: VariableTracker) -> None:
        super().__init__()
        self.kind = kind
        self.owner = owner

    def python_type(self) -> type:
        return super

    def describe(self) -> str:
        return f"super() of {self.owner.describe()}"

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        owner = self.owner
        instance: VariableTracker | None
        if isinstance(owner, ClassVariable):
            owner_class, instance = owner, None
            if self.kind.value not in owner.value.__mro__:
                owner_class, instance = owner.metaclass(), owner
        elif isinstance(owner, UserObjectVariable):
            owner_class, instance = owner.class_variable(), owner
        else:
            raise GraphBreak(f"super() of {owner.describe()}")
        mro = owner_class.value.__mro__
        if self.kind.value not in mro:
            raise GraphBreak("TypeError: super() of an object of another class")
        for place in range(mro.index(self.kind.value) + 1, len(mro)):
            if name not in mro[place].__dict__:
                continue
            found = mro[place].__dict__[name]
            base = ItemSource(AttrSource(owner_class.own_source(), "__mro__"), place)
            return bound_attribute(tx, name, found, ClassAttrSource(base, name), instance, owner_class)
        raise NoSuchAttribute(f"AttributeError: 'super' object has no attribute {name!r}")
