"""Run a graph node by node, with every step open to be overridden.

An interpreter that overrides nothing runs a plan (:mod:`fx.trace.plan`) instead of going through the methods for each
node: the results are the same, the cost is a fraction. Any overridden step makes the methods run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, ClassVar, Final, cast

import torch

from fx.ir import Argument, Graph, Node, Target
from fx.trace.errors import NodeError
from fx.trace.lowering import LEAVES
from fx.trace.plan import Plan, Step, last_uses, load, plan_of

__all__ = ["Interpreter"]

_STEPS: Final = (
    "boxed_run",
    "call_function",
    "call_method",
    "call_module",
    "fetch_args_kwargs_from_env",
    "fetch_attr",
    "get_attr",
    "map_nodes_to_values",
    "output",
    "placeholder",
    "run",
    "run_node",
)
_MISSING: Final = object()


class Interpreter:
    """Executes the graph of a module node by node; override its methods to execute otherwise.

    ``run`` calls ``run_node`` for each node, which calls the method named like the node's opcode.

    Args:
        module: supplies the graph, and the modules and attributes that it names.
        garbage_collect_values: forget values after their last use. Switch it off to look at all of them in ``env`` afterwards.
        graph: run this graph instead of the module's.

    Attributes:
        extra_traceback: add a note to an exception that says which node failed.

    Source: seed 003, ``Interpreter``.
    """

    _overrides_nothing: ClassVar[bool] = True

    def __init__(
        self, module: torch.nn.Module, garbage_collect_values: bool = True, graph: Graph | None = None
    ) -> None:
        self.module = module
        self.graph: Graph = cast("Graph", module.graph) if graph is None else graph
        self._env: dict[Node, Any] | None = {}
        self._ran: tuple[Plan, list[Any], Step | None, bool] | None = None
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.args_iter: Iterator[Any] = iter(())

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._overrides_nothing = all(getattr(cls, step) is getattr(Interpreter, step) for step in _STEPS)

    @property
    def submodules(self) -> dict[str, torch.nn.Module]:
        """All modules below ``module``, by qualified name."""
        return dict(self.module.named_modules())

    def run(
        self,
        *args: Any,
        initial_env: Mapping[Node, Any] | None = None,
        enable_io_processing: bool = True,
    ) -> Any:
        """Execute the graph.

        Args:
            *args: values of the placeholders, in order.
            initial_env: values of nodes that are known already; these are not executed.
            enable_io_processing: pass arguments and result through the graph's ``process_inputs`` and ``process_outputs``.

        Returns:
            What the output node gives; None when the graph has none.

        Raises:
            NodeError: a placeholder gets no value, or a node or attribute is missing.
        """
        if enable_io_processing:
            args = tuple(self.graph.process_inputs(*args))
        self.args_iter = iter(args)
        if self._overrides_nothing and not initial_env:
            result = self._run_plan()
        else:
            result = self._run_nodes(dict(initial_env or {}))
        if result is _MISSING:
            return None
        return self.graph.process_outputs(result) if enable_io_processing else result

    def boxed_run(self, args_list: list[Any]) -> Any:
        """Execute the graph on a list of arguments, which is emptied at once so that inputs can be freed early.

        Args:
            args_list: values of all placeholders, in order, as the graph has them (not processed).

        Raises:
            NodeError: the number of values is not that of the placeholders.
        """
        placeholders = self.graph.find_nodes(op="placeholder")
        if len(args_list) != len(placeholders):
            detail = "extra" if len(args_list) > len(placeholders) else "missing"
            raise NodeError(
                f"Interpreter.boxed_run expected {len(placeholders)} arguments for placeholders but received "
                f"{len(args_list)} ({detail} arguments)"
            )
        env = dict(zip(placeholders, args_list, strict=True))
        args_list.clear()
        result = self._run_nodes(env)
        return None if result is _MISSING else self.graph.process_outputs(result)

    # -- with methods, node by node ---------------------------------------------------------------------------------

    def _run_nodes(self, env: dict[Node, Any]) -> Any:
        self.env = env
        uses = last_uses(self.graph) if self.garbage_collect_values else {}
        for node in self.graph.nodes:
            if node not in env:
                try:
                    env[node] = self.run_node(node)
                except Exception as error:
                    self._explain(node, error)
                    raise
            if node.op == "output":
                return env[node]
            for used in uses.get(node, ()):
                env.pop(used, None)
        return _MISSING

    def run_node(self, n: Node) -> Any:
        """Execute one node, with its arguments taken from ``env``."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        run: Callable[[Target, tuple[Any, ...], dict[str, Any]], Any] = getattr(self, n.op)
        return run(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Take the next argument of ``run``; all the rest for ``*args``; the default when there is none.

        Raises:
            NodeError: there is neither.
        """
        if str(target).startswith("**"):
            rest = list(self.args_iter)
            return rest[0] if len(rest) == 1 and isinstance(rest[0], dict) else dict(rest)
        if str(target).startswith("*"):
            return list(self.args_iter)
        value = next(self.args_iter, _MISSING)
        if value is not _MISSING:
            return value
        if args:
            return args[0]
        raise NodeError(
            f"Expected positional argument for parameter {target}, but one was not passed in!", str(target)
        )

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Fetch an attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function."""
        call: Any = target
        return call(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a method of the first argument."""
        return getattr(args[0], str(target))(*args[1:], **kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a submodule."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Give the result of the graph."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """The attribute of the module that a qualified name refers to.

        Raises:
            NodeError: there is none; names the part that is missing.
        """
        value: Any = self.module
        parts = target.split(".") if target else []
        for index, part in enumerate(parts):
            try:
                value = getattr(value, part)
            except AttributeError:
                raise NodeError(
                    f"Node referenced nonexistent target {'.'.join(parts[: index + 1])}: {type(value).__name__} has no "
                    f"attribute {part!r}. Add it to the module, or correct the node's target."
                ) from None
        return value

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of ``n`` with values in place of nodes."""
        args: tuple[Any, ...] = self.map_nodes_to_values(n.args, n)
        kwargs: dict[str, Any] = self.map_nodes_to_values(n.kwargs, n) if n.kwargs else {}
        return args, kwargs

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """``args`` with values in place of nodes.

        Args:
            args: arguments of ``n``, or part of them.
            n: named in errors.

        Raises:
            NodeError: a node in ``args`` has no value yet, or not any more.
        """
        env = self.env
        try:
            if type(args) is tuple:
                return tuple(
                    [
                        env[arg]
                        if type(arg) is Node
                        else arg
                        if type(arg) in LEAVES
                        else load(arg, env.__getitem__)
                        for arg in args
                    ]
                )
            return load(args, env.__getitem__)
        except KeyError as error:
            raise NodeError(
                f"Node {n} referenced nonexistent value {error.args[0]}! Run Graph.lint() to diagnose such issues",
                n.name,
            ) from None

    # -- with a plan ------------------------------------------------------------------------------------------------

    def _run_plan(self) -> Any:
        plan = plan_of(self.graph)
        frees = self.garbage_collect_values
        slots = plan.slots.copy()
        result: Any = _MISSING
        step: Step | None = None
        try:
            for step in plan.steps:
                args = step.args(slots)
                if step.op == "call_function":
                    call = step.target
                elif step.fetch is not None:
                    call = step.fetch(self.module)
                elif step.op == "call_method":
                    call = getattr(args[0], step.target)
                    args = args[1:]
                elif step.op == "output":
                    result = slots[step.into] = args[0]
                    break
                else:
                    call = partial(getattr(self, step.op), step.target, args, {})
                    args = ()
                slots[step.into] = call(*args) if step.kwargs is None else call(*args, **step.kwargs(slots))
                if frees:
                    del args
                    for slot in step.free:
                        slots[slot] = None
        except Exception as error:
            if step is not None:
                self._explain(step.node, error)
                if isinstance(error, AttributeError) and step.fetch is not None:
                    self.fetch_attr(step.target)
            raise
        finally:
            self._env = None
            self._ran = (plan, slots, step, self.garbage_collect_values)
        return result

    @property
    def env(self) -> dict[Node, Any]:
        """Values by node: those kept so far, while running and afterwards."""
        if self._env is None:
            self._env = self._ran[0].values(*self._ran[1:]) if self._ran else {}
        return self._env

    @env.setter
    def env(self, env: dict[Node, Any]) -> None:
        self._env = env

    def _explain(self, node: Node, error: Exception) -> None:
        """Add to ``error`` which node failed, and the user's line that it was recorded from."""
        if not self.extra_traceback:
            return
        place = node.stack_trace
        if place is None and "location" in node.meta:
            place = node.meta["location"].describe()
        note = f"While executing {node.format_node()}"
        error.add_note(f"{note}\nOriginal traceback:\n{place}" if place else note)
