"""`Emitter`: instructions that put variables on the stack, each object once.

Every value that needs its source is loaded before any effect is replayed, because a store may change what a source
leads to; see `dynamo.eval.rebuild.replay`.
"""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from dynamo.eval.bytecode import Instruction, create
from dynamo.eval.errors import CaptureError
from dynamo.eval.output_graph import OutputGraph
from dynamo.eval.rebuild.sources import load_source
from dynamo.eval.variables.base import LazyVariable, VariableTracker
from fx.ir import Node

RESULTS: Final = "___graph_out"
_Var = TypeVar("_Var", bound=VariableTracker)
Rule = Callable[["Emitter", Any], None]
_RULES: dict[type[VariableTracker], Rule] = {}


class Unrebuildable(CaptureError):
    """A value that lives only in capture has to outlive it; the frame cannot be split here."""


def rebuilds(*kinds: type[VariableTracker]) -> Callable[[Rule], Rule]:
    """Register how variables of exactly these kinds are made again; the rule pushes one value."""

    def register(rule: Rule) -> Rule:
        for kind in kinds:
            if kind in _RULES:
                raise ValueError(f"two rules to rebuild {kind.__name__}")
            _RULES[kind] = rule
        return rule

    return register


class Emitter:
    """Writes the end of a captured frame.

    Attributes:
        instructions: what was written so far.
        outputs: the nodes whose values are needed after the graph, in order.
        temporaries: names of the extra fast locals.
        local_cells: names of the frame's own cells that something rebuilt refers to.
    """

    def __init__(self, output: OutputGraph, cell_names: frozenset[str]) -> None:
        self.output = output
        self.cell_names = cell_names
        self.instructions: list[Instruction] = []
        self.outputs: dict[Node, int] = {}
        self.temporaries: list[str] = []
        self.local_cells: set[str] = set()
        self._made: dict[int, tuple[VariableTracker, str]] = {}
        self._making: set[int] = set()
        self.later: list[Callable[[], None]] = []

    # -- plain instructions -----------------------------------------------------------------------------
    def add(self, *instructions: Instruction) -> None:
        """Append instructions."""
        self.instructions.extend(instructions)

    def constant(self, value: object) -> None:
        """Push a Python object as a constant of the new code."""
        self.add(create.load_const(value))

    def callable(self, value: object) -> None:
        """Push a function, ready to be called."""
        self.add(*create.load_callable([create.load_const(value)]))

    def call(self, count: int) -> None:
        """Call with `count` arguments."""
        self.add(create.call(count))

    def temporary(self) -> str:
        """Pop the top of the stack into a new fast local; returns its name."""
        name = f"___tmp_{len(self.temporaries)}"
        self.temporaries.append(name)
        self.add(create.store_fast(name))
        return name

    # -- variables --------------------------------------------------------------------------------------
    def load(self, var: VariableTracker) -> None:
        """Push the value that `var` stands for; one object stays one object.

        Raises:
            Unrebuildable: no rule, or a cycle of objects that are made at once.
        """
        if isinstance(var, LazyVariable):
            if not var.is_read:
                assert var.source is not None
                load_source(self, var.source)
                return
            var = var.realize()
        made = self._made.get(id(var))
        if made is not None:
            self.add(create.load_fast(made[1]))
            return
        if var.source is not None and var.mutable:
            load_source(self, var.source)
            return
        rule = _RULES.get(type(var))
        if rule is None:
            if var.source is not None:
                load_source(self, var.source)
                return
            raise Unrebuildable(f"{var.describe()} cannot be made again outside of the graph")
        if id(var) in self._making:
            raise Unrebuildable(f"{var.describe()} holds itself")
        self._making.add(id(var))
        rule(self, var)
        self._making.discard(id(var))
        if var.mutable and id(var) not in self._made and not _is_node(var):
            self.keep(var)

    def keep(self, var: VariableTracker) -> None:
        """Remember the top of the stack as the one value of `var`, leaving it there."""
        self.add(create.copy_top())
        self._made[id(var)] = (var, self.temporary())

    def hold(self, var: VariableTracker) -> VariableTracker:
        """Load `var` now and keep it, so that later loads do not go through its source."""
        real = var.realize() if isinstance(var, LazyVariable) and var.is_read else var
        if id(real) not in self._made:
            self.load(real)
            self._made[id(real)] = (real, self.temporary())
        return real

    def load_node(self, node: Node) -> None:
        """Push what a node of the graph gave."""
        index = self.outputs.setdefault(node, len(self.outputs))
        self.add(create.load_fast(RESULTS), create.load_const(index), create.binary_subscr())


def _is_node(var: VariableTracker) -> bool:
    return hasattr(var, "node")
