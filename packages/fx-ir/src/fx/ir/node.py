"""``Node``: one operation of a graph.

A node is small (one slotted object, one argument tuple, one name) and knows its neighbours, its order label and its
users.  Every edit checks first and changes then, so that an edit that raises has changed nothing: nodes come from the
same graph, are not erased, and stand before their users.

Replacing one input of a node with many inputs does not rebuild its arguments: it is noted in ``_pending`` and done
for all at once when the arguments are next read.  So replacing n inputs one by one is linear in n.

Source: the torch.fx reference, section ``Node``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, cast, final

from fx.ir import _args, _checks, _normalizer
from fx.ir._immutable import EMPTY, immutable_dict
from fx.ir._order import END, ERASED, label_between
from fx.ir._uses import Users, add_use, drop_use, uses
from fx.ir.effects import is_impure
from fx.ir.errors import ArgumentError, GraphError
from fx.ir.printing import text
from fx.ir.types import ArgsKwargsPair, Argument, Op, Target

if TYPE_CHECKING:
    from fx.ir.graph import Graph

_SMALL: Final = 8
"""Up to so many arguments, replacing one rebuilds the tuple at once."""


@final
class Node:
    """One operation: what is called (``op``, ``target``), with what (``args``, ``kwargs``), and the value's ``name``.

    - ``placeholder``: an input of the function; ``target`` is the parameter's name, ``args`` empty or one default.
    - ``get_attr``: fetches ``target``, a dotted path, from the owning module.
    - ``call_function``: calls ``target``, a callable, with the arguments.
    - ``call_method``: calls the method named ``target`` of ``args[0]`` with the other arguments.
    - ``call_module``: calls the submodule at ``target``, a dotted path, with the arguments.
    - ``output``: returns ``args[0]``.

    Nodes are made by :meth:`Graph.create_node` and its shorthands; one made by the constructor stands in no graph's
    list, as if erased.  Nodes compare by position (``a < b``: a stands before b, O(1)) and hash by identity.
    Further attributes may be set on a node for one's own use; copies and files have only what is in ``meta``.
    """

    __slots__ = (
        "__dict__", "__weakref__", "_args", "_kwargs", "_label", "_meta", "_name", "_next", "_op", "_pending", "_prev",
        "_target", "_users", "graph", "type", "uid",
    )  # fmt: skip

    graph: Graph
    """The graph that the node belongs to, also after it was erased."""
    type: Any | None
    """The annotation of the value, as in a signature, or ``None``."""
    uid: int
    """Number of the node's creation in its graph: never changes, never given twice there."""
    _name: str
    _op: Op
    _target: Target
    _args: tuple[Argument, ...]
    _kwargs: immutable_dict[str, Argument]
    _users: dict[Node, None] | Node | None
    _prev: Node
    _next: Node
    _label: int
    _meta: dict[str, Any] | None
    _pending: dict[Node, Node] | None

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: Mapping[str, Argument],
        return_type: Any | None = None,
    ) -> None:
        self.graph = graph
        self.type = return_type
        self.uid = -1
        self._name = name
        self._op = cast("Op", op)  # "root" for the root alone
        self._target = target
        self._args = tuple(args)
        self._kwargs = immutable_dict(kwargs)
        self._users = None
        self._prev = self._next = self
        self._label = ERASED
        self._meta = None
        self._pending = None

    # -- what it is -----------------------------------------------------------------------------------------------

    @property
    def name(self) -> str:
        """The value's name: an identifier, unique in the graph.

        Assigning an identifier that is free renames the node, in O(1).

        Raises:
            NodeNameError: on assignment of a name that is taken, or is no identifier.
        """
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        _checks.in_graph(self)
        self.graph._rename(self, name)

    @property
    def op(self) -> Op:
        """The opcode.  Assigning one that does not fit the target raises (change both with :meth:`retarget`)."""
        return self._op

    @op.setter
    def op(self, op: Op) -> None:
        self.retarget(op, self._target)

    @property
    def target(self) -> Target:
        """What is called or fetched: a callable for ``call_function``, a name for all other opcodes."""
        return self._target

    @target.setter
    def target(self, target: Target) -> None:
        self.retarget(self._op, target)

    def retarget(self, op: Op, target: Target) -> None:
        """Make this node another operation on the same arguments.

        Raises:
            OpcodeError: no such opcode.
            TargetError: the target does not fit the opcode.
            PlaceholderError: another placeholder has the name ``target``.
        """
        _checks.in_graph(self)
        self.graph._retarget(self, op, target)

    @property
    def meta(self) -> dict[str, Any]:
        """Notes of passes about this node; copied, shallow, with the node."""
        meta = self._meta
        if meta is None:
            meta = self._meta = {}
        return meta

    @meta.setter
    def meta(self, meta: dict[str, Any]) -> None:
        self._meta = meta

    @property
    def stack_trace(self) -> str | None:
        """Where the user's program made this operation, innermost frame last; kept in ``meta["stack_trace"]``."""
        return None if self._meta is None else self._meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    @property
    def _erased(self) -> bool:
        return self._label >= ERASED

    # -- where it stands ------------------------------------------------------------------------------------------

    @property
    def next(self) -> Node:
        """The node behind this one; the root (``op`` is ``"root"``) behind the last."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node in front of this one; the root in front of the first."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move ``x`` to the place in front of this node.

        Raises:
            ForeignNodeError, ErasedNodeError: ``x`` is no living node of this graph.
            UseBeforeDefinitionError: there, ``x`` would stand before an input of its own, or behind a user.
        """
        _checks.in_list(self)
        if x is not self:
            self._move(x, self._prev, self)

    def append(self, x: Node) -> None:
        """Move ``x`` to the place behind this node; raises as :meth:`prepend`."""
        _checks.in_list(self)
        if x is not self:
            self._move(x, self, self._next)

    def _move(self, x: Node, before: Node, after: Node) -> None:
        _checks.usable(self.graph, x)
        if x is before or x is after:
            return
        _checks.place(x, before, after)
        x._prev._next, x._next._prev = x._next, x._prev
        x._prev, x._next = before, after
        before._next = after._prev = x
        x._label = label_between(before, after)
        self.graph._tell_changed(x, "position")

    def __lt__(self, other: Node) -> bool:
        return self._label < other._label

    def __le__(self, other: Node) -> bool:
        return self._label <= other._label

    def __gt__(self, other: Node) -> bool:
        return self._label > other._label

    def __ge__(self, other: Node) -> bool:
        return self._label >= other._label

    # -- what it takes --------------------------------------------------------------------------------------------

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments, frozen.  Assigning a tuple replaces them and keeps ``users`` right.

        Raises:
            ArgumentError: on assignment of something else than a tuple, or of a dict with a node as key.
            ForeignNodeError, ErasedNodeError, UseBeforeDefinitionError, CycleError: one of its nodes cannot be used.
        """
        if self._pending is not None:
            self._settle()
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        if self._kwargs or self._pending is not None or self._label >= END:
            self._set_arguments(args, self.kwargs)
        else:
            found: list[Node] = []
            new_args = freeze_args(args, found)
            graph, label = self.graph, self._label
            for node in found:
                if node._label >= label or node.graph is not graph:
                    _checks.refuse(graph, node, self)
            for arg in self._args:
                if type(arg) is Node:
                    drop_use(arg, self)
                elif type(arg) not in _args.PLAIN:
                    for node in _args.nodes_in(arg):
                        drop_use(node, self)
            for node in found:
                if node._users is None:
                    node._users = self
                else:
                    add_use(node, self)
            self._args = new_args
        if self.graph._listeners:
            self.graph._tell_changed(self, "args")

    @property
    def kwargs(self) -> immutable_dict[str, Argument]:
        """The keyword arguments, frozen.  Assigning a dict replaces them and keeps ``users`` right.

        Raises: as :attr:`args`.
        """
        if self._pending is not None:
            self._settle()
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: Mapping[str, Argument]) -> None:
        self._set_arguments(self.args, kwargs)
        self.graph._tell_changed(self, "kwargs")

    def _set_arguments(self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> None:
        if self._label >= END:
            _checks.in_graph(self)
        found: list[Node] = []
        new_args = freeze_args(args, found)
        new_kwargs = freeze_kwargs(kwargs, found)
        graph, label = self.graph, self._label
        for node in found:
            if node._label >= label or node.graph is not graph:
                _checks.refuse(graph, node, self)
        for node in inputs(self._args, self._kwargs) if self._pending is None else self.all_input_nodes:
            drop_use(node, self)
        for node in found:
            add_use(node, self)
        self._args, self._kwargs, self._pending = new_args, new_kwargs, None

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes in ``args`` and ``kwargs``, in order of first appearance."""
        if self._pending is not None:
            self._settle()
        return list(dict.fromkeys(inputs(self._args, self._kwargs)))

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace the positional argument at ``idx``; raises as :attr:`args`, and IndexError."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Insert a positional argument before the one at ``idx`` (``0 <= idx <= len(args)``); raises as :attr:`args`.

        Raises:
            ArgumentError: ``idx`` is outside.
        """
        args = self.args
        if not 0 <= idx <= len(args):
            raise ArgumentError(
                f"insert_arg: index {idx} of node {self} is not between 0 and {len(args)}", self
            )
        self.args = (*args[:idx], arg, *args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Set the keyword argument ``key``; raises as :attr:`kwargs`."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take ``new_input`` wherever this node takes ``old_input``; nothing happens if it takes it nowhere.

        O(1) amortised, whatever the number of arguments.

        Raises:
            ForeignNodeError, ErasedNodeError, UseBeforeDefinitionError, CycleError: ``new_input`` cannot be used here.
        """
        _checks.in_graph(self)
        if new_input._label >= self._label or new_input.graph is not self.graph:
            _checks.refuse(self.graph, new_input, self)
        if old_input is not new_input and uses(self, old_input):
            self._replace_input(old_input, new_input)
            if self.graph._listeners:
                self.graph._tell_replaced(old_input, new_input, (self,))

    def _replace_input(self, old: Node, new: Node) -> None:
        """:meth:`replace_input_with` without the checks; ``old`` is an input, ``new`` another node."""
        users = old._users
        if users is self:
            old._users = None
        else:
            drop_use(old, self)
        users = new._users
        if users is None:
            new._users = self
        elif type(users) is not Node:
            users[self] = None
        elif users is not self:
            new._users = {users: None, self: None}
        if self._pending is None and not self._kwargs:
            args = self._args
            if len(args) == 1 and args[0] is old:
                self._args = (new,)
                return
            if len(args) <= _SMALL:
                replaced: list[Argument] = []
                for arg in args:
                    if arg is old:
                        replaced.append(new)
                    elif type(arg) in _PLAIN_OR_NODE:
                        replaced.append(arg)
                    else:
                        break
                else:
                    self._args = tuple(replaced)
                    return
        pending = self._pending
        if pending is None:
            pending = self._pending = {}
        elif new in pending:  # it was replaced before and now comes back: the notes would run in a ring
            self._settle()
            pending = self._pending = {}
        pending[old] = new

    def _settle(self) -> None:
        """Write the pending replacements into the arguments."""
        pending, self._pending = self._pending, None
        if pending is None:
            return

        def current(node: Node) -> Node:
            passed: list[Node] = []
            while node in pending:
                passed.append(node)
                node = pending[node]
            for link in passed:
                pending[link] = node
            return node

        self._args = _args.map_arg(self._args, current)
        if self._kwargs:
            self._kwargs = _args.map_arg(self._kwargs, current)

    # -- who takes it ---------------------------------------------------------------------------------------------

    @property
    def users(self) -> Users:
        """The nodes that take this value, as the keys of a live read-only mapping."""
        return Users(self)

    @property
    def last_user(self) -> Node | None:
        """The user that stands last, after which nobody needs this value; ``None`` without users.  O(users)."""
        users = self._users
        return users if users is None or type(users) is Node else max(users)

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] | None = None,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Make every user of this node take ``replace_with`` instead.

        Args:
            delete_user_cb: asked for each user; those it answers ``False`` for keep this node.
            propagate_meta: copy this node's ``meta`` to ``replace_with``, whose own must be empty.

        Returns:
            The users that changed, in the order of ``users``.

        Raises:
            CycleError: ``replace_with`` is itself a user: exclude it by ``delete_user_cb=lambda user: user is not new``.
            UseBeforeDefinitionError: ``replace_with`` stands behind one of the users.
            ForeignNodeError, ErasedNodeError: ``replace_with`` is no living node of this graph.
        """
        graph = self.graph
        label = replace_with._label
        if replace_with.graph is not graph or label >= END:
            _checks.usable(graph, replace_with)
        if propagate_meta and replace_with._meta:
            raise GraphError(f"propagate_meta: node {replace_with} has meta of its own", self, replace_with)
        noted = self._users
        users = [] if noted is None else [noted] if type(noted) is Node else list(noted)
        if delete_user_cb is not None:
            users = [user for user in users if delete_user_cb(user)]
        if replace_with is not self:
            for user in users:
                if label >= user._label:
                    _checks.refuse(graph, replace_with, user)
            for user in users:
                user._replace_input(self, replace_with)
            if graph._listeners:
                graph._tell_replaced(self, replace_with, users)
        if propagate_meta:
            replace_with.meta.update(self.meta)
        return users

    # -- questions ------------------------------------------------------------------------------------------------

    def is_impure(self, impure_random: bool = True) -> bool:
        """Must this node stay even if nobody takes its value?  See :mod:`fx.ir.effects`."""
        return is_impure(self, impure_random)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """One line of text about this node, as ``str(graph)`` has it.

        Args:
            placeholder_names: if it holds something, a placeholder is appended to it and ``None`` is returned.
            maybe_return_typename: its one item becomes `` -> type`` if this is an output with a type.
            include_tensor_metadata: show dtype, sizes, strides and device of the value of a call, where ``meta`` has
                them under ``val``, ``tensor_meta`` or ``example_value``, in the place of its annotation.
        """
        return text.format_node(self, placeholder_names, maybe_return_typename, include_tensor_metadata)

    def normalized_arguments(
        self,
        root: object,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: Mapping[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments of a ``call_function`` or ``call_module``, matched to the parameters of what is called.

        What is called must be looked at for that, so this package asks a normaliser (``fx.trace`` brings one, see
        :func:`set_argument_normalizer`).

        Args:
            root: where module targets are found.
            arg_types: types of the positional arguments, to choose among overloads.
            kwarg_types: types of the keyword arguments, likewise.
            normalize_to_only_use_kwargs: give all by keyword, where parameters allow it; else all by position but
                keyword-only ones.

        Returns:
            ``None`` when the parameters are not known, or several overloads fit in different ways.

        Raises:
            MissingNormalizerError: no normaliser is installed.
        """
        normalize = _normalizer.current()
        return normalize(self, root, arg_types, kwarg_types, normalize_to_only_use_kwargs)

    def __repr__(self) -> str:
        return self._name

    def __copy__(self) -> Node:
        raise GraphError(f"node {self} cannot stand in no graph; use Graph.node_copy", self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Node:
        copy.deepcopy(self.graph, memo)
        return cast("Node", memo[id(self)])

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        return _node_of, (self.graph, self._name)


def _node_of(graph: Graph, name: str) -> Node:
    return graph.node_named(name)


def inputs(args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> Iterable[Node]:
    """The nodes in the arguments, in order, once per use."""
    found: list[Node] = []
    for arg in args:
        if type(arg) is Node:
            found.append(arg)
        elif type(arg) not in _args.PLAIN:
            found.extend(_args.nodes_in(arg))
    if kwargs:
        found.extend(_args.nodes_in(kwargs))
    return found


def freeze_args(args: tuple[Argument, ...], found: list[Node]) -> tuple[Argument, ...]:
    """The frozen positional arguments; their nodes are appended to ``found``."""
    if not isinstance(args, tuple):
        raise ArgumentError(f"args must be a tuple, not {type(args).__name__}")
    for arg in args:
        if type(arg) is Node:
            found.append(arg)
        elif type(arg) not in _args.PLAIN:
            break
    else:
        return args if type(args) is tuple else tuple(args)
    found.clear()
    return tuple([_args.freeze(arg, found) for arg in args])


def freeze_kwargs(kwargs: Mapping[str, Argument], found: list[Node]) -> immutable_dict[str, Argument]:
    """The frozen keyword arguments; their nodes are appended to ``found``."""
    if not kwargs:
        return EMPTY
    if not isinstance(kwargs, dict):
        raise ArgumentError(f"kwargs must be a dict, not {type(kwargs).__name__}")
    return _args.freeze_dict(kwargs, found)


_args.KINDS[Node] = _args.NODE
_PLAIN_OR_NODE: Final = frozenset({*_args.PLAIN, Node})
