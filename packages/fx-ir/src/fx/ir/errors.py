"""What can be wrong with an edit, one class each; all are :class:`GraphError`.

``GraphError`` is a ``RuntimeError``, as torch.fx raises that.  Each error holds the nodes it speaks of, and its
message names them and says what to do.  An edit that raises one of these has changed nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fx.ir.node import Node


class GraphError(RuntimeError):
    """Base of everything that this package raises on purpose."""

    nodes: tuple[Node, ...]

    def __init__(self, message: str, *nodes: Node) -> None:
        super().__init__(message)
        self.nodes = nodes


class ForeignNodeError(GraphError):
    """A node of another graph was used."""


class ErasedNodeError(GraphError):
    """A node was used that had been erased."""


class UseBeforeDefinitionError(GraphError):
    """A node would take a value that is computed after it."""


class CycleError(UseBeforeDefinitionError):
    """A node would take its own value."""


class NodeInUseError(GraphError):
    """A node cannot be erased while others take its value; ``nodes[1:]`` are its users."""


class OpcodeError(GraphError, ValueError):
    """The opcode is not one of the six."""


class TargetError(GraphError, TypeError):
    """The target does not fit the opcode."""


class ArgumentError(GraphError, TypeError):
    """Arguments have a shape that no node can hold."""


class NodeNameError(GraphError, ValueError):
    """A name is taken, or is no Python identifier."""


class PlaceholderError(NodeNameError):
    """A placeholder's name is taken by another placeholder, or is no parameter name."""


class NoSuchNodeError(GraphError, KeyError):
    """No node has the name that was asked for."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingCodeGenError(GraphError):
    """Code was asked for, and no code generator is installed."""


class MissingNormalizerError(GraphError):
    """Arguments were to be normalised, and no normaliser is installed."""


class MissingLibraryError(GraphError, ImportError):
    """An optional library or program is needed for what was asked, and is not installed."""
