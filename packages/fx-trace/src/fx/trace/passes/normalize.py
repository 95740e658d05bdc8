"""Arguments in one form: matched to the parameters of what is called, with defaults filled in."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, cast

import torch

from fx.codegen import GraphModule
from fx.ir import ArgsKwargsPair, Node, set_argument_normalizer
from fx.trace.passes.base import PassResult

__all__ = ["normalize_arguments", "normalized_arguments", "signatures_of"]

_KINDS_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def normalized_arguments(
    node: Node,
    root: torch.nn.Module,
    arg_types: tuple[Any, ...] | None = None,
    kwarg_types: Mapping[str, Any] | None = None,
    normalize_to_only_use_kwargs: bool = False,
) -> ArgsKwargsPair | None:
    """The arguments of a ``call_function`` or ``call_module`` node, matched to the parameters of its target.

    Args:
        node: is not changed.
        root: where module targets are found.
        arg_types: types of the positional arguments, to choose among overloads.
        kwarg_types: types of the keyword arguments, likewise.
        normalize_to_only_use_kwargs: give all by keyword, where parameters allow it; else all by position but keyword-only ones.

    Returns:
        None when the parameters of the target are not known, or several overloads fit in different ways.

    Source: seed 003, ``Node.normalized_arguments``.
    """
    if node.op == "call_module":
        module = root.get_submodule(str(node.target))
        candidates = [inspect.signature(module.forward)]
    elif node.op == "call_function":
        candidates = signatures_of(cast("Callable[..., Any]", node.target))
    else:
        return None
    kwargs = dict(node.kwargs)
    bound = [b for b in (_bind(signature, node.args, kwargs) for signature in candidates) if b is not None]
    if len(bound) > 1 and arg_types is not None:
        bound = [b for b in bound if _types_fit(b, node, arg_types, kwarg_types or {})]
    forms = [_form(b, normalize_to_only_use_kwargs) for b in bound]
    if not forms or any(form != forms[0] for form in forms[1:] if arg_types is None):
        return None
    return forms[0]


def signatures_of(function: Callable[..., Any]) -> list[inspect.Signature]:
    """The ways in which ``function`` may be called: one for a Python function, one for each overload of an operator."""
    if isinstance(function, torch._ops.OpOverload):
        return _of_schemas([function._schema])
    if isinstance(function, torch._ops.OpOverloadPacket):
        overloads: Callable[[], list[str]] = function.overloads
        return _of_schemas([getattr(function, name)._schema for name in overloads()])
    try:
        return [inspect.signature(function)]
    except (TypeError, ValueError):
        pass
    find: Callable[[Callable[..., Any]], str | None] = torch.jit._builtins._find_builtin
    name = find(function)
    return _of_schemas(torch._C._jit_get_schemas_for_operator(name)) if name else []


def _of_schemas(schemas: Any) -> list[inspect.Signature]:
    found = []
    for schema in schemas:
        parameters = []
        for argument in schema.arguments:
            kind = (
                inspect.Parameter.KEYWORD_ONLY
                if argument.kwarg_only
                else inspect.Parameter.POSITIONAL_OR_KEYWORD
            )
            default = argument.default_value if argument.has_default_value() else inspect.Parameter.empty
            name = "input" if argument.name == "self" else argument.name
            parameters.append(inspect.Parameter(name, kind, default=default, annotation=str(argument.type)))
        try:
            found.append(inspect.Signature(parameters))
        except ValueError:  # a default before a parameter without: no Python call is like that
            continue
    return found


def _bind(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> inspect.BoundArguments | None:
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if kinds & {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}:
        return None
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError:
        return None
    bound.apply_defaults()
    return bound


def _form(bound: inspect.BoundArguments, only_kwargs: bool) -> ArgsKwargsPair:
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        by_keyword = parameter.kind is inspect.Parameter.KEYWORD_ONLY or (
            only_kwargs and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY
        )
        if by_keyword:
            kwargs[name] = bound.arguments[name]
        else:
            args.append(bound.arguments[name])
    return ArgsKwargsPair(tuple(args), kwargs)


_SCHEMA_TYPES: Mapping[str, tuple[type, ...]] = {
    "Tensor": (torch.Tensor,),
    "int": (int,),
    "float": (float, int),
    "number": (int, float, complex),
    "bool": (bool,),
    "str": (str,),
}


def _types_fit(
    bound: inspect.BoundArguments,
    node: Node,
    arg_types: tuple[Any, ...],
    kwarg_types: Mapping[str, Any],
) -> bool:
    names = list(bound.signature.parameters)
    given = {**dict(zip(names, arg_types, strict=False)), **kwarg_types}
    for name, kind in given.items():
        annotation = bound.signature.parameters[name].annotation
        wanted = _SCHEMA_TYPES.get(str(annotation).removeprefix("Optional[").removesuffix("]"))
        if wanted is not None and isinstance(kind, type) and not issubclass(kind, wanted):
            return False
    return True


def normalize_arguments(gm: GraphModule, only_kwargs: bool = True) -> PassResult:
    """Write the arguments of every call in normal form, where it is known; edits ``gm``."""
    changes: list[str] = []
    for node in gm.graph.nodes:
        types = tuple([_type_of(arg) for arg in node.args])
        kinds = {key: _type_of(arg) for key, arg in node.kwargs.items()}
        found = normalized_arguments(node, gm, types, kinds, only_kwargs)
        if found is None or (found.args == node.args and found.kwargs == dict(node.kwargs)):
            continue
        node.args, node.kwargs = found
        changes.append(f"normalised {node.name}")
    if changes:
        gm.recompile()
    return PassResult(gm, tuple(changes))


def _type_of(value: object) -> object:
    if isinstance(value, Node):
        return value.meta.get("type", object if value.op == "call_function" else torch.Tensor)
    return type(value)


set_argument_normalizer(normalized_arguments)
