"""``python -m fx.codegen.interop convert model.pt2 out.json``: an exported program as a graph file for ``fx.ir``.

The file holds the graph alone (nodes, names, plain meta), not the parameters: what is needed to analyse a model on a
machine without torch.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from fx.codegen.errors import InteropError
from fx.codegen.interop.torch_fx import from_torch
from fx.ir import Graph, save


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the value is the exit status."""
    parser = argparse.ArgumentParser(prog="python -m fx.codegen.interop", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    convert = commands.add_parser("convert", help="write the graph of an exported program to a file of fx.ir")
    convert.add_argument("source", type=Path, help="a .pt2 file that torch.export.save wrote")
    convert.add_argument("out", type=Path, help="the file to write")
    options = parser.parse_args(arguments)
    try:
        graph = exported_graph(options.source)
    except (InteropError, OSError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 1
    save(graph, options.out)
    print(f"{options.out}: {len(graph.nodes)} nodes")
    return 0


def exported_graph(source: Path) -> Graph:
    """The graph of an exported program.

    Raises:
        InteropError: ``source`` is no exported program.
        OSError: it cannot be read.
    """
    if not source.exists():
        raise FileNotFoundError(f"there is no file {source}")
    try:
        program = torch.export.load(source)
    except (RuntimeError, ValueError) as error:
        raise InteropError(f"{source} is no program that torch.export.save wrote: {error}") from error
    graph: Graph = from_torch(program.graph)
    return graph


if __name__ == "__main__":
    sys.exit(main())
