"""What can go wrong while guards are built.  Checking never raises: a check that fails to run is a miss."""

from __future__ import annotations


class GuardError(Exception):
    """Base of all errors of this package."""


class GuardBuildError(GuardError):
    """A guard cannot be generated for a source.

    Attributes:
        source: the source's expression.
        reason: what was met, and what to do.
    """

    def __init__(self, source: str, reason: str) -> None:
        super().__init__(f"cannot guard {source}: {reason}")
        self.source = source
        self.reason = reason
