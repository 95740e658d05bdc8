"""What ``verbose`` adds to generated code: where a node comes from, and what its value looks like."""

from __future__ import annotations

import linecache
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import torch

from fx.ir import Node
from fx.ir.printing.tensors import format_tensor

_FRAME: Final = re.compile(r'\s*File "(?P<file>.+)", line (?P<line>\d+), in (?P<function>.+)')


class Location(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str
    code: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line} in {self.function}" + (f", code: {self.code}" if self.code else "")


def location(node: Node) -> Location | None:
    """The line of the user's program that made ``node``: the innermost of ``node.stack_trace``, else ``meta["location"]``.

    What a tracer leaves under ``location`` has ``filename``, ``line`` and ``function``.
    """
    trace = node.stack_trace
    if isinstance(trace, str):
        return _innermost(trace)
    place = node.meta.get("location")
    file, line = getattr(place, "filename", None), getattr(place, "line", None)
    if not isinstance(file, str) or not isinstance(line, int):
        return None
    return Location(file, line, str(getattr(place, "function", "")), linecache.getline(file, line).strip())


def _innermost(trace: str) -> Location | None:
    lines = trace.strip().split("\n")
    for index in range(len(lines) - 1, -1, -1):
        match = _FRAME.match(lines[index])
        if match is not None:
            following = lines[index + 1].strip() if index + 1 < len(lines) else ""
            return Location(match["file"], int(match["line"]), match["function"], following)
    return None


def location_comment(node: Node) -> str:
    """The comment line above ``node``, or nothing; whatever the trace holds, it stays one comment."""
    if node.op in ("placeholder", "output"):
        return ""
    place = location(node)
    if place is None:
        return ""
    text = "".join([char if char.isprintable() else " " for char in str(place)])
    return f"# File: {text}\n"


def value_annotation(node: Node, options: Mapping[str, Any]) -> str | None:
    """Shape and dtype of a node's value, as a string literal that stands as annotation, if ``meta`` knows them."""
    meta = node.meta
    value = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
    text = _describe(value, options)
    return (
        None
        if text is None
        else repr(text).replace("'", '"')
        if "'" not in text and '"' not in text
        else repr(text)
    )


def _describe(value: Any, options: Mapping[str, Any]) -> str | None:
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return f"Sym({value})"
    if isinstance(value, (list, tuple)) and not hasattr(value, "shape"):
        parts = [_describe(item, options) for item in value]
        known = [part for part in parts if part is not None]
        return f"({', '.join(known)})" if known and len(known) == len(parts) else None
    if not isinstance(getattr(value, "dtype", None), torch.dtype):
        return None
    return format_tensor(
        value,
        stride=bool(options.get("include_stride")),
        device=bool(options.get("include_device")),
    )
