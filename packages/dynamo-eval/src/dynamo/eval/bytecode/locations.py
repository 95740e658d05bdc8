"""The line table: lines and columns of code units (PEP 626, PEP 657).

Entries cover 1-8 code units. First byte 128 | form << 3 | units - 1; forms 0-9 same line with small columns, 10-12
line step 0-2, 13 line without columns, 14 everything, 15 nothing known.

Source: CPython, Objects/locations.md (InternalDocs/code_objects.md).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from .instruction import Positions

__all__ = ["encode_locations"]


def _write_unsigned(out: bytearray, value: int) -> None:
    while value >= 64:
        out.append(64 | value & 63)
        value >>= 6
    out.append(value)


def _write_signed(out: bytearray, value: int) -> None:
    _write_unsigned(out, -value << 1 | 1 if value < 0 else value << 1)


@lru_cache(maxsize=1 << 14)
def _body(step: int | None, span: int, column: int | None, end_column: int | None) -> tuple[int, bytes]:
    """Form and following bytes of an entry; memoised, since code repeats itself.

    Args:
        step: lines since the entry before, None for no line.
        span: lines from first to last.
    """
    if step is None:
        return 15, b""
    out = bytearray()
    if column is None or end_column is None:
        if not span:
            _write_signed(out, step)
            return 13, bytes(out)
    elif not span and column >= 0 and end_column >= 0:
        if step == 0 and column < 80 and 0 <= end_column - column < 16:
            return column >> 3, bytes(((column & 7) << 4 | end_column - column,))
        if 0 <= step < 3 and column < 128 and end_column < 128:
            return 10 + step, bytes((column, end_column))
    _write_signed(out, step)
    _write_unsigned(out, max(span, 0))
    _write_unsigned(out, 0 if column is None else column + 1)
    _write_unsigned(out, 0 if end_column is None else end_column + 1)
    return 14, bytes(out)


def encode_locations(first_line: int, runs: Iterable[tuple[int, Positions]]) -> bytes:
    """Write `co_linetable`.

    Args:
        first_line: `co_firstlineno`.
        runs: code units (> 0) and their place, in order.
    """
    out = bytearray()
    line = first_line
    for units, (start, end, column, end_column) in runs:
        span = 0 if start is None or end is None else end - start
        form, body = _body(None if start is None else start - line, span, column, end_column)
        line = line if start is None else start
        while units > 8:
            out.append(128 | form << 3 | 7)
            out += body
            units -= 8
            form, body = _body(None if start is None else 0, span, column, end_column)
        out.append(128 | form << 3 | units - 1)
        out += body
    return bytes(out)
