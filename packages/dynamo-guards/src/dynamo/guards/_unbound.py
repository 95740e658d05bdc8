"""The mark of an argument that has no value (a parameter that was deleted, or a cell not yet filled)."""

from __future__ import annotations

from enum import Enum
from typing import Final, final


@final
class Unbound(Enum):
    """Class of the one value ``UNBOUND``."""

    UNBOUND = "unbound"


UNBOUND: Final = Unbound.UNBOUND
