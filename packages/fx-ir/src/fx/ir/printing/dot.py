"""Graphs as pictures: DOT text, and SVG where the Graphviz program is installed."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Final

from fx.ir.errors import GraphError, MissingLibraryError
from fx.ir.printing.text import format_target

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node

_COLOURS: Final = {
    "placeholder": "#d5e8d4",
    "get_attr": "#e1d5e7",
    "call_function": "#dae8fc",
    "call_method": "#cce5ff",
    "call_module": "#ffe6cc",
    "output": "#f8cecc",
}


def format_dot(graph: Graph, name: str = "graph") -> str:
    """The graph in the DOT language: a box per node, an arrow from each value to its users."""
    lines = [
        f"digraph {_quoted(name)} {{",
        '  node [shape=box, style="rounded,filled", fontname="Helvetica", fontsize=10];',
    ]
    for node in graph.nodes:
        lines.append(f'  {_quoted(node.name)} [label={_label(node)}, fillcolor="{_COLOURS[node.op]}"];')
        lines.extend(f"  {_quoted(value.name)} -> {_quoted(node.name)};" for value in node.all_input_nodes)
    return "\n".join([*lines, "}", ""])


def _label(node: Node) -> str:
    target = format_target(node.target)
    return _quoted(node.name if target in (node.name, "output") else f"{node.name}\n{target}")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def format_svg(graph: Graph, name: str = "graph") -> str:
    """The graph as an SVG picture.

    Raises:
        MissingLibraryError: the program ``dot`` of Graphviz is not on the path.
        GraphError: ``dot`` failed; the message holds what it said.
    """
    program = shutil.which("dot")
    if program is None:
        raise MissingLibraryError("SVG needs the program 'dot': install Graphviz (https://graphviz.org)")
    done = subprocess.run(
        [program, "-Tsvg"], input=format_dot(graph, name), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise GraphError(f"dot failed: {done.stderr.strip()}")
    return done.stdout
