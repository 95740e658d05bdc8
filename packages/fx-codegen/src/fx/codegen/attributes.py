"""Dotted paths into modules: fetching, placing and copying what a graph refers to."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from fx.codegen.errors import MissingAttributeError
from fx.ir import Graph, Node


def targets(graph: Graph) -> dict[str, Node]:
    """Path → first node that refers to it, in the order of the nodes."""
    found: dict[str, Node] = {}
    for node in graph.nodes:
        if node.op in ("get_attr", "call_module"):
            found.setdefault(str(node.target), node)
    return found


def copy_from_module(root: nn.Module, to: nn.Module, path: str, node: Node) -> None:
    """Put what stands at ``path`` in ``root`` at the same place in ``to``; modules on the way are new and empty.

    Raises:
        MissingAttributeError: ``root`` has nothing there.
    """
    *steps, last = path.split(".")
    source: Any = root
    for step in steps:
        source = _fetch(source, step, path, node)
        known = getattr(to, step, None)
        if known is source:
            return  # the whole module was copied for another node
        if known is None:
            known = nn.Module()
            setattr(to, step, known)
        to = known
    value = _fetch(source, last, path, node)
    persistent = not isinstance(source, nn.Module) or last not in source._non_persistent_buffers_set
    place(to, last, value, persistent=persistent)


def _fetch(source: Any, step: str, path: str, node: Node) -> Any:
    try:
        return getattr(source, step)
    except AttributeError as error:
        raise MissingAttributeError(
            f"node {node.name} ({node.op}) refers to {path!r}, and {type(source).__name__} has no {step!r}",
            node,
        ) from error


def assign(to: nn.Module, path: str, value: Any) -> None:
    """Put ``value`` at ``path``, making empty modules on the way."""
    *steps, last = path.split(".")
    for step in steps:
        known = getattr(to, step, None)
        if known is None:
            known = nn.Module()
            setattr(to, step, known)
        to = known
    place(to, last, value)


def place(to: Any, name: str, value: Any, *, persistent: bool = True) -> None:
    """Set one attribute; a tensor that is no parameter becomes a buffer, so that it moves and is saved with the module."""
    if isinstance(to, nn.Module) and isinstance(value, torch.Tensor) and not isinstance(value, nn.Parameter):
        if name not in to._buffers and hasattr(to, name):
            delattr(to, name)
        to.register_buffer(name, value, persistent=persistent)
    elif isinstance(value, nn.Module) and isinstance(to, nn.Module):
        to.add_module(name, value)
    else:
        setattr(to, name, value)


def collect(root: nn.Module | dict[str, Any], graph: Graph, to: nn.Module) -> None:
    """Copy into ``to`` exactly what ``graph`` refers to in ``root``.

    Raises:
        MissingAttributeError: something is not there.
        TypeError: ``root`` is neither a module nor a dict.
    """
    wanted = targets(graph)
    if isinstance(root, nn.Module):
        for path, node in wanted.items():
            copy_from_module(root, to, path, node)
        return
    if not isinstance(root, dict):
        raise TypeError(f"root must be a Module or a dict of attributes, not {type(root).__name__}")
    for path, node in wanted.items():
        if path not in root:
            raise MissingAttributeError(
                f"node {node.name} ({node.op}) refers to {path!r}, which root lacks", node
            )
    for path in sorted(
        wanted, key=lambda path: path.count(".")
    ):  # parents first: they would wipe out children
        assign(to, path, root[path])
