"""Cells: what closures share. A cell from outside has a value and a source; one made inside only content."""

import types
from typing import final

from dynamo.eval.effects import CellWrite
from dynamo.eval.errors import GraphBreak
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.guards import Source


@final
class CellVariable(VariableTracker):
    """A cell.

    Attributes:
        content: the variable inside, or None if the cell is empty.
        local_name: the name of the root frame's own cell, if it is one: the new code has it in that slot.
        outer: whether the cell existed before the frame began (it is a free variable or came through one).
    """

    mutable = True

    def __init__(
        self,
        content: VariableTracker | None = None,
        *,
        local_name: str | None = None,
        outer: bool = False,
        source: Source | None = None,
    ) -> None:
        super().__init__(source)
        self.content = content
        self.local_name = local_name
        self.outer = outer

    def python_type(self) -> type:
        return types.CellType

    def load(self, name: str) -> VariableTracker:
        """The content.

        Raises:
            GraphBreak: the cell is empty; Python will raise NameError.
        """
        if self.content is None:
            raise GraphBreak(f"NameError: free variable {name!r} is not bound")
        return realize(self.content)

    def store(self, tx: Translator, value: VariableTracker | None) -> None:
        """Replace the content; None empties the cell."""
        self.content = value
        if self.local_name is not None or self.outer:
            tx.output.effects.note(CellWrite(self, value))
