"""Debuggers, profilers, coverage and fault dumps beside captured functions."""

import faulthandler
import io
import os
import pdb
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo

X = torch.ones(2)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def broken(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    observe()
    z = y * 2
    return z


def observe() -> int:
    return len(sys._current_frames())


dynamo.disable(observe)


def events_of(call: Callable[[], object]) -> list[tuple[str, str, int]]:
    """Trace events in this file, the ends of calls left out."""
    events: list[tuple[str, str, int]] = []

    def trace(frame: FrameType, event: str, arg: object) -> Any:
        code = frame.f_code
        if code.co_filename == __file__ and code.co_name != "<lambda>" and event in ("call", "line"):
            events.append((event, frame.f_code.co_name, frame.f_lineno))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return events


def test_what_a_captured_function_calls_is_traced_as_in_eager() -> None:
    def about(events: list[tuple[str, str, int]]) -> list[tuple[str, str, int]]:
        return [event for event in events if event[1] == "observe"]

    entry = dynamo.optimize("eager")(broken)
    expected = about(events_of(lambda: broken(X)))
    assert expected
    for _ in range(3):
        assert about(events_of(lambda: entry(X))) == expected


def straight(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    z = torch.relu(y)
    pair = (z, y)
    first, second = pair
    return first * second


def test_a_captured_function_shows_the_lines_of_the_user() -> None:
    entry = dynamo.optimize("eager")(straight)
    entry(X)
    expected = events_of(lambda: straight(X))
    distinct = list(dict.fromkeys(expected))  # Python comes back to a line where an expression spans several
    for _ in range(2):
        assert events_of(lambda: entry(X)) == distinct


def test_both_sides_of_a_break_show_the_lines_of_the_user() -> None:
    entry = dynamo.optimize("eager")(broken)
    first = broken.__code__.co_firstlineno
    entry(X)
    for _ in range(2):
        events = [event for event in events_of(lambda: entry(X)) if event[1] != "observe"]
        rest = f"resume_in_broken_at_{first + 2}"
        assert events == [
            ("call", "broken", first),
            ("line", "broken", first + 1),
            ("line", "broken", first + 2),
            ("call", rest, first + 2),
            ("line", rest, first + 2),
            ("line", rest, first + 3),
            ("line", rest, first + 4),
        ]


def test_setprofile_sees_calls_and_returns_in_pairs_and_none_of_capture() -> None:
    def profiled(call: Callable[[], object]) -> list[tuple[str, str, str]]:
        events: list[tuple[str, str, str]] = []

        def profile(frame: FrameType, event: str, arg: object) -> None:
            if event in ("call", "return"):
                events.append((event, frame.f_code.co_name, frame.f_code.co_filename))

        sys.setprofile(profile)
        try:
            call()
        finally:
            sys.setprofile(None)
        return events

    entry = dynamo.optimize("eager")(broken)
    for _ in range(3):
        events = profiled(lambda: entry(X))
        assert sum(event == "call" for event, _, _ in events) == sum(
            event == "return" for event, _, _ in events
        )
        own = os.path.dirname(dynamo.__file__)
        assert not [event for event in events if event[2].startswith(own)]
        assert [name for event, name, _ in events if event == "call" and name == "broken"] == ["broken"]


@pytest.mark.skipif(not hasattr(sys, "monitoring"), reason="sys.monitoring came with Python 3.12")
def test_monitoring_sees_the_function_its_rest_and_what_they_call() -> None:
    monitoring: Any = vars(sys)["monitoring"]
    entry = dynamo.optimize("eager")(broken)
    entry(X)
    started: list[str] = []

    def start(code: Any, offset: int) -> None:
        if code.co_filename == __file__:
            started.append(code.co_name)

    monitoring.use_tool_id(4, "test")
    monitoring.register_callback(4, monitoring.events.PY_START, start)
    monitoring.set_events(4, monitoring.events.PY_START)
    try:
        for _ in range(2):
            entry(X)
    finally:
        monitoring.set_events(4, 0)
        monitoring.register_callback(4, monitoring.events.PY_START, None)
        monitoring.free_tool_id(4)
    assert len(started) == 6
    assert started[:2] == started[3:5] == ["broken", "observe"]
    assert started[2].startswith("resume_in_broken_at_") and started[2] == started[5]


def test_pdb_steps_into_and_out_of_a_captured_function() -> None:
    entry = dynamo.optimize("eager")(broken)
    entry(X)
    commands = io.StringIO("step\nstep\nwhere\nreturn\ncontinue\n")
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=commands, stdout=out, nosigint=True, readrc=False)
    debugger.prompt = ""
    result = debugger.runcall(lambda: entry(X))
    sys.settrace(None)
    assert result is not None and torch.equal(result, torch.full((2,), 4.0))
    assert re.search(r"test_observed_programs\.py\(\d+\)broken\(\)", out.getvalue())


def test_a_fault_dump_names_the_function_and_the_users_file() -> None:
    dumps: list[str] = []

    def dump() -> None:
        with tempfile.TemporaryFile("w+") as file:
            faulthandler.dump_traceback(file, all_threads=False)
            file.seek(0)
            dumps.append(file.read())

    dynamo.disable(dump)

    def captured(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        dump()
        return y * 2

    entry = dynamo.optimize("eager")(captured)
    for _ in range(3):
        entry(X)
    line = captured.__code__.co_firstlineno + 2
    for text in dumps:
        assert f'"{__file__}", line {line} in captured' in text
        assert "in dump" in text


PROGRAM = """
    import torch
    import dynamo.eval as dynamo

    def function(x, flag):
        y = x + 1
        if flag is None:
            y = y * 3
        print(flag)
        z = y * 2
        return z

    entry = dynamo.optimize("eager")(function)
    for flag in (None, 1, 1):
        entry(torch.ones(2), flag)
"""


def test_coverage_counts_captured_lines_too(tmp_path: Path) -> None:
    coverage = pytest.importorskip("coverage")
    program = tmp_path / "program.py"
    program.write_text(textwrap.dedent(PROGRAM).strip())
    data = tmp_path / "data"
    subprocess.run(
        [
            sys.executable,
            "-m",
            "coverage",
            "run",
            f"--data-file={data}",
            f"--include={program}",
            str(program),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    found = coverage.CoverageData(basename=str(data))
    found.read()
    lines = set(found.lines(str(program)) or ())
    text = program.read_text().splitlines()
    expected = {number for number, line in enumerate(text, 1) if line.strip()}
    assert lines == expected
