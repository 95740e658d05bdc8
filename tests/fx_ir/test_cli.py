"""The command ``fx-ir``: what it prints, and its exit status."""

from __future__ import annotations

import json
import operator
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fx.ir import Graph, OpaqueTarget, save
from fx.ir.cli import main


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    paths = []
    for constant in (1, 2):
        graph = Graph()
        x = graph.placeholder("x")
        graph.output(graph.call_function(operator.add, (x, constant), {"k": [x]}))
        paths.append(str(tmp_path / f"{constant}.json"))
        save(graph, paths[-1])
    return paths[0], paths[1]


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    status = main(arguments)
    captured = capsys.readouterr()
    return status, captured.out + captured.err


def test_show_prints_the_graph(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    from fx.ir import load

    assert run(capsys, "show", files[0]) == (0, f"{load(files[0])}\n")
    status, text = run(capsys, "show", "--json", files[0])
    data = json.loads(text)
    assert status == 0
    assert data[1] == {
        "name": "add", "op": "call_function", "target": "operator.add", "args": ["%x", "1"], "kwargs": {"k": "[%x]"},
        "users": ["output"],
    }  # fmt: skip
    assert "opcode" in run(capsys, "show", "--table", files[0])[1]


def test_stats_are_printed_and_given_as_json(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert json.loads(run(capsys, "stats", "--json", files[0])[1])["nodes"] == 3
    status, text = run(capsys, "stats", files[0])
    assert status == 0
    assert "x → add → output" in text


def test_lint_fails_on_findings_only(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "lint", *files) == (0, "no findings\n")
    Path(files[1]).write_text(Path(files[1]).read_text()[:-5])
    status, text = run(capsys, "lint", *files)
    assert status == 1
    assert text.startswith(f"{files[1]}: file: ")
    status, text = run(capsys, "lint", "--json", *files)
    assert (status, [item["file"] for item in json.loads(text)]) == (1, [files[1]])
    save(Graph(), files[0])
    assert "returns nothing" in run(capsys, "lint", files[0])[1]


def test_diff_fails_on_changes_only(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "diff", files[0], files[0]) == (0, "")
    status, text = run(capsys, "diff", *files)
    assert status == 1
    assert "~ add (args)" in text
    assert json.loads(run(capsys, "diff", "--json", *files)[1])["changed"] == [
        {"before": "add", "after": "add", "fields": ["args"]}
    ]


def test_dot_and_query(files: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status, text = run(capsys, "dot", files[0])
    assert status == 0
    assert text.startswith("digraph")
    assert json.loads(run(capsys, "dot", "--json", files[0])[1])["dot"] == text
    status, text = run(capsys, "query", files[0], "add(_, 1)")
    assert status == 0
    assert text.startswith("%add")
    assert run(capsys, "query", files[0], "add(_, 7)") == (1, "")
    assert json.loads(run(capsys, "query", "--json", files[0], "x")[1])[0]["name"] == "x"


def test_what_cannot_be_done_is_said_with_status_2(
    files: tuple[str, str], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for arguments in (("show", str(tmp_path / "none.json")), ("query", files[0], "add(")):
        status, text = run(capsys, *arguments)
        assert status == 2
        assert text.startswith("fx-ir: ")


def test_colours_are_for_terminals(files: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for no_color, expected in ((None, True), ("1", False)):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stdout", terminal)
        if no_color:
            monkeypatch.setenv("NO_COLOR", no_color)
        else:
            monkeypatch.delenv("NO_COLOR", raising=False)
        main(["show", files[0]])
        assert ("\033[" in terminal.getvalue()) is expected


def test_the_module_runs_as_a_program(files: tuple[str, str]) -> None:
    done = subprocess.run([sys.executable, "-m", "fx.ir.cli", "diff", *files], capture_output=True, text=True)
    assert done.returncode == 1
    assert "add" in done.stdout


def program(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "fx.ir.cli", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_a_reader_that_has_seen_enough_ends_the_command_quietly(tmp_path: Path) -> None:
    graph = Graph()
    node = graph.placeholder("x")
    for _ in range(5_000):
        node = graph.call_function(operator.neg, (node,))
    graph.output(node)
    save(graph, tmp_path / "long.json")
    running = program("show", str(tmp_path / "long.json"))
    assert running.stdout is not None
    assert running.stderr is not None
    assert running.stdout.readline() == "graph():\n"
    running.stdout.close()
    assert running.wait() == 141
    assert running.stderr.read() == ""
    running.stderr.close()


def test_what_a_stream_cannot_encode_is_escaped(files: tuple[str, str]) -> None:
    out, err = program("stats", files[0], PYTHONIOENCODING="ascii").communicate()
    assert (r"x \u2192 add" in out, err) == (True, "")


@pytest.mark.parametrize("command", [["show"], ["show", "--table"], ["stats"], ["lint"], ["dot"]])
def test_a_file_cannot_command_the_terminal(
    command: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    graph = Graph()
    x = graph.placeholder("x")
    graph.call_function(OpaqueTarget("absent.\x1b]0;title\x07\u202e"), (x,))
    save(graph, tmp_path / "hostile.json")
    _, text = run(capsys, *command, str(tmp_path / "hostile.json"))
    assert not set("\x1b\x07\u202e") & set(text)
    assert command == ["lint"] or r"\x1b]0;title\x07\u202e" in text.replace("\\\\", "\\")
