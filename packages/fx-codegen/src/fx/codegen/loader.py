"""From text to function: compiled once per text, with the lines where tracebacks, ``inspect`` and ``pdb`` find them.

The file name of a text is made from its hash, so the same text has the same name in every run.  ``linecache`` holds
the lines as long as the code object lives, tracebacks included; compiled modules are kept for the last texts only.
The names start and end with angle brackets: ``pdb`` and ``linecache`` take such names for what they are, no paths.
"""

from __future__ import annotations

import hashlib
import linecache
import weakref
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from types import CodeType
from typing import Any, Final

from fx.codegen.source import PythonCode

PREFIX: Final = "<fx.codegen "

_alive: Final[Counter[str]] = Counter()
"""File name → how many code objects of it live; a text that was compiled again has two for a while."""


def filename_of(text: str) -> str:
    """The file name under which ``text`` is compiled."""
    return f"{PREFIX}{hashlib.blake2b(text.encode(), digest_size=8).hexdigest()}>"


@lru_cache(maxsize=256)
def compiled(text: str) -> CodeType:
    """The module that defines the function of ``text``; the same object for the same text."""
    filename = filename_of(text)
    # dont_inherit: annotations must be evaluated, as TorchScript reads them.
    module = compile(text, filename, "exec", dont_inherit=True)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    for constant in module.co_consts:
        if isinstance(constant, CodeType):
            _alive[filename] += 1
            weakref.finalize(constant, _forget, filename).atexit = False
    return module


def _forget(filename: str) -> None:
    _alive[filename] -= 1
    if not _alive[filename]:
        del _alive[filename]
        linecache.cache.pop(filename, None)


def load(code: PythonCode) -> Callable[..., Any]:
    """The function that ``code`` defines; its globals are a copy of ``code.globals``."""
    scope = dict(code.globals)
    exec(compiled(code.src), scope)
    function: Callable[..., Any] = scope.pop(code.name)
    return function
