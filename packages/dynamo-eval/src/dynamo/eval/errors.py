"""What can go wrong while a frame is captured, one class per thing a caller may want to tell apart.

Three fates have three bases: the user asked for the impossible (`UsageError`), this frame cannot go on
here (`GraphBreak`, `SkipFrame`), our own fault (`InternalError`). Only `Unsupported` and `UsageError`
ever reach a user, and only under ``nopython=True``.
"""

from dataclasses import dataclass
from typing import Final


class CaptureError(RuntimeError):
    """Base class of everything that capture raises."""


class UsageError(CaptureError):
    """The caller asked for something that cannot be: an unknown backend, a wrong argument."""


class InternalError(CaptureError):
    """A fault of this package; the user's function still runs plainly."""


class BackendError(CaptureError):
    """The backend raised, or did not return a callable; ``__cause__`` holds what it raised."""


@dataclass(frozen=True, slots=True)
class BreakReason:
    """Why a graph ended: what was met, where in the user's file, and what to do about it."""

    what: str
    hint: str = ""
    filename: str = "<unknown>"
    lineno: int = 0

    def __str__(self) -> str:
        text = f"{self.what} ({self.filename}:{self.lineno})"
        return f"{text}. {self.hint}" if self.hint else text


class GraphBreak(CaptureError):
    """The instruction at hand must run in Python; what came before it can be a graph."""

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint
        self.location: tuple[str, int] | None = None

    def reason(self, filename: str, lineno: int) -> BreakReason:
        """This break seen from a frame; a place noted deeper (in an inlined callee) is kept."""
        where = self.location or (filename, lineno)
        return BreakReason(self.what, self.hint, *where)


class PythonRaise(GraphBreak):
    """The captured code raises here as Python would: a handler of the code takes it, or, without one, the graph breaks.

    Attributes:
        kind: the class of the exception.
        arguments: what it was made with, variables or literals; None when capture does not know them exactly.
        exception: its variable, once there is one.
        is_reraise: whether its ``__context__`` is settled already.
    """

    def __init__(
        self,
        kind: type[BaseException],
        arguments: tuple[object, ...] | None = None,
        exception: object | None = None,
    ) -> None:
        words = [str(getattr(each, "value", each)) for each in arguments or ()]
        shown = f": {', '.join(words)}" if words else ""
        super().__init__(
            f"{kind.__name__}{shown}", "an exception that leaves the captured function is raised by Python"
        )
        self.kind = kind
        self.arguments = arguments
        self.exception = exception
        self.is_reraise = False


#: exceptions whose whole state is their arguments
PLAIN_EXCEPTIONS: Final = frozenset(
    {
        *(
            BaseException,
            Exception,
            ArithmeticError,
            AssertionError,
            BufferError,
            EOFError,
            FloatingPointError,
        ),
        *(
            GeneratorExit,
            IndexError,
            KeyError,
            KeyboardInterrupt,
            LookupError,
            NotImplementedError,
            OverflowError,
        ),
        *(RuntimeError, StopIteration, TypeError, ValueError, ZeroDivisionError, Warning, UserWarning),
        *(DeprecationWarning, RuntimeWarning, FutureWarning, AttributeError, NameError, UnboundLocalError),
    }
)


def raised_by_python(error: BaseException) -> GraphBreak:
    """The break for an exception that a computation of known values raised: the captured code raises its like."""
    if type(error) in PLAIN_EXCEPTIONS:
        return PythonRaise(type(error), error.args)
    return GraphBreak(f"{type(error).__name__}: {error}")


class SkipFrame(CaptureError):
    """The frame is better run plainly: nothing to capture, or a state that cannot be rebuilt."""


class RestartCapture(CaptureError):
    """Capture begins again and ends at the numbered step, because a deeper step could not be undone."""

    def __init__(self, step: int, reason: BreakReason) -> None:
        super().__init__(str(reason))
        self.step = step
        self.reason = reason


class Outlives(CaptureError):
    """A value that only capture has would have to outlive it: capture ends before the step that made it.

    Attributes:
        step: number of that step of the root frame.
    """

    def __init__(self, what: str, step: int) -> None:
        super().__init__(what)
        self.what = what
        self.step = step


class Unsupported(CaptureError):
    """With ``nopython=True``: the function cannot be one graph, and this is the reason."""

    def __init__(self, reason: BreakReason) -> None:
        super().__init__(str(reason))
        self.reason = reason
