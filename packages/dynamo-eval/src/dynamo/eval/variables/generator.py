"""Generators that the captured code makes: a suspended frame, run on by ``next``, ``send``, ``throw`` and ``close``."""

import types
from typing import Final, Literal, Protocol, final

from dynamo.eval.bytecode.versions.select import FACTS
from dynamo.eval.errors import GraphBreak, PythonRaise
from dynamo.eval.variables.base import Translator, VariableTracker, realize
from dynamo.eval.variables.classes import ClassVariable
from dynamo.eval.variables.constant import ConstantVariable
from dynamo.eval.variables.exception import ExceptionVariable, exception_of
from dynamo.eval.variables.iterator import IteratorVariable, StopSymbolicIteration
from dynamo.eval.variables.sequence import BoundMethodVariable

_METHODS: Final = frozenset({"send", "throw", "close", "__next__", "__iter__"})


class SuspendedFrame(Protocol):
    """The frame of a generator between two of its steps."""

    def resume(
        self, sent: VariableTracker, error: PythonRaise | None
    ) -> tuple[Literal["yielded", "returned"], VariableTracker]:
        """Run until the next ``yield`` or the end, with `sent` as the value of the last ``yield``, or `error` raised there.

        Raises:
            PythonRaise: an exception left the generator.
        """

    @property
    def delegates(self) -> bool:
        """Whether it is suspended in a ``yield from``."""

    @property
    def has_blocks(self) -> bool:
        """Whether its code has a ``try`` or ``with`` block."""

    @property
    def is_guarded(self) -> bool:
        """Whether it is suspended in a ``try`` or ``with`` block."""


@final
class GeneratorVariable(IteratorVariable):
    """A generator.

    Attributes:
        made_at: number of the root's step that made it.
        state: where it is in its life.
    """

    def __init__(self, frame: SuspendedFrame, name: str, made_at: int) -> None:
        super().__init__()
        self.frame = frame
        self.name = name
        self.made_at = made_at
        self.state: Literal["created", "suspended", "running", "finished"] = "created"
        self._handling: list[VariableTracker] = []  # exceptions that it handles while it is suspended

    def python_type(self) -> type:
        return types.GeneratorType

    def describe(self) -> str:
        return f"generator {self.name}()"

    @property
    def must_be_closed(self) -> bool:
        """Whether Python would run code of it when it is dropped now."""
        return self.state == "suspended" and self.frame.is_guarded

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name in _METHODS:
            return BoundMethodVariable(self, name)
        raise GraphBreak(f"attribute {name!r} of {self.describe()}")

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        count = len(args)
        if kwargs or name not in _METHODS:
            raise GraphBreak(f"{self.describe()}.{name}()")
        if name == "close" and not count:
            return self.close(tx)
        if name == "__iter__" and not count:
            return self
        try:
            if name == "__next__" and not count:
                return self.next(tx)
            if name == "send" and count == 1:
                return self.send(tx, realize(args[0]))
            if name == "throw" and 1 <= count <= 3:
                return self.throw(tx, _thrown([realize(arg) for arg in args]))
        except StopSymbolicIteration as stop:
            raise PythonRaise(StopIteration, () if stop.value is None else (stop.value,)) from stop
        raise GraphBreak(f"{self.describe()}.{name}() with {count} arguments")

    def next(self, tx: Translator) -> VariableTracker:
        return self.send(tx, ConstantVariable(None))

    def send(self, tx: Translator, value: VariableTracker) -> VariableTracker:
        """The next item, with `value` as what the last ``yield`` gives.

        Raises:
            StopSymbolicIteration: it returned.
        """
        if self.state == "finished":
            raise StopSymbolicIteration
        if self.state == "created" and not (isinstance(value, ConstantVariable) and value.value is None):
            raise PythonRaise(TypeError, ("can't send non-None value to a just-started generator",))
        return self._step(tx, value, None)

    def throw(self, tx: Translator, exception: ExceptionVariable) -> VariableTracker:
        """Raise at the last ``yield``; the next item, if the generator goes on.

        Raises:
            StopSymbolicIteration: it returned.
        """
        error = PythonRaise(exception.kind, tuple(exception.arguments or ()), exception)
        if self.state in ("created", "finished"):
            self.state = "finished"
            raise error
        if self.state == "suspended" and self.frame.delegates:
            raise GraphBreak(f"an exception thrown into {self.describe()} in a yield from")
        return self._step(tx, ConstantVariable(None), error)

    def close(self, tx: Translator) -> VariableTracker:
        """Raise GeneratorExit at the last ``yield``."""
        none = ConstantVariable(None)
        if self.state in ("created", "finished"):
            self.state = "finished"
            return none
        try:
            self.throw(tx, ExceptionVariable(ClassVariable(GeneratorExit), []))
        except StopSymbolicIteration as stop:
            return stop.value or none if FACTS.close_returns else none
        except PythonRaise as error:
            if issubclass(error.kind, GeneratorExit | StopIteration):
                return none
            raise
        raise PythonRaise(RuntimeError, ("generator ignored GeneratorExit",))

    def _step(self, tx: Translator, sent: VariableTracker, error: PythonRaise | None) -> VariableTracker:
        if self.state == "running":
            raise PythonRaise(ValueError, ("generator already executing",))
        handled = tx.output.handled
        before = len(handled)
        tx.output.effects.count += 1  # a step of a generator is not taken back
        self.state = "running"
        handled.extend(self._handling)
        try:
            how, value = self.frame.resume(sent, error)
        except PythonRaise as raised:
            self.state = "finished"
            del handled[before:]
            if issubclass(raised.kind, StopIteration):
                raise _stop_became_error(tx, raised) from raised
            raise
        self._handling = handled[before:]
        del handled[before:]
        if how == "returned":
            self.state = "finished"
            empty = isinstance(value, ConstantVariable) and value.value is None
            raise StopSymbolicIteration(None if empty else value)
        self.state = "suspended"
        return value


def _stop_became_error(tx: Translator, raised: PythonRaise) -> PythonRaise:
    """PEP 479: StopIteration that leaves a generator becomes RuntimeError."""
    cause = exception_of(tx, raised)
    made = ExceptionVariable(
        ClassVariable(RuntimeError), [ConstantVariable("generator raised StopIteration")]
    )
    made.cause = made.context = cause
    made.suppresses_context = True
    error = PythonRaise(RuntimeError, tuple(made.arguments or ()), made)
    error.is_reraise = True
    return error


def _thrown(args: list[VariableTracker]) -> ExceptionVariable:
    """The exception of ``throw(value)`` or, as before 3.12, ``throw(type, value, traceback)``."""
    value = args[1] if len(args) > 1 and isinstance(args[1], ExceptionVariable) else args[0]
    if not isinstance(value, ExceptionVariable):
        raise GraphBreak(f"throw() of {value.describe()}")
    return value
