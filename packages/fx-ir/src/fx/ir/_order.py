"""Order labels: which of two nodes stands first, in O(1), while nodes come and go anywhere.

Every node holds an integer; a later node holds a larger one.  A node at either end is put a wide gap away.  Between two
nodes it is put close to the newer one, as insertions mostly go on where the last one was.  When a gap is used up, the
smallest aligned range of labels around it that is sparse enough is spread: what stands before the gap to its first
quarter, what stands behind to its last, so that half of the range is free at the gap.  O(log n) amortised.

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

_GROWTH: Final = 1.6
"""A range of ``2**i`` labels may hold ``(2 / _GROWTH)**i`` nodes; any constant between 1 and 2 is correct."""


_STEP: Final = 1 << 8
"""How far from the newer neighbour a node is put in a wide gap."""

_SMALLEST: Final = 12
"""No range of fewer than ``2**_SMALLEST`` labels is spread: that would not last."""


class Ordered(Protocol):
    """A link of the list, as far as ordering is concerned."""

    _label: int
    uid: int

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
    newer = before.uid - after.uid
    if (
        newer == 1 or newer == -1
    ):  # the last two nodes: as likely as not the next goes between this one and the last
        return (low + high) >> 1
    step = min((high - low) >> 1, _STEP)
    return low + step if newer > 0 else high - step


def _spread(before: Ordered) -> None:
    """Make room behind ``before``, by relabelling the smallest sparse enough range around it."""
    label = before._label
    first = last = before
    left, right = 1, 0
    bits, capacity = _SMALLEST, (2 / _GROWTH) ** _SMALLEST
    while True:
        low = label >> bits << bits
        high = low + (1 << bits)
        while low <= first._prev._label < END:
            first = first._prev
            left += 1
        while last._next._label < high:
            last = last._next
            right += 1
        quarter = 1 << (bits - 2)
        if left + right <= capacity and quarter > 4 * max(left, right):
            break
        bits += 1
        capacity *= 2 / _GROWTH
    _assign(first, left, low, quarter // (left + 1))
    if right:
        step = quarter // (right + 1)
        _assign(before._next, right, high - quarter, step)


def _assign(link: Ordered, count: int, label: int, step: int) -> None:
    """Give ``count`` links from ``link`` on labels that grow by ``step``."""
    for _ in range(count):
        label += step
        link._label = label
        link = link._next
