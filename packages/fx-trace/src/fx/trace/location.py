"""Places in the user's program: found on the Python stack, kept small, put into words only when asked.

A recorded node remembers the code object and the instruction, not the line: looking up the line decodes the line table of
the whole function, which would cost more than recording the node. The frames of this package and of torch's own dispatch
files are plumbing and are passed over.
"""

from __future__ import annotations

import linecache
import os
import sys
import traceback
from types import CodeType, FrameType
from typing import Final, final

import torch

__all__ = ["Location", "location_from", "location_of_user", "stack_of_user", "user_frame"]

_HERE: Final = os.path.dirname(os.path.abspath(__file__)) + os.sep
_TORCH: Final = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_TORCH_PLUMBING: Final = frozenset(
    _TORCH + path.replace("/", os.sep)
    for path in (
        "__init__.py",
        "_jit_internal.py",
        "_ops.py",
        "_tensor.py",
        "functional.py",
        "nn/functional.py",
        "nn/modules/container.py",
        "nn/modules/module.py",
        "overrides.py",
    )
)


_new_location: Final = object.__new__


class _Plumbing(dict[str, bool]):
    """Whether a file is plumbing, worked out once for each."""

    def __missing__(self, filename: str) -> bool:
        found = self[filename] = filename in _TORCH_PLUMBING or filename.startswith(_HERE)
        return found


_is_plumbing: Final = _Plumbing()


@final
class Location:
    """One place in the user's program: file, line and function.

    Made from a code object and an instruction offset; the line is worked out on first use.
    """

    __slots__ = ("_code", "_instruction")

    def __init__(self, filename: str, line: int | None, function: str) -> None:
        self._code: CodeType | tuple[str, str] = (filename, function)
        self._instruction = line

    @classmethod
    def of_frame(cls, frame: FrameType) -> Location:
        """The place where ``frame`` is now."""
        self = _new_location(cls)
        self._code = frame.f_code
        self._instruction = frame.f_lasti
        return self

    @property
    def filename(self) -> str:
        """The file, as Python names it."""
        return self._code[0] if isinstance(self._code, tuple) else self._code.co_filename

    @property
    def function(self) -> str:
        """Name of the function."""
        return self._code[1] if isinstance(self._code, tuple) else self._code.co_name

    @property
    def line(self) -> int | None:
        """Line number, counted from 1; None where the compiler recorded none."""
        if not isinstance(self._code, tuple):
            self._instruction = _line_of(self._code, self._instruction or 0)
            self._code = (self._code.co_filename, self._code.co_name)
        return self._instruction

    @property
    def source(self) -> str:
        """The text of the line, stripped; empty when the file cannot be read."""
        return linecache.getline(self.filename, self.line or 0).strip()

    def describe(self) -> str:
        """The place as a traceback shows it, with the text of the line when it can be read."""
        text = f'  File "{self.filename}", line {self.line}, in {self.function}'
        return f"{text}\n    {self.source}" if self.source else text

    def __str__(self) -> str:
        return f"{self.filename}:{self.line}"

    def __repr__(self) -> str:
        return f"Location({self.filename!r}, {self.line!r}, {self.function!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Location):
            return NotImplemented
        return (self.filename, self.line, self.function) == (other.filename, other.line, other.function)

    def __hash__(self) -> int:
        return hash((self.filename, self.line, self.function))

    def __copy__(self) -> Location:
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Location:
        return self

    def __reduce__(self) -> tuple[type[Location], tuple[str, int | None, str]]:
        return Location, (self.filename, self.line, self.function)


def _line_of(code: CodeType, instruction: int) -> int | None:
    for start, end, line in code.co_lines():
        if start <= instruction < end:
            return line
    return None


def user_frame(frame: FrameType | None = None) -> FrameType | None:
    """The innermost frame, from ``frame`` (the caller's) outwards, that belongs neither to this package nor to torch's dispatch."""
    if frame is None:
        frame = sys._getframe(1)
    while frame is not None and _is_plumbing[frame.f_code.co_filename]:
        frame = frame.f_back
    return frame


def location_from(frame: FrameType | None) -> Location | None:
    """The place in the user's program from which ``frame`` was reached; one call, for it is run for every recorded node."""
    while frame is not None:
        code = frame.f_code
        if not _is_plumbing[code.co_filename]:
            found = _new_location(Location)
            found._code = code
            found._instruction = frame.f_lasti
            return found
        frame = frame.f_back
    return None


def location_of_user() -> Location | None:
    """Where the user's program is now; None when no frame of it is on the stack."""
    return location_from(sys._getframe(1))


def stack_of_user() -> str:
    """The user's part of the stack, outermost call first, in the words of a traceback."""
    frames = [
        summary
        for summary in traceback.StackSummary.extract(_walk(user_frame()), lookup_lines=False)
        if not _is_plumbing[summary.filename]
    ]
    frames.reverse()
    return "".join(traceback.StackSummary.from_list(frames).format()).strip()


def _walk(frame: FrameType | None) -> list[tuple[FrameType, int]]:
    frames: list[tuple[FrameType, int]] = []
    while frame is not None and not (
        frame.f_code.co_filename == _TRACER_FILE and frame.f_code.co_name == "trace"
    ):
        frames.append((frame, frame.f_lineno))
        frame = frame.f_back
    return frames


_TRACER_FILE: Final = _HERE + "tracer.py"
