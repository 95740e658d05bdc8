"""Code objects that the user asked to leave alone."""

from types import CodeType
from typing import Final

#: by id; kept alive by the table
_DISABLED: Final[dict[int, CodeType]] = {}


def mark_disabled(code: CodeType) -> None:
    """Never capture this code object."""
    _DISABLED[id(code)] = code


def is_disabled(code: CodeType) -> bool:
    """Whether the user asked that this code runs plainly."""
    return _DISABLED.get(id(code)) is code
