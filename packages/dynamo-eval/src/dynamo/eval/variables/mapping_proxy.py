"""`types.MappingProxyType`: a dict that can only be read through it."""

import types
from typing import Final, final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.sequence import BoundMethodVariable

_READS: Final = frozenset(
    "__getitem__ get __contains__ keys values items __len__ __iter__ copy __reversed__".split()
)


@final
class MappingProxyVariable(VariableTracker):
    """A view of a dict."""

    mutable = True

    def __init__(self, owner: DictVariable) -> None:
        super().__init__()
        self.owner = owner

    def python_type(self) -> type:
        return types.MappingProxyType

    def truth(self, tx: Translator) -> bool:
        return self.owner.truth(tx)

    def iterate(self, tx: Translator) -> VariableTracker:
        return self.owner.iterate(tx)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        return self.owner.unpack(tx)

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name in _READS:
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call_special(self, tx: Translator, name: str, args: list[VariableTracker]) -> VariableTracker:
        return self.call_method(tx, name, args, {})

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name not in _READS:
            raise GraphBreak(f"{name}() of {self.describe()}")
        return self.owner.call_method(tx, name, args, kwargs)
