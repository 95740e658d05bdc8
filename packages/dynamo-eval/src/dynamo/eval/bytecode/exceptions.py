"""The exception table: which handler guards which code units.

Entries of four numbers (start, size, target, depth * 2 + lasti), each a big-endian row of 6-bit groups; bit 6 says
that a group follows, bit 7 marks the first byte of an entry, for binary search.

Source: CPython, Objects/exception_handling_notes.txt.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TableEntry", "decode_exception_table", "encode_exception_table"]


class TableEntry(NamedTuple):
    """One entry; places in code units (2 bytes), `end` exclusive."""

    start: int
    end: int
    target: int
    depth: int
    lasti: bool


def decode_exception_table(table: bytes) -> list[TableEntry]:
    """Read `co_exceptiontable`."""
    numbers: list[int] = []
    value = 0
    for byte in table:
        value = value << 6 | byte & 63
        if not byte & 64:
            numbers.append(value)
            value = 0
    entries = []
    for index in range(0, len(numbers) - 3, 4):
        start, size, target, packed = numbers[index : index + 4]
        entries.append(TableEntry(start, start + size, target, packed >> 1, bool(packed & 1)))
    return entries


def _write_number(out: bytearray, value: int, first_bit: int) -> None:
    shift = max(0, (value.bit_length() - 1) // 6 * 6)
    while shift:
        out.append(first_bit | 64 | value >> shift & 63)
        first_bit = 0
        shift -= 6
    out.append(first_bit | value & 63)


def encode_exception_table(entries: list[TableEntry]) -> bytes:
    """Write `co_exceptiontable`; entries must be in order and not overlap."""
    out = bytearray()
    for start, end, target, depth, lasti in entries:
        _write_number(out, start, 128)
        _write_number(out, end - start, 0)
        _write_number(out, target, 0)
        _write_number(out, depth << 1 | lasti, 0)
    return bytes(out)
