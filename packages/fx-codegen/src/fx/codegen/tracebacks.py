"""What an error in generated code says: the node, its target, its arguments' shapes, and the user's own line.

The generated line is in the traceback already (:mod:`fx.codegen.loader` keeps it for ``linecache``).  The rest is
added as a note (PEP 678), so the error keeps its type, its arguments and its traceback.
"""

from __future__ import annotations

from types import FrameType, TracebackType
from typing import Any, Final

import torch

from fx.codegen.comments import location
from fx.codegen.loader import PREFIX, filename_of
from fx.codegen.source import PythonCode
from fx.ir import Graph, Node

_LONGEST: Final = 200


def explain(error: BaseException, graph: Graph, code: PythonCode, owner: str) -> None:
    """Add a note to ``error`` if it was raised while ``code`` ran; once for each module that it passes."""
    filename = filename_of(code.src)
    found = _last_frame(error.__traceback__, filename)
    if found is None:
        return
    frame, line = found
    name = code.lines.get(line)
    node = next((node for node in graph.nodes if node.name == name), None)
    if node is None:
        return
    text = code.src.split("\n")[line - 1].strip()
    lines = [
        f"While running node {node.format_node() or node.name} of {owner}",
        f"  generated line {line}: {text}",
    ]
    lines += [f"  {input.name}: {_shape(input, frame)}" for input in node.all_input_nodes]
    place = location(node)
    if place is not None:
        lines += [f'  File "{place.file}", line {place.line}, in {place.function}', f"    {place.code}"]
    note = "\n".join(lines)
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def _last_frame(trace: TracebackType | None, filename: str) -> tuple[FrameType, int] | None:
    found = None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == filename and filename.startswith(PREFIX):
            found = (trace.tb_frame, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _shape(node: Node, frame: FrameType) -> str:
    local = frame.f_locals
    return describe(local[node.name]) if node.name in local else "no longer at hand"


def describe(value: Any) -> str:
    """A value in a few words: dtype, shape and device of a tensor, else its class and a short ``repr``."""
    if isinstance(value, torch.Tensor):
        return f"{type(value).__name__} {str(value.dtype).removeprefix('torch.')} {tuple(value.shape)} on {value.device}"
    if isinstance(value, (list, tuple)):
        return (
            f"{type(value).__name__} of {len(value)}: [{', '.join([describe(item) for item in value[:4]])}]"
        )
    try:
        text = repr(value)
    except Exception as error:  # an object of the user's, whose repr may do anything
        text = f"<no repr: {type(error).__name__}>"
    return f"{type(value).__name__} {text if len(text) <= _LONGEST else text[:_LONGEST] + '…'}"
