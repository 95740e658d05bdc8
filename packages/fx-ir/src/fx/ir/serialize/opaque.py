"""What stands in a loaded graph for values whose class is not there; each is saved again as it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class OpaqueLeaf:
    """A leaf argument whose class nobody registered here: its registered name and its plain data."""

    name: str
    data: Any

    def __repr__(self) -> str:
        return f"<{self.name} {self.data!r}>"


@dataclass(frozen=True)
class OpaqueType:
    """An annotation that is known by its text only."""

    text: str

    def __repr__(self) -> str:
        return self.text
