"""`explain`: what capture makes of a function: graphs, breaks with reason and line, guards in words."""

from dataclasses import dataclass, field
from types import CodeType
from typing import final

from dynamo.eval.conversion import Capture
from dynamo.eval.errors import BreakReason
from fx.codegen import GraphModule


@final
class Record:
    """An observer that keeps everything.

    Attributes:
        captures: finished captures in order.
        skips: code objects that run plainly, each with the reason.
    """

    def __init__(self) -> None:
        self.captures: list[Capture] = []
        self.skips: list[tuple[CodeType, str]] = []

    def captured(self, capture: Capture) -> None:
        """Keep a capture."""
        self.captures.append(capture)

    def skipped(self, code: CodeType, reason: str) -> None:
        """Keep a skip."""
        self.skips.append((code, reason))


@dataclass(slots=True)
class ExplainOutput:
    """What `explain` found.

    Attributes:
        graphs: the captured graphs in order.
        graph_count: their number.
        graph_break_count: captures that ended before their function did.
        op_count: torch calls in all graphs.
        break_reasons: why they ended.
        guards: for each capture its guards in words.
    """

    graphs: list[GraphModule] = field(default_factory=list)
    graph_count: int = 0
    graph_break_count: int = 0
    op_count: int = 0
    break_reasons: list[BreakReason] = field(default_factory=list)
    guards: list[list[str]] = field(default_factory=list)
    skips: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [
            f"Graph Count: {self.graph_count}",
            f"Graph Break Count: {self.graph_break_count}",
            f"Op Count: {self.op_count}",
        ]
        for number, reason in enumerate(self.break_reasons, 1):
            lines.append(f"Break {number}: {reason}")
        for number, guards in enumerate(self.guards, 1):
            lines.append(f"Guards of capture {number}:")
            lines.extend(f"  {guard}" for guard in guards)
        lines.extend(f"Plain: {skip}" for skip in self.skips)
        return "\n".join(lines)


def summarize(record: Record) -> ExplainOutput:
    """What a record holds, counted."""
    out = ExplainOutput()
    for capture in record.captures:
        graph = capture.captured.graph
        if graph is not None:
            out.graphs.append(graph)
            out.op_count += sum(node.op.startswith("call") for node in graph.graph.nodes)
        if capture.captured.reason is not None:
            out.break_reasons.append(capture.captured.reason)
        out.guards.append(guard_words(capture))
    out.graph_count = len(out.graphs)
    out.graph_break_count = len(out.break_reasons)
    out.skips = [
        f"{code.co_qualname} ({code.co_filename}:{code.co_firstlineno}): {why}" for code, why in record.skips
    ]
    return out


def guard_words(capture: Capture) -> list[str]:
    """The guards of a capture as a person reads them."""
    return list(capture.manager.words)
