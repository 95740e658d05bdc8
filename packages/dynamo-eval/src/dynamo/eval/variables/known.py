"""Values that capture knows whole and treats as one thing: classes, built-in callables, torch functions."""

from typing import Any

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.constant import from_constant
from dynamo.guards import Source


class KnownVariable(VariableTracker):
    """The value itself, true and immutable as far as capture goes.

    Attributes:
        value: the Python object.
    """

    def __init__(self, value: Any, source: Source | None = None) -> None:
        super().__init__(source)
        self.value = value

    def python_type(self) -> type:
        return type(self.value)

    def as_python_constant(self) -> Any:
        return self.value

    def as_graph_arg(self) -> Any:
        return self.value

    def truth(self, tx: Translator) -> bool:
        return True


class KnownCallableVariable(KnownVariable):
    """A callable of which, but for calling it, only the names are read."""

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__module__"):
            return from_constant(getattr(self.value, name))
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")
