"""The words of the IR: opcodes, targets, arguments, and the protocols at its seams.

Everything here is a type; nothing runs.  ``Argument`` is the recursive type of what may stand in ``Node.args``.
Upper layers put values there that this package cannot name (tensors, dtypes, devices), so the union ends in
``Leaf``: any object whose class was given to :func:`fx.ir.register_argument_type`, or that is simply carried along.

Source: the torch.fx reference, sections ``Graph`` and ``Node``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import EllipsisType
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    NamedTuple,
    Protocol,
    TypeAlias,
    Union,
    get_args,
    runtime_checkable,
)

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node

Op: TypeAlias = Literal["placeholder", "get_attr", "call_function", "call_method", "call_module", "output"]
"""The six opcodes."""

OPS: Final[tuple[Op, ...]] = get_args(Op)
"""The six opcodes, in the order in which :data:`Op` lists them."""

Target: TypeAlias = Callable[..., Any] | str
"""What a node calls or fetches: a callable for ``call_function``, a (dotted) name for the other opcodes."""

Leaf: TypeAlias = Any
"""Any object at all that stands in an argument as itself (a registered leaf type, or an opaque constant)."""

BaseArgument: TypeAlias = None | bool | int | float | complex | str | bytes | slice | range | EllipsisType
"""Plain Python values that every layer understands."""

Argument: TypeAlias = Union[
    BaseArgument, "Node", tuple["Argument", ...], Sequence["Argument"], Mapping[str, "Argument"], Leaf
]
"""What may stand in ``Node.args`` and ``Node.kwargs``; lists and dicts are frozen when they enter a node."""


class ArgsKwargsPair(NamedTuple):
    """Positional and keyword arguments of a call.

    Source: the torch.fx reference, ``Node.normalized_arguments``.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


TransformCode: TypeAlias = Callable[[list[str]], list[str]]
"""Takes the lines of a generated body, returns those to use instead."""


@runtime_checkable
class CodeGen(Protocol):
    """What :meth:`Graph.set_codegen` accepts: the object that turns a graph into Python.

    ``fx.codegen`` brings the default one.  ``copy.deepcopy`` of a graph deep-copies its code generator.
    """

    body_transformer: TransformCode | None
    """Applied to the lines of the body while code is generated; :meth:`Graph.on_generate_code` sets it."""

    def python_code(self, graph: Graph, root_module: str, *, verbose: bool = False, **options: Any) -> Any:
        """Return the source of ``graph`` and its globals; ``root_module`` names the root in it, usually ``self``."""

    def process_inputs(self, *args: Any) -> Any:
        """Turn the arguments of the caller into the values of the placeholders, in order."""

    def process_outputs(self, out: Any) -> Any:
        """Turn the value of the output node into what the caller gets."""


class ArgumentNormalizer(Protocol):
    """What :func:`fx.ir.set_argument_normalizer` takes; see :meth:`Node.normalized_arguments` for the parameters."""

    def __call__(
        self,
        node: Node,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: Mapping[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> ArgsKwargsPair | None:
        """The arguments of ``node`` in normal form, or ``None``."""


class Listener(Protocol):
    """Hears every edit of a graph, after it was made; see :meth:`Graph.add_listener`.

    A listener may read the graph and may edit it again; exceptions reach the editing caller, with the edit made.
    """

    def node_created(self, node: Node) -> None:
        """``node`` was created and stands in the graph."""

    def node_erased(self, node: Node) -> None:
        """``node`` left the graph; its op, target and arguments can still be read."""

    def node_replaced(self, old: Node, new: Node, user: Node) -> None:
        """``user`` now takes ``new`` wherever it took ``old``."""

    def node_changed(self, node: Node, field: str) -> None:
        """``field`` of ``node`` changed: ``args``, ``kwargs``, ``name``, ``op``, ``target`` or ``position``."""
