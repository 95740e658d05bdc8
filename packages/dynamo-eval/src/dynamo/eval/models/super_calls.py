"""`super()`: the next class of the MRO that has the attribute."""

import types
from typing import final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.function import MethodVariable
from dynamo.eval.variables.objects import ClassVariable, UserObjectVariable
from dynamo.eval.variables.wrap import wrap_value
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

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        owner = self.owner
        if not isinstance(owner, UserObjectVariable):
            raise GraphBreak(f"super() of {owner.describe()}")
        mro = owner.kind.__mro__
        if self.kind.value not in mro:
            raise GraphBreak("TypeError: super() of an object of another class")
        for place in range(mro.index(self.kind.value) + 1, len(mro)):
            found = mro[place].__dict__.get(name)
            if found is None:
                continue
            if not isinstance(found, types.FunctionType):
                if mro[place] is object and name == "__init__":
                    return EmptyInit()
                raise GraphBreak(f"super().{name}, which is not a Python method")
            if mro[place] is torch.nn.Module and name.startswith("__"):
                raise GraphBreak(f"super().{name} of torch.nn.Module")
            base = ItemSource(AttrSource(owner.class_source(), "__mro__"), place)
            return MethodVariable(wrap_value(tx.output, found, ClassAttrSource(base, name)), owner)
        raise GraphBreak(f"AttributeError: super() has no {name!r}")


@final
class EmptyInit(VariableTracker):
    """``object.__init__``, bound: takes nothing and does nothing."""

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if args or kwargs:
            raise GraphBreak("TypeError: object.__init__() takes no arguments")
        return ConstantVariable(None)
