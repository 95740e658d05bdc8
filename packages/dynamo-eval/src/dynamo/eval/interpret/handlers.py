"""The one table from opcode name (in the normal form) to handler."""

from collections.abc import Mapping
from typing import Final

from dynamo.eval.interpret.ops import (
    arithmetic,
    attributes,
    blocks,
    build,
    calls,
    exceptions,
    generators,
    imports,
    jumps,
    names,
    stack,
)
from dynamo.eval.interpret.table import Handler, merge

HANDLERS: Final[Mapping[str, Handler]] = merge(
    stack.table,
    names.table,
    attributes.table,
    arithmetic.table,
    build.table,
    calls.table,
    jumps.table,
    blocks.table,
    exceptions.table,
    imports.table,
    generators.table,
)
