"""Saying that a placeholder has no default, without importing ``inspect``."""

from __future__ import annotations

import sys
from typing import Final, final


@final
class _NoDefault:
    """Says that a placeholder has no default value."""

    def __repr__(self) -> str:
        return "NO_DEFAULT"


NO_DEFAULT: Final = _NoDefault()


def is_empty(value: object) -> bool:
    """Is it ``inspect.Signature.empty``?  Whoever has that has imported ``inspect``, which takes long."""
    inspect = sys.modules.get("inspect")
    return inspect is not None and value is inspect.Signature.empty
