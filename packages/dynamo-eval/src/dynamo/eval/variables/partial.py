"""`functools.partial`, and the callables of `operator` that get something of their argument."""

import functools
import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final, final

from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize, realized
from dynamo.eval.variables.calls import model_of
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.dictionary import DictVariable
from dynamo.eval.variables.known import KnownCallableVariable
from dynamo.eval.variables.sequence import TupleVariable
from dynamo.guards import Source


@final
class PartialVariable(VariableTracker):
    """A function with some of its arguments."""

    mutable = True

    def __init__(
        self,
        function: VariableTracker,
        args: Sequence[VariableTracker],
        kwargs: Mapping[str, VariableTracker],
        source: Source | None = None,
    ) -> None:
        super().__init__(source)
        self.function = function
        self.args = list(args)
        self.kwargs = dict(kwargs)

    def python_type(self) -> type:
        return functools.partial

    @property
    def hashed_by_identity(self) -> bool:
        return True

    def truth(self, tx: Translator) -> bool:
        return True

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name == "func":
            return realize(self.function)
        if name == "args":
            return TupleVariable(self.args)
        if name == "keywords":
            return DictVariable((ConstantVariable(key), value) for key, value in self.kwargs.items())
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        given = realized(self.args)
        return realize(self.function).call(tx, [*given, *args], {**self.kwargs, **kwargs})


GETTERS: Final = (operator.itemgetter, operator.attrgetter, operator.methodcaller)


@final
class GetterVariable(KnownCallableVariable):
    """An `operator.itemgetter`, `attrgetter` or `methodcaller` of literals."""

    mutable = True

    def describe(self) -> str:
        return repr(self.value)[:60]

    @property
    def hashed_by_identity(self) -> bool:
        return True

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        model = model_of(type(self.value).__call__)
        if model is None:
            raise GraphBreak(f"calling {self.describe()}")
        return model(tx, [self, *args], kwargs)

    def parts(self) -> tuple[Any, ...]:
        """What it was made with."""
        made: tuple[Any, ...] = self.value.__reduce__()[1]
        return made
