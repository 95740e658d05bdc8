"""Graphs as tables, one row a node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fx.ir.errors import MissingLibraryError

if TYPE_CHECKING:
    from fx.ir.graph import Graph


def format_table(graph: Graph) -> str:
    """The nodes as a table: opcode, name, target, args, kwargs.

    Raises:
        MissingLibraryError: the library ``tabulate`` is not installed.
    """
    try:
        from tabulate import tabulate
    except ImportError as error:
        raise MissingLibraryError("print_tabular needs the library tabulate: pip install tabulate") from error
    rows = [[node.op, node.name, node.target, node.args, node.kwargs] for node in graph.nodes]
    return tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"])
