"""What can go wrong in generated code and around it, one class each; all are :class:`CodegenError`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fx.ir import Node


class CodegenError(RuntimeError):
    """Base of everything that this package raises on purpose."""

    node: Node | None

    def __init__(self, message: str, node: Node | None = None) -> None:
        super().__init__(message)
        self.node = node


class SignatureError(CodegenError, ValueError):
    """The placeholders, in their order, are the parameters of no Python function."""

    def __init__(self, message: str, node: Node | None = None) -> None:
        CodegenError.__init__(self, message, node)


class MissingAttributeError(CodegenError, AttributeError):
    """A node refers to a name that the root module, or the dict given as root, does not have."""

    def __init__(self, message: str, node: Node | None = None) -> None:
        CodegenError.__init__(self, message, node)


class InteropError(CodegenError):
    """A graph cannot be converted without loss."""
