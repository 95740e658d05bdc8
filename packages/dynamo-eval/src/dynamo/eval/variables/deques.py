"""`collections.deque`, made by the captured code, or one of literals that existed before."""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, final

from dynamo.eval.effects import ContentChange
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.variables.base import NotConstant, Translator, VariableTracker, realize, realized
from dynamo.eval.variables.constant import ConstantVariable, from_constant
from dynamo.eval.variables.iterator import KeyedIteratorVariable, unpacked_whole
from dynamo.eval.variables.sequence import BoundMethodVariable, SequenceVariable, index_of
from dynamo.guards import Source


@final
class DequeVariable(SequenceVariable):
    """A deque."""

    kind = deque
    mutable = True

    def __init__(
        self, items: Sequence[VariableTracker], maxlen: int | None, source: Source | None = None
    ) -> None:
        super().__init__(items, source)
        self.maxlen = maxlen
        self.changes = 0

    def as_python_constant(self) -> Any:
        raise NotConstant

    def as_graph_arg(self) -> Any:
        raise GraphBreak("a deque as an argument of a graph call")

    def sliced(self, items: list[VariableTracker]) -> VariableTracker:
        raise GraphBreak("TypeError: sequence index must be integer, not 'slice'")

    def iterate(self, tx: Translator) -> VariableTracker:
        places = range(len(self.items))
        return KeyedIteratorVariable(self, places, lambda: self.changes, lambda place: self.items[place])

    def changed(self, tx: Translator) -> None:
        """Note that the items differ from what the outside sees."""
        self.changes += 1
        if self.source is not None:
            tx.output.effects.note(ContentChange(self))

    def set_item(self, tx: Translator, key: VariableTracker, value: VariableTracker | None) -> None:
        """``value[key] = …``, or ``del value[key]`` for None."""
        index = index_of(key)
        if not isinstance(index, int) or not -len(self.items) <= index < len(self.items):
            raise PythonRaise(IndexError, ("deque index out of range",))
        if value is None:
            del self.items[index]
        else:
            self.items[index] = value
        self.changed(tx)

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name == "maxlen":
            return from_constant(self.maxlen)
        if callable(getattr(deque, name, None)):
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        change = _CHANGES.get(name)
        if change is None or kwargs or not change[0] <= len(args) <= change[1]:
            if name in ("copy", "__copy__") and not args:
                return DequeVariable(self.items, self.maxlen)
            return super().call_method(tx, name, args, kwargs)
        if name == "insert" and self.maxlen is not None and len(self.items) >= self.maxlen:
            raise PythonRaise(IndexError, ("deque already at its maximum size",))
        result = change[2](tx, self, *realized(args))
        self.changed(tx)
        return result if result is not None else ConstantVariable(None)


def _append(tx: Translator, var: DequeVariable, item: VariableTracker) -> None:
    var.items.append(item)
    if var.maxlen is not None and len(var.items) > var.maxlen:
        del var.items[0]


def _appendleft(tx: Translator, var: DequeVariable, item: VariableTracker) -> None:
    var.items.insert(0, item)
    if var.maxlen is not None and len(var.items) > var.maxlen:
        del var.items[-1]


def _extend(tx: Translator, var: DequeVariable, items: VariableTracker) -> None:
    for item in unpacked_whole(tx, items):
        _append(tx, var, item)


def _extendleft(tx: Translator, var: DequeVariable, items: VariableTracker) -> None:
    for item in unpacked_whole(tx, items):
        _appendleft(tx, var, item)


def _pop(tx: Translator, var: DequeVariable) -> VariableTracker:
    if not var.items:
        raise PythonRaise(IndexError, ("pop from an empty deque",))
    return realize(var.items.pop())


def _popleft(tx: Translator, var: DequeVariable) -> VariableTracker:
    if not var.items:
        raise PythonRaise(IndexError, ("pop from an empty deque",))
    return realize(var.items.pop(0))


def _rotate(tx: Translator, var: DequeVariable, steps: VariableTracker | None = None) -> None:
    turned: deque[VariableTracker] = deque(var.items)
    turned.rotate(1 if steps is None else index_of(steps))
    var.items[:] = turned


def _clear(tx: Translator, var: DequeVariable) -> None:
    var.items.clear()


def _reverse(tx: Translator, var: DequeVariable) -> None:
    var.items.reverse()


def _insert(tx: Translator, var: DequeVariable, place: VariableTracker, item: VariableTracker) -> None:
    var.items.insert(index_of(place), item)


_CHANGES: Final[dict[str, tuple[int, int, Callable[..., VariableTracker | None]]]] = {
    "append": (1, 1, _append), "appendleft": (1, 1, _appendleft), "extend": (1, 1, _extend),
    "extendleft": (1, 1, _extendleft), "pop": (0, 0, _pop), "popleft": (0, 0, _popleft), "rotate": (0, 1, _rotate),
    "clear": (0, 0, _clear), "reverse": (0, 0, _reverse), "insert": (2, 2, _insert),
}  # fmt: skip
