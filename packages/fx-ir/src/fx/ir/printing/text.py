"""Graphs as lines of text, in torch.fx's format, character for character.

A line: ``%name : type [num_users=n] = op[target=t](args = (...), kwargs = {...})``.
"""

from __future__ import annotations

import types
from typing import TYPE_CHECKING, Any

from fx.ir import _args
from fx.ir._uses import count
from fx.ir.printing.tensors import format_tensor
from fx.ir.targets import qualified_name

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node


def format_graph(graph: Graph) -> str:
    """The whole graph: a line ``graph():``, then one per node."""
    targets: dict[int, str] = {}
    lines = ["graph():"]
    for node in graph.nodes:
        target = node._target
        if isinstance(target, str):
            shown = target
        else:
            key = id(target)  # the graph keeps it alive
            known = targets.get(key)
            shown = targets[key] = format_target(target) if known is None else known
        lines.append("    " + _line(node, shown))
    return "\n".join(lines)


def format_node(
    node: Node,
    placeholder_names: list[str] | None = None,
    maybe_return_typename: list[str] | None = None,
    include_tensor_metadata: bool = False,
) -> str | None:
    """One node; see :meth:`Node.format_node`."""
    if node.op == "placeholder" and placeholder_names:
        annotation = f": {format_type(node.type)}" if node.type else ""
        placeholder_names.append(f"{node.target}{annotation}")
        return None
    if node.op == "output" and node.type and maybe_return_typename:
        maybe_return_typename[0] = f" -> {format_type(node.type)}"
    return _line(node, format_target(node.target), _tensor_type(node) if include_tensor_metadata else "")


def _tensor_type(node: Node) -> str:
    """What passes noted of the tensor that a call gives, in the place of its annotation; else nothing."""
    if node.op in ("placeholder", "get_attr", "output"):
        return ""
    meta = node.meta
    value = meta.get("val", meta.get("tensor_meta", meta.get("example_value")))
    shown = format_tensor(value, stride=True, device=True)
    return "" if shown is None else f'Tensor "{shown}"'


def _line(node: Node, target: str, annotation: str = "") -> str:
    op = node._op
    if op == "output":
        args = node.args
        return f"return {args[0]!s}" if args else "return None"
    if not annotation and node.type is not None:
        annotation = f"{format_type(node.type)} "
    head = f"%{node._name} : {annotation}[num_users={count(node)}] = {op}[target={target}]"
    if op == "placeholder":
        args = node.args
        return f"{head}(default={args[0]!s})" if args else head
    if op == "get_attr":
        return head
    kwargs = node.kwargs
    shown = format_argument(kwargs) if kwargs else "{}"
    return f"{head}(args = {_format_args(node.args)}, kwargs = {shown})"


def _format_args(args: tuple[Any, ...]) -> str:
    if len(args) == 1:
        return f"({format_argument(args[0])},)"
    return f"({', '.join([format_argument(arg) for arg in args])})"


def format_argument(value: Any) -> str:
    """An argument as printed graphs show it: nodes with ``%``, leaves by their registration or ``str``."""
    cls = type(value)
    kind = _args.KINDS.get(cls)
    if kind is None:
        kind = _args.kind_of(cls)
    if kind == _args.NODE:
        return f"%{value._name}"
    if kind == _args.LEAF:
        return str(value) if cls in _PLAIN else _format_leaf(value)
    custom = getattr(value, "_custom_fx_repr_fn", None)
    if custom is not None:
        return str(custom())
    if kind == _args.LIST:
        return f"[{', '.join([format_argument(item) for item in value])}]"
    if kind == _args.DICT:
        return f"{{{', '.join([f'{key}: {format_argument(item)}' for key, item in value.items()])}}}"
    return str(value) if kind == _args.SLICE else _format_args(value)


_PLAIN = frozenset({int, float, str, bool, type(None)})


def _format_leaf(value: object) -> str:
    registered = _args.argument_type(value)
    if registered is not None and registered.format is not None:
        return registered.format(value)
    custom = getattr(value, "_custom_fx_repr_fn", None)
    return str(value) if custom is None else str(custom())


def format_target(target: object) -> str:
    """A target as printed graphs show it: a name as it is, a callable by its qualified name."""
    return target if isinstance(target, str) else qualified_name(target)  # type: ignore[arg-type]  # callable


def format_type(annotation: object) -> str:
    """An annotation as printed graphs show it: a class by its dotted name, without ``builtins``."""
    if isinstance(annotation, type) and not isinstance(annotation, types.GenericAlias):
        if annotation.__module__ == "builtins":
            return annotation.__qualname__
        return f"{annotation.__module__}.{annotation.__qualname__}"
    if annotation is ...:
        return "..."
    if isinstance(annotation, types.FunctionType):
        return annotation.__name__
    return repr(annotation)
