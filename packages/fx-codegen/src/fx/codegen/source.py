"""A generated text with what it refers to, as one value that does not change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any


@dataclass(frozen=True)
class PythonCode:
    """The source of a graph's function, and the globals to run it with.

    Source: torch.fx reference, ``Graph.python_code``.
    """

    src: str
    """The text of one function definition."""
    globals: dict[str, Any]
    """Every name that the text takes from outside, and the object it means; nothing else."""
    name: str = "forward"
    """The function's name."""
    statements: Sequence[str] = field(default=(), repr=False)
    """The lines of the body as they were generated, before any transformer."""
    owners: Sequence[str] = field(default=(), repr=False)
    """Name of the node of each statement; comments have none."""

    @cached_property
    def lines(self) -> dict[int, str]:
        """Line of ``src`` (from 1) → name of the node that this line computes."""
        statements = [text.partition("\n")[0].strip() for text in self.statements if not text.startswith("#")]
        owner = dict(zip(statements, self.owners, strict=True))
        found = {}
        for number, line in enumerate(self.src.split("\n"), 1):
            name = owner.get(line.strip())
            if name is not None:
                found[number] = name
        return found
