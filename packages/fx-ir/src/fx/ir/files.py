"""Saving graphs to files and loading them; the format is described in ``serialize/FORMAT.md``.

This module is light: ``msgspec`` and the codecs are imported when first used.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from fx.ir.graph import Graph


def dumps(graph: Graph) -> bytes:
    """The bytes of a file that holds ``graph``: nodes, names, order, identities, plain ``meta``, nested graphs.

    Entries of ``meta`` that are no plain data are left out; so are the owning module and the code generator.

    Raises:
        fx.ir.serialize.errors.UnsavableError: an argument or target cannot be held by the format; names the node.
    """
    from fx.ir.serialize.encode import encode

    return encode(graph)


def loads(data: bytes) -> Graph:
    """The graph in the bytes of a file.  Imports and runs nothing that the file names.

    Raises:
        fx.ir.serialize.errors.FileFormatError: the bytes are no graph file, or a newer one (``NewerFormatError``).
    """
    from fx.ir.serialize.decode import decode

    return decode(data)


def save(graph: Graph, file: str | os.PathLike[str] | BinaryIO) -> None:
    """Write ``graph`` to a path or an open binary file; raises as :func:`dumps`, before anything is written."""
    data = dumps(graph)
    if isinstance(file, str | os.PathLike):
        with open(file, "wb") as stream:
            stream.write(data)
    else:
        file.write(data)


def load(file: str | os.PathLike[str] | BinaryIO) -> Graph:
    """Read a graph from a path or an open binary file; raises as :func:`loads`."""
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as stream:
            return loads(stream.read())
    return loads(file.read())
