"""What can go wrong while a program is traced, run or rewritten, one class for each thing to tell apart.

Every error of tracing carries the place in the user's program where it happened. The messages say what was met, where, and
what to do about it. Several classes also derive from the built-in exception which ``torch.fx`` raises in the same case, so
that programs which caught that one go on working.
"""

from __future__ import annotations

from fx.trace.location import Location

__all__ = [
    "ArgumentTypeError",
    "ControlFlowError",
    "ConversionError",
    "IterationError",
    "LengthError",
    "ModulePathError",
    "MutationError",
    "NodeError",
    "RootError",
    "TraceError",
]


class TraceError(ValueError):
    """The program does something with traced values that cannot be recorded.

    Attributes:
        reason: what was met and what to do, without the place.
        location: where in the user's program, when a frame of it was on the stack.

    Source: seed 003, "Dynamic control flow".
    """

    def __init__(self, reason: str, location: Location | None = None) -> None:
        self.reason = reason
        self.location = location
        super().__init__(reason if location is None else f"{reason}\n{location.describe()}")


class ControlFlowError(TraceError):
    """A traced value decides a branch: ``if``, ``while``, ``and``, ``or``, ``not``, ``in``, ``assert``."""


class IterationError(TraceError):
    """A traced value is iterated over: ``for``, ``*value``, ``list(value)``, ``**value``."""


class LengthError(TraceError, RuntimeError):
    """``len()`` of a traced value, which Python demands to be a real integer."""


class ConversionError(TraceError, TypeError):
    """A traced value is turned into a real number, index or array."""


class ArgumentTypeError(TraceError, NotImplementedError):
    """An argument of a recorded operation is of a type that a graph cannot hold."""


class ModulePathError(TraceError, NameError):
    """A module is called that is not a submodule of the traced root."""


class MutationError(TraceError, RuntimeError):
    """An operation that changes its argument was met while ``check_mutable_operations`` is set."""


class RootError(TraceError, TypeError):
    """The object to be traced, or the values given for its arguments, cannot be used as they are."""


class NodeError(RuntimeError):
    """A node of a graph could not be executed for a reason of the graph itself, not of the called function.

    Attributes:
        node_name: name of the node at fault.
    """

    def __init__(self, message: str, node_name: str | None = None) -> None:
        self.node_name = node_name
        super().__init__(message)
