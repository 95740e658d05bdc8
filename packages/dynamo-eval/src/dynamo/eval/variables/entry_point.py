"""Entry points met by captured code: what `optimize` or `disable` made of a callable."""

from typing import Any, final

from dynamo.eval._frame import EntryPoint
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.known import KnownCallableVariable
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import ConstantSource


@final
class EntryPointVariable(KnownCallableVariable):
    """A captured callable is followed as the callable that it wraps; a disabled one breaks the graph."""

    value: EntryPoint[Any, Any]

    def describe(self) -> str:
        return f"{getattr(self.value, '__qualname__', 'an entry point')}()"

    @property
    def hashed_by_identity(self) -> bool:
        return True

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if self.value.capture_callback is None:
            raise GraphBreak(f"calling {self.describe()}, which is marked to run plainly")
        wrapped = self.value.__wrapped__
        function = wrap_value(tx.output, wrapped, ConstantSource(wrapped, f"{self.describe()}.__wrapped__"))
        return function.call(tx, args, kwargs)
