"""Placeholders as the parameters of a Python function.

The kind of a parameter is in its target, as torch.fx has it (``*args``, ``**kwargs``; what stands behind ``*args``
can be passed by keyword only), or in ``node.meta["parameter_kind"]``: the name of a kind of :class:`inspect.Parameter`
(``"POSITIONAL_ONLY"``, ``"KEYWORD_ONLY"``), for what no target can say.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Final

from fx.codegen.emit.writer import Writer
from fx.codegen.errors import SignatureError
from fx.ir import Node

KIND_KEY: Final = "parameter_kind"
"""Key of ``node.meta`` under which a placeholder keeps the kind of its parameter."""

_Kind = inspect._ParameterKind
_KINDS: Final = {kind.name: kind for kind in _Kind}


def kind_of(node: Node) -> inspect._ParameterKind:
    """The kind of parameter that a placeholder is, seen alone."""
    target = str(node.target)
    if target.startswith("**"):
        return _Kind.VAR_KEYWORD
    if target.startswith("*"):
        return _Kind.VAR_POSITIONAL
    return _KINDS.get(node.meta.get(KIND_KEY, ""), _Kind.POSITIONAL_OR_KEYWORD)


def parameters(placeholders: Sequence[Node], to: Writer) -> list[str]:
    """The texts of the parameters, the markers ``/`` and ``*`` among them.

    Raises:
        SignatureError: no Python function has these parameters in this order.
    """
    found: list[str] = []
    last, last_default = _Kind.POSITIONAL_ONLY, None
    starred = False
    for node in placeholders:
        kind = kind_of(node)
        if starred and kind is _Kind.POSITIONAL_OR_KEYWORD:
            kind = _Kind.KEYWORD_ONLY
        if kind < last or (kind is last and kind in (_Kind.VAR_POSITIONAL, _Kind.VAR_KEYWORD)):
            raise SignatureError(
                f"placeholder {node.name} ({node.target}, {kind.description}) cannot stand behind a parameter that is "
                f"{last.description}: move it to the front",
                node,
            )
        if last is _Kind.POSITIONAL_ONLY and kind is not last and found:
            found.append("/")
        if kind is _Kind.KEYWORD_ONLY and not starred:
            found.append("*")
            starred = True
        starred = starred or kind is _Kind.VAR_POSITIONAL
        if kind <= _Kind.POSITIONAL_OR_KEYWORD:
            if last_default is not None and not node.args:
                raise SignatureError(
                    f"placeholder {node.name} has no default, and {last_default.name} in front of it has one: move it "
                    "to the front, or give it a default",
                    node,
                )
            last_default = node if node.args else last_default
        found.append(_parameter(node, kind, to))
        last = kind
    if last is _Kind.POSITIONAL_ONLY and found:
        found.append("/")
    return found


def _parameter(node: Node, kind: inspect._ParameterKind, to: Writer) -> str:
    stars = {_Kind.VAR_POSITIONAL: "*", _Kind.VAR_KEYWORD: "**"}.get(kind, "")
    text = f"{stars}{to.parameters[node]}"
    if node.type is not None:
        text += f" : {to.annotation(node.type)}"
    if node.args and not stars:
        text += f" = {to.value(node.args[0])}"
    return text
