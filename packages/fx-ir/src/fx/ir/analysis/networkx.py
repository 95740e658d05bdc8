"""Graphs as ``networkx.DiGraph``, for everything that library knows (the extra ``fx-ir[networkx]``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fx.ir.errors import MissingLibraryError

if TYPE_CHECKING:
    import networkx

    from fx.ir.graph import Graph
    from fx.ir.node import Node


def to_networkx(graph: Graph) -> networkx.DiGraph[Node]:
    """A directed graph with the nodes of ``graph``, each with attributes ``name``, ``op``, ``target``, and the uses.

    An edge leads from a value to its user.

    Raises:
        MissingLibraryError: networkx is not installed.
    """
    try:
        import networkx
    except ImportError as error:
        raise MissingLibraryError("to_networkx needs networkx: pip install fx-ir[networkx]") from error
    converted: Any = networkx.DiGraph()
    for node in graph.nodes:
        converted.add_node(node, name=node.name, op=node.op, target=node.target)
        converted.add_edges_from((value, node) for value in node.all_input_nodes)
    return converted  # type: ignore[no-any-return]  # the stubs leave the node type of an empty DiGraph open
