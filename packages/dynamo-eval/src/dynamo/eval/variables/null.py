"""The NULL that CPython pushes beside a callable that is not a method."""

from typing import Final, final

from dynamo.eval.variables.base import VariableTracker


@final
class NullVariable(VariableTracker):
    """Not a value; only its place on the stack counts."""

    def describe(self) -> str:
        return "NULL"


NULL: Final = NullVariable()
