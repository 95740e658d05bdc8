"""The state of a frame under symbolic execution: stack, locals, cells and the place in the code."""

from types import CodeType
from typing import Any, ClassVar, Protocol

from dynamo.eval.bytecode import Instruction
from dynamo.eval.errors import GraphBreak
from dynamo.eval.output_graph import OutputGraph
from dynamo.eval.variables.base import VariableTracker, realize, realized
from dynamo.eval.variables.cell import CellVariable
from dynamo.guards import Source


class CodeView(Protocol):
    """A decoded code object: its instructions and the index of each."""

    @property
    def code(self) -> CodeType: ...
    @property
    def instructions(self) -> list[Instruction]: ...
    @property
    def index(self) -> dict[Instruction, int]: ...


class SymbolicFrame:
    """What a handler may look at and change.

    Attributes:
        stack: values, top last; one that nobody read yet may be lazy.
        locals: bound fast locals; a value nobody read yet may be lazy.
        cells: cell and free variables by name.
        ip: index of the instruction after the current one.
        returned: the value of ``return``, once reached.
        yielded: the value of the ``yield`` that was just reached, in a generator.
        namespace_source: how the globals are reached, None for the root frame's own.
    """

    is_root: ClassVar[bool] = False

    def __init__(
        self, view: CodeView, output: OutputGraph, namespace: dict[str, Any], builtins: dict[str, Any]
    ) -> None:
        self.view = view
        self.code = view.code
        self.instructions = view.instructions
        self.output = output
        self.namespace = namespace
        self.namespace_source: Source | None = None
        self.builtins = builtins
        self.stack: list[VariableTracker] = []
        self.locals: dict[str, VariableTracker] = {}
        self.cells: dict[str, CellVariable] = {}
        self.ip = 0
        self.returned: VariableTracker | None = None
        self.yielded: VariableTracker | None = None

    def push(self, var: VariableTracker) -> None:
        """Put a value on top."""
        self.stack.append(var)

    def pop(self) -> VariableTracker:
        """Take the top value off, reading it."""
        return realize(self.stack.pop())

    def take(self) -> VariableTracker:
        """Take the top value off without reading it."""
        return self.stack.pop()

    def peek(self, depth: int = 1) -> VariableTracker:
        """The value that is `depth` places deep (1 is the top), read."""
        var = self.stack[-depth] = realize(self.stack[-depth])
        return var

    def pop_many(self, count: int) -> list[VariableTracker]:
        """Take the top `count` values off, deepest first, reading them."""
        return realized(self.take_many(count))

    def take_many(self, count: int) -> list[VariableTracker]:
        """Take the top `count` values off, deepest first, without reading them."""
        if count == 0:
            return []
        taken = self.stack[-count:]
        del self.stack[-count:]
        return taken

    def jump(self, inst: Instruction) -> None:
        """Go on at the target of `inst`."""
        assert inst.target is not None
        self.ip = self.view.index[inst.target]

    def load_cell(self, name: str) -> CellVariable:
        """The cell variable called `name`.

        Raises:
            GraphBreak: the code has not made it yet.
        """
        cell = self.cells.get(name)
        if cell is None:
            raise GraphBreak(f"a cell {name!r} that is not made yet")
        return cell

    def inline(
        self, function: VariableTracker, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        """Follow a call into a user function."""
        raise NotImplementedError
