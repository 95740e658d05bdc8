"""The command ``fx-ir``: looks at saved graphs.

    fx-ir show FILE [--table]      the nodes
    fx-ir stats FILE               numbers
    fx-ir lint FILE...             broken files and invariants; exit status 1 if there are any
    fx-ir diff A B                 what changed; exit status 1 if anything did
    fx-ir dot FILE [--svg]         a picture
    fx-ir query FILE PATTERN       the nodes that match, such as 'torch.add(_, 1)'; exit status 1 if none does

``--json`` gives every answer as JSON.  Exit status 2: the command could not be done.  Colours are used on a terminal,
unless ``NO_COLOR`` is set.  A reader that closes the pipe ends the command quietly, with status 141 as shells give.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, TextIO

from fx.ir.analysis.diff import Diff, diff
from fx.ir.analysis.stats import stats
from fx.ir.errors import GraphError
from fx.ir.files import load
from fx.ir.lint.check import check
from fx.ir.match.pattern import parse_pattern, select
from fx.ir.node import Node
from fx.ir.printing import dot, table
from fx.ir.printing.text import format_argument, format_target
from fx.ir.serialize.errors import FileFormatError

_CODES: Final = {"red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36", "dim": "2"}
_OP_COLOURS: Final = {"placeholder": "green", "output": "red", "get_attr": "yellow"}


_HIDDEN: Final = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


def visible(text: str) -> str:
    """``text`` with escapes for the characters by which a file could command the terminal."""
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


class Printer:
    """Writes lines, coloured if the stream is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._colours = stream.isatty() and "NO_COLOR" not in os.environ

    def line(self, text: str = "", colour: str | None = None) -> None:
        """Write one line (or some); what the stream cannot encode is written as an escape."""
        self._write(f"{self.paint(text, colour)}\n")

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))

    def paint(self, text: str, colour: str | None) -> str:
        """``text`` in a colour, if there are colours."""
        return f"\033[{_CODES[colour]}m{text}\033[0m" if self._colours and colour else text

    def node(self, node: Node, before: str = "", colour: str | None = None) -> None:
        """One line about a node."""
        self.line(f"{before}{visible(str(node.format_node()))}", colour or _OP_COLOURS.get(node.op))

    def json(self, value: Any) -> None:
        self._write(json.dumps(value, indent=2) + "\n")


def node_data(node: Node) -> dict[str, Any]:
    """A node as plain data for ``--json``; arguments as printed graphs show them."""
    return {
        "name": node.name,
        "op": node.op,
        "target": format_target(node.target),
        "args": [format_argument(arg) for arg in node.args],
        "kwargs": {key: format_argument(arg) for key, arg in node.kwargs.items()},
        "users": [user.name for user in node.users],
    }


def show(options: argparse.Namespace, printer: Printer) -> int:
    """Print the nodes."""
    graph = load(options.file)
    if options.json:
        printer.json([node_data(node) for node in graph.nodes])
    elif options.table:
        printer.line(visible(table.format_table(graph)))
    else:
        printer.line("graph():", "dim")
        for node in graph.nodes:
            printer.node(node, "    ")
    return 0


def show_stats(options: argparse.Namespace, printer: Printer) -> int:
    """Print numbers."""
    numbers = stats(load(options.file)).to_dict()
    if options.json:
        printer.json(numbers)
        return 0
    for name, value in numbers.items():
        label = printer.paint(f"{name.replace('_', ' '):>14}", "cyan")
        if isinstance(value, dict):
            printer.line(
                f"{label}  " + visible(", ".join(f"{key}: {number}" for key, number in value.items()))
            )
        elif isinstance(value, tuple | list):
            printer.line(f"{label}  " + " → ".join(_shortened([str(item) for item in value])))
        else:
            printer.line(f"{label}  {value:.2f}" if isinstance(value, float) else f"{label}  {value}")
    return 0


def _shortened(names: list[str]) -> list[str]:
    return names if len(names) <= 12 else [*names[:6], "...", *names[-5:]]


