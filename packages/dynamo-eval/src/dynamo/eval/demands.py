"""What somebody who asks for captures wants: which backend, how whole, who is told."""

from __future__ import annotations

from types import CodeType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from dynamo.eval.backends.registry import Backend

if TYPE_CHECKING:
    from dynamo.eval.conversion import Capture


class Observer(Protocol):
    """Who wants to know what capture does."""

    def captured(self, capture: Capture) -> None:
        """A frame was captured."""

    def skipped(self, code: CodeType, reason: str) -> None:
        """A frame runs plainly from now on."""


class Demands(NamedTuple):
    """What is asked of each capture of a callback.

    Attributes:
        backend: ``(GraphModule, example inputs) → callable``.
        observer: told about each capture and each skipped frame.
        dynamic: whether sizes and integers are symbols: all, none, or (None) those that vary.
        one_graph: a frame is one graph, or the reason is raised.
    """

    backend: Backend
    observer: Observer | None
    dynamic: bool | None
    one_graph: bool
