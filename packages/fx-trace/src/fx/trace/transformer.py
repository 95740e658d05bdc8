"""Make a new module from a graph by running it on traced values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

import torch

from fx.codegen import GraphModule
from fx.ir import Argument, Graph, Node, Op, Target
from fx.trace.interpreter import Interpreter
from fx.trace.proxy import Proxy
from fx.trace.tracer import Tracer

__all__ = ["Transformer", "TransformerTracer"]

_OF_THE_VALUE: Final = frozenset({"example_value", "tensor_meta", "type", "val"})
_HOOKS: Final = (
    "_backward_hooks",
    "_backward_pre_hooks",
    "_forward_hooks",
    "_forward_hooks_always_called",
    "_forward_hooks_with_kwargs",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
)


class TransformerTracer(Tracer):
    """Writes the new graph. What it records while a node of the old graph runs comes from that node, and says so in its meta.

    Meta that describes a value (``val``, ``tensor_meta``) is kept only where the operation is the old one.
    """

    record_locations = False

    def __init__(self, graph: Graph, module: torch.nn.Module) -> None:
        super().__init__()
        self.graph = graph
        self.root = module
        self.source: Node | None = None
        self.submodule_paths = {}

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        """Every module is: what the graph calls, the new graph calls."""
        return True

    def create_node(
        self,
        kind: Op,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert one node that comes from the node which is being run."""
        source = self.source
        if source is None:
            return super().create_node(kind, target, args, kwargs, name, type_expr)
        is_same = source.op == kind and source.target == target
        if is_same:
            name, type_expr = name or source.name, type_expr or source.type
        node = super().create_node(kind, target, args, kwargs, name, type_expr)
        if is_same:
            node.meta = dict(source.meta)
        else:
            node.meta = {key: value for key, value in source.meta.items() if key not in _OF_THE_VALUE}
        return node


class Transformer(Interpreter):
    """Runs a graph module's graph on traced values and makes a module of what that records.

    Override ``call_function``, ``call_method`` and so on to write other operations; arguments are traced values. Node names, meta,
    annotations, defaults, code generation and the module's hooks are kept.

    Args:
        module: to be transformed; is not changed.

    Source: seed 003, ``Transformer``.
    """

    def __init__(self, module: GraphModule) -> None:
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=getattr(self.graph, "_tracer_cls", None))
        self.new_graph.set_codegen(self.graph.codegen)
        self.tracer = TransformerTracer(self.new_graph, module)

    def run_node(self, n: Node) -> Any:
        """Run one node; what it records is marked as coming from it."""
        self.tracer.source = n
        try:
            return super().run_node(n)
        finally:
            self.tracer.source = None

    def placeholder(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Make a placeholder of the same name and default."""
        return self.tracer.proxy(self.tracer.create_node("placeholder", target, args, {}))

    def get_attr(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Proxy:
        """Record the same fetch."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_function(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the same call."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def call_method(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record the same call; a method of an untraced object is called."""
        if isinstance(args[0], Proxy):
            return self.tracer.create_proxy("call_method", target, args, kwargs)
        return super().call_method(target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Let the tracer decide: it records leaf modules, which here are all, and traces through others."""
        if type(self.tracer) is TransformerTracer:
            return self.tracer.create_proxy("call_module", target, args, kwargs)
        submodule = self.fetch_attr(str(target))
        paths = cast("dict[torch.nn.Module, str]", self.tracer.submodule_paths)
        paths[submodule] = str(target)
        forward: Callable[..., Any] = submodule.forward
        return self.tracer.call_module(submodule, forward, args, dict(kwargs))

    def transform(self) -> GraphModule:
        """Run on traced values and make the new module."""
        old = self.module
        result = self.run(enable_io_processing=False)
        outputs = self.graph.find_nodes(op="output")
        if outputs:
            self.tracer.source = outputs[0]
            self.tracer.create_node("output", "output", (self.tracer.create_arg(result),), {})
            self.tracer.source = None
        new = GraphModule(old, self.new_graph, type(old).__name__)
        for hooks in _HOOKS:
            if hooks in old.__dict__:
                setattr(new, hooks, old.__dict__[hooks].copy())
        return new
