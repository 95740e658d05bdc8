"""Counters of capture itself; those of calls are kept by the C core (`dynamo.eval._frame.stats`)."""

from dataclasses import dataclass


@dataclass(slots=True)
class Counters:
    """How often what happened since the last reset."""

    frames: int = 0
    graphs: int = 0
    breaks: int = 0
    skips: int = 0

    def clear(self) -> None:
        """Begin again at zero."""
        self.frames = self.graphs = self.breaks = self.skips = 0


counters = Counters()
