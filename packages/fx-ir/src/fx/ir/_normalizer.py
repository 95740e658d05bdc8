"""Finding the argument normaliser: this package has none, and says what to install.

It comes from whoever called :func:`set_argument_normalizer` (``fx.trace.passes`` does when it is imported), else from the
entry-point group ``fx.normalizer``, name ``default``.
"""

from __future__ import annotations

from typing import Final

from fx.ir.errors import MissingNormalizerError
from fx.ir.types import ArgumentNormalizer

GROUP: Final = "fx.normalizer"
_known: Final[list[ArgumentNormalizer]] = []


def set_argument_normalizer(normalizer: ArgumentNormalizer) -> None:
    """Let ``normalizer`` answer :meth:`Node.normalized_arguments`."""
    _known[:] = [normalizer]


def current() -> ArgumentNormalizer:
    """The normaliser.

    Raises:
        MissingNormalizerError: none is installed.
    """
    if not _known:
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP, name="default"):
            _known[:] = [entry.load()]
            break
        else:
            raise MissingNormalizerError(
                "no argument normaliser is installed: pip install fx-trace, "
                "or give one with fx.ir.set_argument_normalizer"
            )
    return _known[0]
