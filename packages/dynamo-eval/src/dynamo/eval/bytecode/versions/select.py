"""Picks the facts of the running Python; the only place of this package that asks for the version."""

from __future__ import annotations

import importlib
import sys
from typing import Final

from .facts import Facts

__all__ = ["FACTS"]

_MODULES: Final = {(3, 11): "v311", (3, 12): "v312", (3, 13): "v313"}


def _select() -> Facts:
    version = sys.version_info[:2]
    if version not in _MODULES:
        known = ", ".join(f"{major}.{minor}" for major, minor in _MODULES)
        raise ImportError(
            f"bytecode of CPython {version[0]}.{version[1]} is not known here, only that of {known}"
        )
    module = importlib.import_module(f"{__package__}.{_MODULES[version]}")
    facts: object = module.FACTS
    assert isinstance(facts, Facts)
    return facts


FACTS: Final = _select()
"""Encoding of the running Python."""
