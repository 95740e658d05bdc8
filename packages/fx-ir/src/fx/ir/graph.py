"""``Graph``: a function as a list of nodes, each standing behind what it takes.

The list is doubly linked, with the root (``op`` ``"root"``) between its last and first node, so edits are O(1) and
iteration survives them.  An index from name to node is always there; one from (op, target) is built when first asked
for.  Creating a node is the hot path of every tracer and is therefore written out in one function.

Source: the torch.fx reference, section ``Graph``.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final, Literal, cast, overload

from fx.ir import _checks, _codegen, _edits
from fx.ir._args import PLAIN, map_arg
from fx.ir._default import NO_DEFAULT, is_empty
from fx.ir._immutable import EMPTY, immutable_dict
from fx.ir._index import Index
from fx.ir._lists import InsertPoint, NodeList
from fx.ir._order import END, ERASED, GAP, label_between
from fx.ir._uses import drop_use
from fx.ir.errors import ForeignNodeError, NodeInUseError, NodeNameError, NoSuchNodeError
from fx.ir.names import RESERVED, Candidate, candidate, name_of_target, target_candidate
from fx.ir.node import Node, freeze_args, freeze_kwargs, inputs
from fx.ir.types import OPS, Argument, CodeGen, Leaf, Listener, Op, Target, TransformCode

if TYPE_CHECKING:
    pass

_OPS: Final = frozenset(OPS)
_new_node: Final = Node.__new__


class Graph:
    """A function as a list of :class:`Node`: placeholders, operations, and an output.

    >>> import operator
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> doubled = graph.call_function(operator.add, (x, x))
    >>> _ = graph.output(doubled)
    >>> print(graph)
    graph():
        %x : [num_users=1] = placeholder[target=x]
        %add : [num_users=1] = call_function[target=operator.add](args = (%x, %x), kwargs = {})
        return add

    Args:
        owning_module: what ``get_attr`` and ``call_module`` targets are looked up in (usually a GraphModule).
        tracer_cls: the class of the tracer that wrote the graph; kept for who needs it, copied with the graph.
        tracer_extras: data of that tracer.
    """

    owning_module: Any | None
    """What ``get_attr`` and ``call_module`` targets are looked up in, or ``None``."""
    nested: dict[str, Graph]
    """Path → graph of the submodule there, for a graph that has no owning module (a loaded one)."""

    def __init__(
        self,
        owning_module: Any | None = None,
        tracer_cls: type[Any] | None = None,
        tracer_extras: dict[str, Any] | None = None,
    ) -> None:
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        root = self._root = Node(self, "", "root", "", (), {})
        root._label = END
        self._anchor = root
        self._behind = False
        self._len = 0
        self._created = 0
        self._names: dict[str, Node | None] = {}  # None: an erased node had the name
        self._counts: dict[str, int] = {}
        self._placeholders: dict[str, Node] = {}
        self._index: Index | None = None
        self._listeners: tuple[Listener, ...] = ()
        self._codegen: CodeGen | None = None
        self.nested: dict[str, Graph] = {}

    # -- reading --------------------------------------------------------------------------------------------------

    @property
    def nodes(self) -> NodeList:
        """The nodes in order, as a live list; see :class:`NodeList`."""
        return NodeList(self)

    def node_named(self, name: str) -> Node:
        """The node with this name, in O(1).

        Raises:
            NoSuchNodeError: there is none (now).
        """
        node = self._names.get(name)
        if node is None:
            raise NoSuchNodeError(f"there is no node named {name!r} in the graph")
        return node

    def output_node(self) -> Node:
        """The output, which is the last node.

        Raises:
            NoSuchNodeError: the last node is no output.
        """
        last = self._root._prev
        if last._op != "output":
            raise NoSuchNodeError("the last node of the graph is no output; call Graph.output")
        return last

    def nested_graph(self, path: str) -> Graph | None:
        """The graph of the submodule at the dotted ``path``, or ``None`` if that has (or is) no graph of this package."""
        found: Any = self.owning_module
        if found is None:
            return self.nested.get(path)
        for part in path.split("."):
            found = getattr(found, part, None)
        graph = found if isinstance(found, Graph) else getattr(found, "graph", None)
        return graph if isinstance(graph, Graph) else None

    def find_nodes(self, *, op: Op, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes with this opcode, and this target if one is given; from an index, not by a search.

        Args:
            sort: in the order of the graph (else in the order in which they got there).
        """
        if self._index is None:
            self._index = Index(self.nodes)
        found = self._index.find(op, target)
        return sorted(found) if sort else found

    # -- creating -------------------------------------------------------------------------------------------------

    def create_node(
        self,
        op: Op,
        target: Target,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Create a node at the insertion point (by default the end; see :meth:`inserting_before`).

        Args:
            args: positional arguments; lists and dicts in them are frozen.
            kwargs: keyword arguments, likewise.
            name: a wish; the node gets it if it is legal and free, else something like it.
            type_expr: annotation of the value.

        Raises:
            OpcodeError, TargetError: the opcode does not exist, or the target does not fit it.
            ArgumentError: ``args`` is no tuple, ``kwargs`` no dict, or a dict has a node as key.
            ForeignNodeError, ErasedNodeError, UseBeforeDefinitionError: an argument cannot be used at that place.
            PlaceholderError: the placeholder's name is taken or is no parameter name.
        """
        if op not in _OPS or not (callable(target) if op == "call_function" else isinstance(target, str)):
            _checks.operation(op, target)
        found: list[Node] = []
        frozen: tuple[Argument, ...] = ()
        if args:
            for arg in args:
                if type(arg) is Node:
                    found.append(arg)
                elif type(arg) not in PLAIN:
                    break
            else:
                frozen = args
            if frozen is not args or type(args) is not tuple:
                found.clear()
                frozen = freeze_args(args, found)
        frozen_kwargs = freeze_kwargs(kwargs, found) if kwargs else EMPTY
        if name is not None:
            wish = candidate(name)
        else:
            wish = target_candidate(target, False) if type(target) is str else name_of_target(target)
        return self._insert(op, target, frozen, frozen_kwargs, found, wish, type_expr, None)

    def _insert(
        self,
        op: Op,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: immutable_dict[str, Argument],
        found: list[Node],
        wish: Candidate,
        type_expr: Any | None,
        meta: dict[str, Any] | None,
    ) -> Node:
        """:meth:`create_node` with frozen arguments, the nodes in them, and an operation that was checked."""
        anchor = self._anchor
        if self._behind:
            before, after = anchor, anchor._next
        else:
            before, after = anchor._prev, anchor
        limit = after._label
        for value in found:
            if value._label >= limit or value.graph is not self:
                _checks.refuse(self, value, None)
        if op == "placeholder":
            parameter = _checks.placeholder(cast("str", target), self._placeholders, None)

        node = _new_node(Node)
        node.graph = self
        node.type = type_expr
        node.uid = self._created
        self._created += 1
        # names.unique, written out: this is run for every node of every trace.
        names = self._names
        name, base, number, reserved = wish
        if number is None or name in names:
            number = self._counts.get(base, 0)
            if reserved:
                number += 1
                name = f"{base}_{number}"
            while name in names:
                number += 1
                name = f"{base}_{number}"
        self._counts[base] = number
        node._name = name
        names[name] = node
        node._op = op
        node._target = target
        node._args = args
        node._kwargs = kwargs
        node._meta = meta
        node._users = node._pending = None
        node._prev = before
        node._next = after
        if limit == END and before is not after:
            node._label = before._label + GAP
        else:
            node._label = label_between(before, after)
        before._next = after._prev = node
        self._len += 1
        for value in found:
            users = value._users
            if users is None:
                value._users = node
            elif isinstance(users, dict):
                users[node] = None
            elif users is not node:
                value._users = {users: None, node: None}
        if op == "placeholder":
            self._placeholders[parameter] = node
        if self._index is not None:
            self._index.add(node)
        for listener in self._listeners:
            listener.node_created(node)
        return node

    def _insert_named(
        self,
        op: Op,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: immutable_dict[str, Argument],
        found: list[Node],
        name: str,
        type_expr: Any | None,
        meta: dict[str, Any] | None,
    ) -> Node:
        """:meth:`_insert` with exactly this name, as a file has it."""
        if not name.isidentifier() or name in RESERVED or name in self._names:
            raise NodeNameError(f"{name!r} is no free name for a node")
        return self._insert(op, target, args, kwargs, found, candidate(name), type_expr, meta)

    def placeholder(self, name: str, type_expr: Any | None = None, default_value: Leaf = NO_DEFAULT) -> Node:
        """An input of the function, with the parameter name ``name`` (``*args`` and ``**kwargs`` keep their stars).

        Args:
            default_value: the parameter's default; ``inspect.Signature.empty``, like leaving it out, says that there is
                none.

        Raises: as :meth:`create_node`.
        """
        args = () if default_value is NO_DEFAULT or is_empty(default_value) else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any | None = None) -> Node:
        """Fetch the attribute at the dotted path ``qualified_name`` of the owning module.

        Warns when there is an owning module and it has no such attribute.  Raises as :meth:`create_node`.
        """
        self._warn_if_missing(qualified_name, "get_attr")
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(
        self,
        module_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Call the submodule at the dotted path ``module_name``; ``args`` go without ``self``.

        Warns when there is an owning module and it has no such submodule.  Raises as :meth:`create_node`.
        """
        self._warn_if_missing(module_name, "call_module")
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(
        self,
        method_name: str,
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
    ) -> Node:
        """Call the method ``method_name`` of ``args[0]`` with the rest of ``args``; raises as :meth:`create_node`."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(
        self,
        the_function: Callable[..., Any],
        args: tuple[Argument, ...] | None = None,
        kwargs: dict[str, Argument] | None = None,
        type_expr: Any | None = None,
        name: str | None = None,
    ) -> Node:
        """Call ``the_function``; raises as :meth:`create_node`."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any | None = None) -> Node:
        """Return ``result`` from the function; raises as :meth:`create_node`."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def _warn_if_missing(self, path: str, op: str) -> None:
        owner = self.owning_module
        if owner is None:
            return
        for part in path.split("."):
            owner = getattr(owner, part, None)
            if owner is None:
                warnings.warn(
                    f"{op}: the owning module has no {path!r}; add it before the graph runs", stacklevel=3
                )
                return

    # -- the place of creation ------------------------------------------------------------------------------------

    def inserting_before(self, n: Node | None = None) -> InsertPoint:
        """Create in front of ``n`` from now on, or inside a ``with``; in front of the whole graph if ``n`` is None.

        Raises:
            ForeignNodeError, ErasedNodeError: ``n`` is no living node of this graph.
        """
        return self._inserting(n, n is None)

    def inserting_after(self, n: Node | None = None) -> InsertPoint:
        """Create right behind ``n`` from now on, or inside a ``with``; behind the whole graph if ``n`` is None.

        Of two nodes created so, the second stands before the first, as each is put right behind ``n``.

        Raises:
            ForeignNodeError, ErasedNodeError: ``n`` is no living node of this graph.
        """
        return self._inserting(n, n is not None)

    def _inserting(self, n: Node | None, behind: bool) -> InsertPoint:
        if n is None:
            n = self._root
        elif n.graph is not self:
            raise ForeignNodeError(
                f"node {n} belongs to another graph, so nothing can be inserted next to it", n
            )
        _checks.in_list(n)
        return InsertPoint(self, n, behind)

    # -- erasing and renaming -------------------------------------------------------------------------------------

    def erase_node(self, to_erase: Node) -> None:
        """Take a node that nobody uses out of the graph.

        An insertion point at it moves to the place that it leaves.

        Raises:
            NodeInUseError: other nodes take its value; the message names them.
            ForeignNodeError, ErasedNodeError: it is no living node of this graph.
        """
        if to_erase.graph is not self or to_erase._label >= END:
            _checks.usable(self, to_erase)
        if to_erase._users is not None:
            users = list(to_erase.users)
            named = ", ".join(map(str, users[:10])) + (", ..." if len(users) > 10 else "")
            raise NodeInUseError(
                f"node {to_erase} cannot be erased: {len(users)} nodes take its value ({named}); "
                "replace_all_uses_with another node, or erase those first",
                to_erase,
                *users,
            )
        before, after = to_erase._prev, to_erase._next
        if self._anchor is to_erase:
            self._anchor = before if self._behind else after
        args = to_erase.args if to_erase._pending is not None else to_erase._args
        for value in inputs(args, to_erase._kwargs):
            drop_use(value, to_erase)
        before._next, after._prev = after, before
        to_erase._label = ERASED
        self._len -= 1
        self._names[to_erase._name] = None
        if to_erase._op == "placeholder":
            del self._placeholders[cast("str", to_erase._target).lstrip("*")]
        if self._index is not None:
            self._index.remove(to_erase)
        for listener in self._listeners:
            listener.node_erased(to_erase)

    def _rename(self, node: Node, name: str) -> None:
        _edits.rename(self, node, name)

    def _retarget(self, node: Node, op: Op, target: Target) -> None:
        _edits.retarget(self, node, op, target)

    # -- copying --------------------------------------------------------------------------------------------------

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda node: node) -> Node:
        """Copy ``node``, of this or another graph, to the insertion point.

        Args:
            arg_transform: gives, for each node that ``node`` takes, what the copy takes instead.

        Raises: as :meth:`create_node`, and whatever ``arg_transform`` raises.
        """
        found: list[Node] = []
        given = node.args if node._pending is not None else node._args
        mapped: list[Argument] = []
        args: tuple[Argument, ...]
        for arg in given:
            if type(arg) is Node:
                new = arg_transform(arg)
                if type(new) is Node:
                    found.append(new)
                elif type(new) not in PLAIN:
                    break
                mapped.append(new)
            elif type(arg) in PLAIN:
                mapped.append(arg)
            else:
                break
        if len(mapped) == len(given):
            args = tuple(mapped)
        else:
            found.clear()
            args = freeze_args(map_arg(given, arg_transform), found)
        kwargs = freeze_kwargs(map_arg(node.kwargs, arg_transform), found) if node._kwargs else EMPTY
        meta = copy.copy(node._meta) if node._meta else None
        return self._insert(
            node._op, node._target, args, kwargs, found, candidate(node._name), node.type, meta
        )

    @overload
    def graph_copy(
        self, g: Graph, val_map: dict[Node, Argument], return_output_node: Literal[False] = False
    ) -> Argument: ...

    @overload
    def graph_copy(
        self, g: Graph, val_map: dict[Node, Argument], return_output_node: Literal[True]
    ) -> tuple[Argument, Node] | None: ...

    def graph_copy(
        self, g: Graph, val_map: dict[Node, Any], return_output_node: bool = False
    ) -> Argument | tuple[Argument, Node] | None:
        """Copy the nodes of ``g``, up to its output, to the insertion point.

        Args:
            val_map: node of ``g`` → its value here.  Nodes in it are not copied; the copied ones are added.
            return_output_node: also return the output node of ``g``.

        Returns:
            What stands here for the value that ``g`` returns, or ``None`` if ``g`` has no output.

        Raises: as :meth:`create_node`; then the nodes copied so far are erased again.
        """
        from fx.ir import _copy

        return _copy.copy_into(self, g, val_map, return_output_node)

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        """A copy that shares no node; targets, constants and the values in ``meta`` are shared, as in torch.fx."""
        from fx.ir import _copy

        return _copy.deepcopy_graph(self, {} if memo is None else memo)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        from fx.ir import _copy

        return _copy.rebuild, (type(self), _copy.flatten(self))

    # -- listening ------------------------------------------------------------------------------------------------

    def add_listener(self, listener: Listener) -> None:
        """Tell ``listener`` of every edit from now on; copies of the graph do not inherit it."""
        self._listeners = (*self._listeners, listener)

    def remove_listener(self, listener: Listener) -> None:
        """Stop telling ``listener``; nothing happens if it was not told."""
        self._listeners = tuple(other for other in self._listeners if other is not listener)

    def _tell_changed(self, node: Node, field: str) -> None:
        for listener in self._listeners:
            listener.node_changed(node, field)

    def _tell_replaced(self, old: Node, new: Node, users: Iterable[Node]) -> None:
        for listener in self._listeners:
            for user in users:
                listener.node_replaced(old, new, user)

    # -- passes ---------------------------------------------------------------------------------------------------

    def lint(self) -> None:
        """Check every invariant of the graph, and its targets against the owning module if there is one.

        Raises:
            fx.ir.lint.LintError: with every breach found.
        """
        from fx.ir.lint.check import require

        require(self)

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Erase every node that nobody takes and that has no effect, again until there is none.

        Args:
            is_impure_node: says which nodes must stay even unused; by default :meth:`Node.is_impure`.

        Returns:
            Whether anything was erased.
        """
        from fx.ir.dce import eliminate_dead_code

        return eliminate_dead_code(self, is_impure_node)

    # -- text and code --------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        from fx.ir.printing import text

        return text.format_graph(self)

    def print_tabular(self) -> None:
        """Print the nodes as a table: opcode, name, target, args, kwargs.

        Raises:
            MissingLibraryError: the library ``tabulate`` is not installed.
        """
        from fx.ir.printing import table

        print(table.format_table(self))

    @property
    def codegen(self) -> CodeGen:
        """The code generator; the installed default if none was set.

        Raises:
            MissingCodeGenError: none was set and none is installed.
        """
        if self._codegen is None:
            self._codegen = _codegen.default()
        return self._codegen

    def set_codegen(self, codegen: CodeGen) -> None:
        """Use ``codegen`` for :meth:`python_code`, :meth:`process_inputs` and :meth:`process_outputs`."""
        self._codegen = codegen

    def python_code(self, root_module: str, *, verbose: bool = False, **options: Any) -> Any:
        """The graph as Python source with its globals, made by :attr:`codegen` (for ``fx.codegen``, a PythonCode).

        Args:
            root_module: what the owning module is called in the source, usually ``self``.
            verbose: with comments that say where each operation comes from.
            options: further options of the code generator.

        Raises:
            MissingCodeGenError: no code generator is installed.
        """
        return self.codegen.python_code(self, root_module, verbose=verbose, **options)

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for these arguments of the caller; raises as :attr:`codegen`."""
        return self.codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """What the caller gets for this value of the output node; raises as :attr:`codegen`."""
        return self.codegen.process_outputs(out)

    def on_generate_code(
        self, make_transformer: Callable[[TransformCode | None], TransformCode]
    ) -> AbstractContextManager[None]:
        """Let a function rewrite the lines of generated code from now on, or inside a ``with``.

        Args:
            make_transformer: gets the function in use (or ``None``) and returns the one to use.
        """
        return _codegen.install_transformer(self.codegen, make_transformer)
