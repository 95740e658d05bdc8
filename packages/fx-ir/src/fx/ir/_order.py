"""Order labels: which of two nodes stands first, in O(1), while nodes come and go anywhere.

Every node holds an integer; a later node holds a larger one.  A node at either end is put a wide gap away; between
two nodes it takes the middle.  When a gap is used up, the smallest aligned range of labels around it that is sparse
enough is spread evenly: O(log n) amortised per insertion.

Source: Bender, Cole, Demaine, Farach-Colton, Zito, *Two Simplified Algorithms for Maintaining Order in a List* (2002).
"""

from __future__ import annotations

from typing import Final, Protocol, TypeVar

GAP: Final = 1 << 20
"""Distance between neighbours that were appended at an end."""

END: Final = 1 << 200
"""Label of the root, which stands behind the last node."""

ERASED: Final = END + 1
"""Label of every erased node: behind everything, so that each check of order refuses it."""

_GROWTH: Final = 1.4
"""A range of ``2**i`` labels may hold ``(2 / _GROWTH)**i`` nodes; any constant between 1 and 2 is correct."""


class Ordered(Protocol):
    """A link of the list, as far as ordering is concerned."""

    _label: int

    @property
    def _prev(self) -> Ordered: ...
    @property
    def _next(self) -> Ordered: ...


_O = TypeVar("_O", bound=Ordered)


def label_between(before: _O, after: _O) -> int:
    """A free label between two neighbours (either may be the root), making room where there is none."""
    low, high = before._label, after._label
    if high == END:
        return GAP if low == END else low + GAP
    if low == END:
        return high - GAP
    if high - low < 2:
        _spread(before)
        low, high = before._label, after._label
    return (low + high) >> 1


def _spread(node: Ordered) -> None:
    """Relabel the smallest sparse enough range around ``node``, leaving at least two free labels in each gap."""
    label = node._label
    first = last = node
    count, capacity, bits = 1, 1.0, 0
    while True:
        bits += 1
        capacity *= 2 / _GROWTH
        low = label >> bits << bits
        high = low + (1 << bits)
        while low <= first._prev._label < END:
            first = first._prev
            count += 1
        while last._next._label < high:
            last = last._next
            count += 1
        step = (1 << bits) // (count + 1)
        if count <= capacity and step >= 4:
            break
    label = low
    link = first
    for _ in range(count):
        label += step
        link._label = label
        link = link._next
