"""Where a value is used for the last time: there its variable is set to ``None``, so that memory is given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fx.ir import Node

_KEPT: Final = frozenset({"placeholder", "output"})
"""Opcodes whose unused value is not released."""


def last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each node that uses values for the last time: these values, in the order of its arguments.

    A value that nobody uses dies where it is made, unless it is a parameter.  Works from the users of each value, of
    which there is mostly one, so arguments need not be walked.
    """
    dying: dict[Node, list[Node]] = {}
    several: list[Node] = []
    for node in nodes:
        last = node.last_user
        if last is None:
            if node.op in _KEPT:
                continue
            last = node
        if last in dying:
            dying[last].append(node)
            several.append(last)
        else:
            dying[last] = [node]
    for user in several:
        values = dying[user]
        if len(values) > 1:
            order = {node: place for place, node in enumerate([*user.all_input_nodes, user])}
            values.sort(key=order.__getitem__)
    return dying
