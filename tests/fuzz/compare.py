"""Run a program captured and plainly, and say where they differ."""

import contextlib
import copy
import io
import logging
import re
import signal
import traceback
import types
from collections.abc import Iterator
from typing import Any, Final

import torch

import dynamo.eval as dynamo
from tests.oracle.eager import assert_same, outcome, without_addresses

_FILE: Final = "<random program>"
_SECONDS: Final = 20


class TooLong(BaseException):
    """A program did not end in time."""


def _stop(signum: int, frame: types.FrameType | None) -> None:
    raise TooLong


@contextlib.contextmanager
def _within_time() -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


class _Complaints(logging.Handler):
    """What capture logged as its own failures."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if "capture failed" in record.getMessage():
            text = io.StringIO()
            text.write(record.getMessage())
            if record.exc_info:
                traceback.print_exception(*record.exc_info, file=text)
            self.texts.append(text.getvalue())


def _namespace(source: str) -> dict[str, Any]:
    module = types.ModuleType("random_program")
    torch.manual_seed(0)
    exec(compile(source, _FILE, "exec"), vars(module))
    return vars(module)


def _ending(result: tuple[str, Any, tuple[Any, ...], str]) -> Any:
    """Of an exception: its kind, what it followed, and the lines of the program that it passed."""
    how, value, *_ = result
    if how == "returned":
        return None
    chain = [type(value)]
    following = value
    while following.__cause__ is not None or following.__context__ is not None:
        following = following.__cause__ or following.__context__
        chain.append(type(following))
    entries = [entry for entry in traceback.extract_tb(value.__traceback__) if entry.filename == _FILE]
    continued = [entry.name.startswith("resume_in_") for entry in entries]
    places = [
        (re.sub(r"^resume_in_(.*)_at_\d+$", r"\1", entry.name), entry.lineno)
        for entry, goes_on in zip(entries, [*continued[1:], False], strict=True)
        if not goes_on  # the rest of a function after a break is a function that the first part calls
    ]
    return [kind.__qualname__ for kind in chain], places


def difference(source: str, calls: list[tuple[Any, ...]], *, dynamic: bool | None = None) -> str | None:
    """What differs between the program captured and the program run plainly; ``None`` where nothing does, or where
    the source defines no ``program``.

    A failure of capture itself, which the user would see as a log line, counts as a difference.

    Raises:
        SyntaxError: the program is none.
        TooLong: one of the two runs does not end.
    """
    theirs_in, ours_in = copy.deepcopy(calls), copy.deepcopy(calls)
    plain, seen = _namespace(source), _namespace(source)
    if "program" not in plain:
        return None
    complaints = _Complaints()
    logger = logging.getLogger("dynamo")
    logger.addHandler(complaints)
    propagate, logger.propagate = logger.propagate, False
    try:
        dynamo.reset()
        captured = dynamo.optimize("eager", dynamic=dynamic)(seen["program"])
        for number, (theirs_arguments, ours_arguments) in enumerate(zip(theirs_in, ours_in, strict=True)):
            text = _one_call(number, plain, theirs_arguments, seen, captured, ours_arguments)
            if text is not None:
                return text
    finally:
        logger.removeHandler(complaints)
        logger.propagate = propagate
        torch.set_grad_enabled(True)
    return "capture failed: " + complaints.texts[0] if complaints.texts else None


def _one_call(
    number: int,
    plain: dict[str, Any],
    theirs_arguments: tuple[Any, ...],
    seen: dict[str, Any],
    captured: Any,
    ours_arguments: tuple[Any, ...],
) -> str | None:
    with _within_time():
        theirs = outcome(plain["program"], theirs_arguments)
        theirs_grad = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        ours = outcome(captured, ours_arguments)
        ours_grad = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
    if ours[0] != theirs[0]:
        return f"call {number}: captured {_words(ours)}, plainly {_words(theirs)}"
    if without_addresses(ours[3]) != without_addresses(theirs[3]):
        return f"call {number}: captured printed {ours[3]!r}, plainly {theirs[3]!r}"
    if _ending(ours) != _ending(theirs):
        return f"call {number}: captured ended {_ending(ours)}, plainly {_ending(theirs)}"
    if ours_grad != theirs_grad:
        return f"call {number}: captured left gradients {ours_grad}, plainly {theirs_grad}"
    outside = ("LOG", "STATE", "COUNT", "NET")
    try:
        assert_same(
            [ours[1:3], *(seen[name] for name in outside)],
            [theirs[1:3], *(plain[name] for name in outside)],
            place=f"call {number}",
        )
    except AssertionError as error:
        return str(error)
    return None


def _words(result: tuple[str, Any, tuple[Any, ...], str]) -> str:
    how, value, *_ = result
    if how == "returned":
        return f"returned {value!r}"
    return "raised " + "".join(traceback.format_exception(value))
