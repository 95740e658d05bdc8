"""What debuggers, profilers and crash dumps see of captured functions: the user's lines, under names a user knows.

Lines of a function that was followed into its caller's graph are not seen, and the graph is seen as its own function
``forward`` of generated text. Where a function was split, the line of the split may be told once more when the rest, or a
part of a block, returns. A local may show its value from before the graph while the lines of the graph are told.
Python 3.13 does not tell ``sys.monitoring`` of the line that a code object begins with, so not of the first line of a rest.
Everything else is as without capture.
"""

from __future__ import annotations

import faulthandler
import io
import pdb
import re
import sys
import tempfile
from collections.abc import Callable, Iterator
from types import CodeType, FrameType
from typing import Any

import pytest
import torch

from dynamo.eval import _frame, optimize, reset


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    yield
    reset()


def followed(x: torch.Tensor) -> torch.Tensor:
    return x + 1


def straight(a: torch.Tensor) -> torch.Tensor:
    b = a + a
    c = followed(b)
    return c * 2


def branching(a: torch.Tensor) -> torch.Tensor:
    a = a + 1
    if a.sum() > 0:
        a = a * 2
    else:
        a = a * 3
    return a


def looping(a: torch.Tensor) -> torch.Tensor:
    for step in range(3):
        a = a + step
        if a.sum() > 100:
            break
    return a


def raising(a: torch.Tensor) -> torch.Tensor:
    try:
        if a.sum() > 0:
            raise ValueError(a.shape)
    except ValueError as error:
        a = a + len(error.args)
    return a


SPLIT = [branching, looping, raising]
FUNCTIONS = [straight, *SPLIT]


def is_part_of(code: CodeType, function: Callable[..., Any]) -> bool:
    """Whether code is a function or the rest or a segment of it."""
    own = function.__code__
    return code.co_filename == own.co_filename and own.co_name in code.co_name


def lines_traced(function: Callable[..., Any], call: Callable[..., Any], argument: torch.Tensor) -> list[int]:
    """The lines of `function` that sys.settrace is told while `call` runs, repetitions in a row left out."""
    lines: list[int] = []

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        if event == "line" and is_part_of(frame.f_code, function) and lines[-1:] != [frame.f_lineno]:
            lines.append(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call(argument)
    finally:
        sys.settrace(before)
    return lines


def shown(function: Callable[..., Any], lines: list[int]) -> list[int]:
    """What must be equal of the lines: their order, or for a function that is split, which there are."""
    return sorted(set(lines)) if function in SPLIT else lines


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_tracer_is_told_the_lines_of_the_user_at_capture_and_at_hits(function: Callable[..., Any]) -> None:
    captured = optimize("eager")(function)
    for argument in (torch.ones(2), -torch.ones(2)):
        expected = shown(function, lines_traced(function, function, argument))
        for _ in range(3):
            assert shown(function, lines_traced(function, captured, argument)) == expected


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_profiler_is_told_of_each_call_its_return(function: Callable[..., Any]) -> None:
    open_frames: list[FrameType] = []
    unpaired: list[str] = []

    def profile(frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            open_frames.append(frame)
        elif event == "return" and (not open_frames or open_frames.pop() is not frame):
            unpaired.append(frame.f_code.co_qualname)

    captured = optimize("eager")(function)
    for _ in range(3):
        sys.setprofile(profile)
        try:
            captured(torch.ones(2))
        finally:
            sys.setprofile(None)
        assert (open_frames, unpaired) == ([], [])


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_monitoring_is_told_the_lines_of_the_user(function: Callable[..., Any]) -> None:
    monitoring: Any = vars(sys)["monitoring"]

    def monitored(call: Callable[..., Any], argument: torch.Tensor) -> list[int]:
        lines: list[int] = []

        def on_line(code: CodeType, line: int) -> None:
            if is_part_of(code, function) and lines[-1:] != [line]:
                lines.append(line)

        monitoring.use_tool_id(3, "test")
        monitoring.register_callback(3, monitoring.events.LINE, on_line)
        monitoring.set_events(3, monitoring.events.LINE)
        try:
            call(argument)
        finally:
            monitoring.set_events(3, 0)
            monitoring.register_callback(3, monitoring.events.LINE, None)
            monitoring.free_tool_id(3)
        return lines

    captured = optimize("eager")(function)
    for argument in (torch.ones(2), -torch.ones(2)):
        expected = shown(function, monitored(function, argument))
        for _ in range(3):
            told = shown(function, monitored(captured, argument))
            begins = {code.co_firstlineno for code in _frame.codes() if is_part_of(code, function)}
            assert [line for line in told if line not in begins] == [
                line for line in expected if line not in begins
            ]
            assert set(told) <= set(expected)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_pdb_stops_at_breakpoints_as_often_as_without_capture(function: Callable[..., Any]) -> None:
    last = max(line for *_, line in function.__code__.co_lines() if line is not None)

    def debugged(call: Callable[..., Any]) -> str:
        said = io.StringIO()
        debugger = pdb.Pdb(
            stdin=io.StringIO("p type(a).__name__\ncontinue\n" * 9), stdout=said, nosigint=True, readrc=False
        )
        debugger.use_rawinput = False
        debugger.reset()
        assert debugger.set_break(function.__code__.co_filename, last) is None
        before = sys.gettrace()
        sys.settrace(debugger.trace_dispatch)
        try:
            call(torch.ones(2))
        finally:
            sys.settrace(before)
            debugger.clear_all_breaks()
        return re.sub(r"> .*\n", "", said.getvalue())

    expected = debugged(function)
    assert "'Tensor'" in expected
    captured = optimize("eager")(function)
    assert debugged(captured) == expected
    assert debugged(captured) == expected


def test_a_crash_dump_names_the_function_its_rest_and_the_lines_of_the_user() -> None:
    dumps: list[str] = []

    def dump() -> None:
        with tempfile.TemporaryFile("w+") as file:
            faulthandler.dump_traceback(file)
            file.seek(0)
            dumps.append(file.read())

    def crashing(a: torch.Tensor) -> torch.Tensor:
        a = a + 1
        dump()
        a = a * 2
        dump()
        return a

    first = crashing.__code__.co_firstlineno
    captured = optimize("eager")(crashing)
    for _ in range(2):
        dumps.clear()
        captured(torch.ones(2))
        assert re.search(rf"line {first + 2} in \S*crashing", dumps[0])
        assert re.search(rf"line {first + 4} in \S*resume_in_crashing_at_\d+", dumps[1])
