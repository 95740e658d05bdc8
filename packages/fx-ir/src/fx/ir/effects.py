"""What calling a target does besides returning a value: the one place that decides purity.

Dead code elimination, common subexpressions and every other pass ask here.  Upper layers declare what their
operators do, by object (:func:`declare`, :func:`declare_call`), by method name, by class of module, or by a rule
(:func:`add_rule`).
What nobody declared is judged by Python's and PyTorch's conventions (a trailing ``_``, ``out=``, ``inplace=True``,
in-place operators) and is otherwise taken as pure, as in torch.fx; a name without its callable is taken as impure.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, TypeVar

from fx.ir._args import LEAF, PLAIN, kind_of
from fx.ir.targets import OpaqueTarget, find_target

if TYPE_CHECKING:
    from fx.ir.graph import Graph
    from fx.ir.node import Node
    from fx.ir.types import Argument

_F = TypeVar("_F", bound=Callable[..., Any])


class Effects(NamedTuple):
    """What a call does besides returning its value; the default is nothing.

    ``mutates`` holds the positions and the keywords of the arguments whose contents it changes; ``random`` says that
    it draws from a generator; ``impure`` stands for every other effect (output, global state, assertions).
    """

    impure: bool = False
    mutates: frozenset[int | str] = frozenset()
    random: bool = False

    def __bool__(self) -> bool:
        return self.impure or bool(self.mutates) or self.random


PURE: Final = Effects()
IMPURE: Final = Effects(impure=True)
RANDOM: Final = Effects(random=True)
MUTATES_FIRST: Final = Effects(mutates=frozenset({0}))

OfCall: TypeAlias = "Callable[[tuple[Argument, ...], Mapping[str, Argument]], Effects]"
"""What one call does, from its arguments; values that are not known yet are nodes."""

_FUNCTIONS: Final[dict[Callable[..., Any], Effects]] = {}
_CALLS: Final[dict[Callable[..., Any], OfCall]] = {}
_NAMES: Final[dict[str, Effects]] = {}
_METHODS: Final[dict[str, Effects]] = {}
_MODULES: Final[dict[type, Callable[[Any], Effects]]] = {}
_RULES: Final[list[Callable[[Callable[..., Any]], Effects | None]]] = []


def declare(target: Callable[..., Any] | str, effects: Effects) -> None:
    """Say what calling ``target`` does; a string is the qualified name of a callable that need not be loaded."""
    if isinstance(target, str):
        _NAMES[target] = effects
    else:
        _FUNCTIONS[target] = effects


def declare_call(target: Callable[..., Any], effects: OfCall) -> None:
    """Say what a call of ``target`` does where its arguments decide that, as ``training=`` does.

    ``effects`` is asked with the positional and the keyword arguments; what it cannot know it must assume.
    """
    _CALLS[target] = effects


def declare_method(name: str, effects: Effects) -> None:
    """Say what ``call_method`` of this name does."""
    _METHODS[name] = effects


def declare_module(cls: type, effects: Callable[[Any], Effects]) -> None:
    """Say what ``call_module`` on an instance of ``cls`` (or of a subclass) does, given the instance."""
    _MODULES[cls] = effects


def add_rule(rule: Callable[[Callable[..., Any]], Effects | None]) -> None:
    """Ask ``rule`` about callables that were not declared; it answers ``None`` for those it does not know."""
    _RULES.append(rule)


def has_side_effect(fn: _F) -> _F:
    """Declare ``fn`` impure and return it, so that it can decorate a function."""
    declare(fn, IMPURE)
    return fn


def effects_of(target: Callable[..., Any]) -> Effects:
    """What calling ``target`` does, whatever the arguments."""
    if isinstance(target, OpaqueTarget):
        return _effects_of_name(target.qualified_name)
    try:
        known = _FUNCTIONS.get(target)
    except TypeError:  # unhashable callables cannot be declared
        known = None
    if known is not None:
        return known
    for rule in _RULES:
        known = rule(target)
        if known is not None:
            return known
    name = getattr(target, "__name__", "")
    return MUTATES_FIRST if isinstance(name, str) and _is_in_place(name) else PURE


def effects_of_call(
    target: Callable[..., Any], args: tuple[Argument, ...], kwargs: Mapping[str, Argument]
) -> Effects:
    """What calling ``target`` with these arguments does."""
    try:
        of_call = _CALLS.get(target)
    except TypeError:  # unhashable callables cannot be declared
        of_call = None
    return effects_of(target) if of_call is None else of_call(args, kwargs)


def _effects_of_name(name: str) -> Effects:
    found = find_target(name)
    return _NAMES.get(name, IMPURE) if found is None else effects_of(found)


def effects_of_method(name: str) -> Effects:
    """What a ``call_method`` of this name does."""
    known = _METHODS.get(name)
    if known is None:
        return MUTATES_FIRST if _is_in_place(name) else PURE
    return known


def effects_of_module(module: object) -> Effects:
    """What calling ``module`` does: its own ``_is_impure``, or what was declared for its nearest class."""
    if getattr(module, "_is_impure", False):
        return IMPURE
    for cls in type(module).__mro__:
        if cls in _MODULES:
            return _MODULES[cls](module)
    return PURE


def effects_of_node(node: Node) -> Effects:
    """What ``node`` does besides giving its value, its arguments considered."""
    return _BY_OP[node.op](node) or (IMPURE if _runs_impure_graph(node) else PURE)


def is_impure(node: Node, impure_random: bool = True) -> bool:
    """Must ``node`` stay even if nobody takes its value?  Placeholders and outputs must.

    Args:
        impure_random: ``False`` lets draws from a random generator go.
    """
    if node.op in ("placeholder", "output"):
        return True
    effects = effects_of_node(node)
    return effects.impure or bool(effects.mutates) or (impure_random and effects.random)


def _is_in_place(name: str) -> bool:
    return len(name) > 1 and name[-1] == "_" and name[-2] != "_"


def _function_effects(node: Node) -> Effects:
    target: Any = node.target
    return effects_of_call(target, node.args, node.kwargs) or _argument_effects(node)


def _method_effects(node: Node) -> Effects:
    return effects_of_method(str(node.target)) or _argument_effects(node)


def _module_effects(node: Node) -> Effects:
    graph = node.graph
    path = str(node.target)
    owner = graph.owning_module
    if graph.nested_graph(path) is not None:
        effects = PURE  # unless a node of that graph has effects
    elif owner is None:
        return IMPURE  # what is called cannot be seen
    else:
        module = _attribute(owner, path)
        effects = IMPURE if module is None else effects_of_module(module)
    return effects or _argument_effects(node)


def _no_effects(node: Node) -> Effects:
    return PURE


_BY_OP: Final[dict[str, Callable[[Node], Effects]]] = {
    "call_function": _function_effects,
    "call_method": _method_effects,
    "call_module": _module_effects,
    "get_attr": _no_effects,
    "placeholder": _no_effects,
    "output": _no_effects,
}


def _argument_effects(node: Node) -> Effects:
    """What the arguments make the call do: write to ``out=``, or work in place."""
    kwargs = node.kwargs
    if kwargs:
        if kwargs.get("out") is not None:
            return Effects(mutates=frozenset({"out"}))
        if kwargs.get("inplace") is True:
            return MUTATES_FIRST
    return PURE


def _graphs_run_by(node: Node) -> list[Graph]:
    """The graphs that ``node`` may run: that of the module it calls, and those among its arguments."""
    if node.op not in ("call_function", "call_method", "call_module"):
        return []
    found: list[Graph | None] = []
    for value in (*node.args, *node.kwargs.values()):
        if type(value) not in PLAIN and kind_of(type(value)) == LEAF:
            found.append(_held_graph(value))
    graph = node.graph
    if graph.owning_module is not None or graph.nested:
        for value in node.all_input_nodes:
            if value.op == "get_attr":
                found.append(graph.nested_graph(str(value.target)))
        if node.op == "call_module":
            found.append(graph.nested_graph(str(node.target)))
    return [run for run in found if run is not None]


def _runs_impure_graph(node: Node) -> bool:
    """Has any node effects of the graphs that ``node`` runs, and of those that they run, each looked at once?"""
    todo = _graphs_run_by(node)
    seen: set[int] = set()
    while todo:
        graph = todo.pop()
        if id(graph) in seen:
            continue
        seen.add(id(graph))
        for inner in graph.nodes:
            effects = _BY_OP[inner.op](inner)
            if effects.impure or effects.mutates or effects.random:
                return True
            todo.extend(_graphs_run_by(inner))
    return False


def _held_graph(value: Any) -> Graph | None:
    """The graph that an argument is, or holds as a module does."""
    graph = value if hasattr(value, "nested_graph") else getattr(value, "graph", None)
    return graph if hasattr(graph, "nested_graph") else None


def _attribute(owner: object, path: str) -> object | None:
    found: object | None = owner
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


_IN_PLACE_OPERATORS: Final = (
    "iadd iand iconcat ifloordiv ilshift imatmul imod imul ior ipow irshift isub itruediv ixor setitem delitem"
).split()
_IN_PLACE_METHODS: Final = (
    "append clear discard extend insert pop popitem remove reverse setdefault sort update"
).split()
_EFFECTS_OF_METHODS: Final = (
    "backward register_hook retain_grad write writelines send throw close __next__".split()
)
_RANDOM_METHODS: Final = "bernoulli multinomial".split()
_IMPURE_BUILTINS: Final = (
    builtins.print, builtins.input, builtins.open, builtins.exec, builtins.eval, builtins.next,
    builtins.__import__, builtins.breakpoint,
)  # fmt: skip
_MUTATING_BUILTINS: Final = (builtins.setattr, builtins.delattr)


def _declare_python() -> None:
    """What the language itself does."""
    for name in _IN_PLACE_OPERATORS:
        declare(getattr(operator, name), MUTATES_FIRST)
        declare_method(f"__{name}__", MUTATES_FIRST)
    for name in ("__setattr__", "__delattr__", *_IN_PLACE_METHODS):
        declare_method(name, MUTATES_FIRST)
    for name in _EFFECTS_OF_METHODS:
        declare_method(name, IMPURE)
    for name in _RANDOM_METHODS:
        declare_method(name, RANDOM)
    for function in _IMPURE_BUILTINS:
        declare(function, IMPURE)
    for function in _MUTATING_BUILTINS:
        declare(function, MUTATES_FIRST)


_declare_python()
