"""From a guard's name back to a source: ``Guard("self.weight", GuardSource.LOCAL, …)`` without a path.

The seed's guards carry only a name.  What can be read: names, attributes, items with literal keys, ``type(…)``.
"""

from __future__ import annotations

import ast
import builtins

from dynamo.guards.errors import GuardBuildError
from dynamo.guards.scope import GuardScope
from dynamo.guards.sources import (
    AttrSource,
    BuiltinSource,
    ClosureSource,
    GlobalSource,
    ItemSource,
    LocalSource,
    Source,
    TypeSource,
)
from dynamo.guards.sources.roots import BUILTINS, CELLS, GLOBALS


def parse_source(name: str, scope: GuardScope) -> Source:
    """The path that an expression names. Raises: GuardBuildError when it is no such expression."""
    try:
        tree = ast.parse(name, mode="eval").body
    except SyntaxError:
        raise GuardBuildError(name, "it is not an expression; give the guard its source") from None
    return _convert(tree, name, scope)


def _root(identifier: str, name: str, scope: GuardScope) -> Source:
    if identifier in scope.arg_names:
        return LocalSource(identifier)
    if identifier in scope.free_names:
        return ClosureSource(identifier)
    if identifier in scope.globals:
        return GlobalSource(identifier)
    if identifier in scope.builtins or hasattr(builtins, identifier):
        return BuiltinSource(identifier)
    raise GuardBuildError(name, f"{identifier} is no argument, free variable, global or builtin")


def _item(tree: ast.Subscript, name: str, scope: GuardScope) -> Source:
    if not isinstance(tree.slice, ast.Constant):
        raise GuardBuildError(name, "the key is not a literal; give the guard its source")
    key = tree.slice.value
    roots = {GLOBALS: GlobalSource, BUILTINS: BuiltinSource}
    if isinstance(tree.value, ast.Name) and tree.value.id in roots:
        return roots[tree.value.id](str(key))
    return ItemSource(_convert(tree.value, name, scope), key)


def _is_cell(tree: ast.expr) -> bool:
    return isinstance(tree, ast.Subscript) and isinstance(tree.value, ast.Name) and tree.value.id == CELLS


def _convert(tree: ast.expr, name: str, scope: GuardScope) -> Source:
    match tree:
        case ast.Name(id=identifier):
            return _root(identifier, name, scope)
        case ast.Attribute(value=ast.Subscript(slice=ast.Constant(value=key)) as cell) if _is_cell(cell):
            return ClosureSource(str(key))
        case ast.Attribute(value=base, attr=attr):
            return AttrSource(_convert(base, name, scope), attr)
        case ast.Subscript():
            return _item(tree, name, scope)
        case ast.Call(func=ast.Name(id="type"), args=[argument], keywords=[]):
            return TypeSource(_convert(argument, name, scope))
    raise GuardBuildError(
        name, "only names, attributes, items and type() can be read; give the guard its source"
    )
