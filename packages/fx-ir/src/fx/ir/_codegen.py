"""Finding the code generator: this package has none, and says what to install.

The default comes from whoever called :func:`set_default_codegen` (``fx.codegen`` does when it is imported), else from
the entry-point group ``fx.codegen``, name ``default``.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from fx.ir.errors import MissingCodeGenError
from fx.ir.types import CodeGen, TransformCode

GROUP: Final = "fx.codegen"
_defaults: Final[list[Callable[[], CodeGen]]] = []


def set_default_codegen(factory: Callable[[], CodeGen]) -> None:
    """Use ``factory()`` for every graph on which no code generator is set."""
    _defaults[:] = [factory]


def default() -> CodeGen:
    """A new default code generator.

    Raises:
        MissingCodeGenError: none is installed.
    """
    if not _defaults:
        from importlib.metadata import entry_points

        for entry in entry_points(group=GROUP, name="default"):
            _defaults[:] = [entry.load()]
            break
        else:
            raise MissingCodeGenError(
                "no code generator is installed: pip install fx-codegen and import fx.codegen, "
                "or give the graph one with set_codegen"
            )
    return _defaults[0]()


class _Installed(AbstractContextManager[None]):
    """Puts an earlier transformer back at the end of a ``with``."""

    __slots__ = ("_codegen", "_earlier")

    def __init__(self, codegen: CodeGen, earlier: TransformCode | None) -> None:
        self._codegen = codegen
        self._earlier = earlier

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception: object) -> None:
        self._codegen.body_transformer = self._earlier


def install_transformer(
    codegen: CodeGen, make_transformer: Callable[[TransformCode | None], TransformCode]
) -> AbstractContextManager[None]:
    """Set what ``make_transformer`` makes of the present transformer; see :meth:`Graph.on_generate_code`."""
    earlier = codegen.body_transformer
    codegen.body_transformer = make_transformer(earlier)
    return _Installed(codegen, earlier)
