"""What can be wrong with a file, or with saving one."""

from __future__ import annotations

from fx.ir.errors import GraphError


class FileError(GraphError):
    """Base of all errors of saving and loading."""


class FileFormatError(FileError, ValueError):
    """The bytes are no graph file: truncated, malformed, or with contents that make no graph."""


class NewerFormatError(FileFormatError):
    """The file was written in a newer major version of the format."""


class UnsavableError(FileError, TypeError):
    """The graph holds something that the format cannot hold; ``nodes`` says where."""
