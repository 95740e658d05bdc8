"""Where a value is used for the last time: there its variable is set to ``None``, so that memory is given back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fx.ir import Node


def last_uses(nodes: Sequence[Node]) -> dict[Node, list[Node]]:
    """For each node that uses values for the last time: these values, in the order of its arguments.

    A value that nobody uses dies where it is made, unless it is a parameter.
    """
    dying: dict[Node, list[Node]] = {}
    alive: set[Node] = set()
    for user in reversed(nodes):
        inputs = user.all_input_nodes
        if user not in alive and user.op not in ("placeholder", "output"):
            dying[user] = [*[node for node in inputs if node not in alive], user]
        elif inputs:
            last = [node for node in inputs if node not in alive]
            if last:
                dying[user] = last
        alive.update(inputs)
    return dying
