"""What can go wrong while bytecode is read or written; torch-free, so it stands apart from `dynamo.eval.errors`."""

from __future__ import annotations

__all__ = ["AssembleError", "BytecodeError", "DecodeError", "StackDepthError"]


class BytecodeError(Exception):
    """Base of everything this package raises."""


class DecodeError(BytecodeError):
    """A code object holds something that no CPython compiler of this version writes."""


class AssembleError(BytecodeError):
    """The instructions cannot be written as a code object of this Python version."""


class StackDepthError(BytecodeError):
    """The instructions do not keep one stack depth per place, or pop more than there is."""
