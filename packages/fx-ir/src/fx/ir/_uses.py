"""Who takes the value of a node: an ordered set, small while it is small.

``Node._users`` is ``None`` (no user), the one user itself, or a dict of them: most nodes have one user, and a dict of
one weighs 232 bytes.  :class:`Users` shows all three as the mapping that torch.fx has there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fx.ir.node import Node


class Users(Mapping["Node", None]):
    """The users of a node as a live, read-only mapping to ``None``; a node that uses it twice stands here once."""

    __slots__ = ("_node",)

    def __init__(self, node: Node) -> None:
        self._node = node

    def __getitem__(self, user: Node) -> None:
        if not uses(user, self._node):
            raise KeyError(user)

    def __contains__(self, user: object) -> bool:
        return uses(user, self._node)

    def __iter__(self) -> Iterator[Node]:
        users = self._node._users
        if users is None:
            return iter(())
        return iter(users) if isinstance(users, dict) else iter((users,))

    def __reversed__(self) -> Iterator[Node]:
        return reversed(list(self))

    def __len__(self) -> int:
        return count(self._node)

    def __bool__(self) -> bool:
        return self._node._users is not None

    def __repr__(self) -> str:
        return "{" + ", ".join(f"{user}: None" for user in self) + "}"


def uses(user: object, node: Node) -> bool:
    """Does ``user`` take the value of ``node``?"""
    users = node._users
    return user in users if isinstance(users, dict) else user is users and user is not None


def count(node: Node) -> int:
    """How many nodes take the value of ``node``."""
    users = node._users
    if users is None:
        return 0
    return len(users) if isinstance(users, dict) else 1


def add_use(node: Node, user: Node) -> None:
    """Note that ``user`` takes the value of ``node``."""
    users = node._users
    if users is None:
        node._users = user
    elif isinstance(users, dict):
        users[user] = None
    elif users is not user:
        node._users = {users: None, user: None}


def drop_use(node: Node, user: Node) -> None:
    """Note that ``user`` does not take the value of ``node`` any more."""
    users = node._users
    if users is user:
        node._users = None
    elif isinstance(users, dict):
        users.pop(user, None)
        if not users:
            node._users = None
