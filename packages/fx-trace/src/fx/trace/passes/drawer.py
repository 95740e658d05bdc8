"""Draw a graph: DOT text, or SVG where Graphviz is installed, with the shapes that shape propagation found."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final, final

from fx.codegen import GraphModule
from fx.ir import Node, format_argument
from fx.trace.passes.shape_prop import TensorMetadata

__all__ = ["GraphDrawer", "GraphvizMissing"]

_COLOURS: Final[Mapping[str, str]] = {
    "placeholder": "AliceBlue",
    "get_attr": "LightGrey",
    "call_function": "LemonChiffon",
    "call_method": "PapayaWhip",
    "call_module": "PaleGreen",
    "output": "Thistle",
}


class GraphvizMissing(RuntimeError):
    """The program ``dot`` is not installed."""


@final
class GraphDrawer:
    """Draws the graph of a module.

    Args:
        graph_module: to be drawn.
        name: title of the drawing.

    Source: torch.fx ``passes.graph_drawer``.
    """

    def __init__(self, graph_module: GraphModule, name: str = "graph") -> None:
        self.graph_module = graph_module
        self.name = name

    def dot(self) -> str:
        """The drawing as DOT text."""
        lines = [f"digraph {_quoted(self.name)} {{", "  rankdir=TB;", "  node [shape=box, style=filled];"]
        for node in self.graph_module.graph.nodes:
            label = _quoted("\n".join(self._label(node)))
            lines.append(f"  {_quoted(node.name)} [label={label}, fillcolor={_COLOURS[node.op]}];")
        for node in self.graph_module.graph.nodes:
            lines.extend(f"  {_quoted(used.name)} -> {_quoted(node.name)};" for used in node.all_input_nodes)
        return "\n".join([*lines, "}"]) + "\n"

    def _label(self, node: Node) -> list[str]:
        target = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
        lines = [f"%{node.name}", f"{node.op} {target}"]
        if node.op == "call_module":
            lines.append(type(self.graph_module.get_submodule(str(node.target))).__name__)
        constants = [format_argument(arg) for arg in node.args if not isinstance(arg, Node)]
        constants += [f"{key}={format_argument(arg)}" for key, arg in node.kwargs.items()]
        if constants and node.op.startswith("call"):
            lines.append(", ".join(constants)[:80])
        meta = node.meta.get("tensor_meta")
        if isinstance(meta, TensorMetadata):
            lines.append(f"{str(meta.dtype).removeprefix('torch.')}{list(meta.shape)}")
        return lines

    def svg(self) -> str:
        """The drawing as SVG.

        Raises:
            GraphvizMissing: ``dot`` is not on the path.
        """
        program = shutil.which("dot")
        if program is None:
            raise GraphvizMissing("SVG needs the program `dot` of Graphviz: install graphviz, or use dot().")
        done = subprocess.run(
            [program, "-Tsvg"], input=self.dot(), capture_output=True, text=True, check=True
        )
        return done.stdout

    def write(self, path: Path) -> None:
        """Write the drawing to a file; SVG if its name ends in ``.svg``, else DOT."""
        path.write_text(self.svg() if path.suffix == ".svg" else self.dot(), encoding="utf-8")


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
