"""Nested arguments and results: the graph sees their leaves, the caller their structure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch.utils._pytree as pytree

from fx.codegen import PyTreeCodeGen, PyTreeInfo
from fx.ir import Graph

__all__ = ["install_pytree_codegen"]

_WRITABLE: Final = (bool, int, str, type(None))


def install_pytree_codegen(
    graph: Graph,
    call: Callable[..., Any],
    values: Mapping[str, Any],
    call_order: Sequence[str],
    parameters: Sequence[str],
    defaults: Mapping[str, Any],
) -> tuple[Callable[..., Any], list[Any]]:
    """Prepare a call of a traced function, and the code generator where arguments are nested.

    Args:
        graph: gets a code generator that flattens and rebuilds, if any parameter's value has a structure.
        call: takes all values by position.
        values: by name.
        call_order: names in the order of ``call``.
        parameters: names that are parameters of the graph, in the order of the signature; the other values are fixed.
        defaults: of parameters.

    Returns:
        A function and the flat arguments to call it with.
    """
    leaves, spec = pytree.tree_flatten(tuple([values[name] for name in parameters]))
    if all(child.is_leaf() for child in spec.children()):
        return call, [values[name] for name in call_order]
    texts = [_text(name, defaults) for name in parameters]
    codegen = PyTreeCodeGen(PyTreeInfo(texts, spec, None))
    graph.set_codegen(codegen)

    def flat_call(*flat: Any) -> list[Any]:
        nested = dict(zip(parameters, pytree.tree_unflatten(list(flat), spec), strict=True))
        result = call(*[nested[name] if name in nested else values[name] for name in call_order])
        out_leaves, out_spec = pytree.tree_flatten(result)
        codegen.pytree_info = codegen.pytree_info._replace(out_spec=out_spec)
        return out_leaves

    return flat_call, leaves


def _text(name: str, defaults: Mapping[str, Any]) -> str:
    if name in defaults and isinstance(defaults[name], _WRITABLE):
        return f"{name} = {defaults[name]!r}"
    return name
