"""What ``verbose`` adds to generated code: where a node comes from, and what its value looks like."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import torch

from fx.ir import Node

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
    """The innermost line of the user's program that made ``node``, from ``node.stack_trace``."""
    trace = node.stack_trace
    if not isinstance(trace, str):
        return None
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
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is None or not isinstance(dtype, torch.dtype):
        return None
    text = f"{abbreviation(dtype)}{_sizes(shape)}"
    if options.get("include_stride"):
        stride = getattr(value, "stride", None)
        text += _sizes(stride() if callable(stride) else stride or ())
    if options.get("include_device") and getattr(value, "device", None) is not None:
        text += str(value.device)
    return text


def _sizes(sizes: Iterable[object]) -> str:
    return f"[{', '.join([str(size) for size in sizes])}]"


_ABBREVIATIONS: Final = (
    ("bfloat", "bf"), ("complex", "c"), ("float", "f"), ("quint", "qu"), ("qint", "qi"), ("uint", "u"), ("int", "i"),
    ("bool", "b8"),
)  # fmt: skip


def abbreviation(dtype: torch.dtype) -> str:
    """``f32`` for ``torch.float32``, ``b8`` for ``torch.bool``."""
    name = str(dtype).removeprefix("torch.")
    for long, short in _ABBREVIATIONS:
        if name.startswith(long):
            return short + name[len(long) :]
    return name