def lint(options: argparse.Namespace, printer: Printer) -> int:
    """Print what is wrong with files; 1 if anything is."""
    found: list[dict[str, Any]] = []
    for path in options.files:
        for rule, message, nodes in _breaches(path):
            found.append({"file": path, "rule": rule, "message": message, "nodes": nodes})
    if options.json:
        printer.json(found)
    else:
        for breach in found:
            printer.line(
                f"{breach['file']}: {printer.paint(breach['rule'], 'red')}: {visible(breach['message'])}"
            )
        if not found:
            printer.line("no findings", "green")
    return 1 if found else 0


def _breaches(path: str) -> list[tuple[str, str, list[str]]]:
    try:
        graph = load(path)
    except FileFormatError as error:
        return [("file", str(error), [])]
    found = [(breach.rule, breach.message, [node.name for node in breach.nodes]) for breach in check(graph)]
    if not graph.find_nodes(op="output"):
        found.append(("no output", "the graph returns nothing", []))
    return found


def show_diff(options: argparse.Namespace, printer: Printer) -> int:
    """Print what changed from one file to another; 1 if anything did."""
    changes = diff(load(options.before), load(options.after))
    if options.json:
        printer.json(changes.to_dict())
    else:
        _print_diff(changes, printer)
    return 1 if changes else 0


def _print_diff(changes: Diff, printer: Printer) -> None:
    for node in changes.removed:
        printer.node(node, "- ", "red")
    for node in changes.added:
        printer.node(node, "+ ", "green")
    for change in changes.changed:
        printer.line(f"~ {change.before} ({', '.join(change.fields)})", "yellow")
        printer.node(change.before, "    - ", "red")
        printer.node(change.after, "    + ", "green")
    for before, after in changes.moved:
        printer.line(f"> {before} moved" + ("" if before.name == after.name else f" (now {after})"), "blue")
    for before, after in changes.renamed:
        printer.line(f"= {before} is now named {after}", "dim")


def show_dot(options: argparse.Namespace, printer: Printer) -> int:
    """Print a picture as DOT, or as SVG."""
    graph = load(options.file)
    picture = dot.format_svg(graph) if options.svg else dot.format_dot(graph)
    if options.json:
        printer.json({"svg" if options.svg else "dot": picture})
    else:
        printer.line(visible(picture.rstrip("\n")))
    return 0


def query(options: argparse.Namespace, printer: Printer) -> int:
    """Print the nodes that match a pattern; 1 if none does."""
    found = select(load(options.file), parse_pattern(options.pattern))
    if options.json:
        printer.json([node_data(node) for node in found])
    else:
        for node in found:
            printer.node(node)
    return 0 if found else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fx-ir", description="Look at saved graphs.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[..., int], help: str) -> argparse.ArgumentParser:
        made = commands.add_parser(name, help=help, description=help)
        made.add_argument("--json", action="store_true", help="answer as JSON")
        made.set_defaults(run=run)
        return made

    made = command("show", show, "print the nodes")
    made.add_argument("--table", action="store_true", help="as a table")
    made.add_argument("file")
    command("stats", show_stats, "print numbers about the graph").add_argument("file")
    command("lint", lint, "check files; exit status 1 if anything is wrong").add_argument("files", nargs="+")
    made = command("diff", show_diff, "print what changed; exit status 1 if anything did")
    made.add_argument("before")
    made.add_argument("after")
    made = command("dot", show_dot, "print the graph in the DOT language")
    made.add_argument("--svg", action="store_true", help="as SVG, by Graphviz")
    made.add_argument("file")
    made = command("query", query, "print the nodes that match a pattern such as 'torch.add(_, 1)'")
    made.add_argument("file")
    made.add_argument("pattern")
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    options = _parser().parse_args(arguments)
    try:
        status: int = options.run(options, Printer(sys.stdout))
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as ``head``, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (GraphError, OSError) as error:
        print(f"fx-ir: {visible(str(error))}", file=sys.stderr)
        return 2
    return status


if __name__ == "__main__":
    sys.exit(main())
