"""``from_torch`` and ``to_torch``: the same graph in the other library's classes.

Nodes are made anew, in order, with the same names, targets, arguments, types and meta.  Parameters, buffers and
modules are shared, not copied; modules that hold a graph themselves are converted too, and modules that hold such
modules are copied shallowly, so that neither side sees the other's classes.  A code generator that has no counterpart
here is carried along by :class:`TorchCodeGen`, which asks it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, overload

import torch
import torch.fx
from torch import nn
from torch.fx.graph import CodeGen as TorchBase
from torch.fx.graph import _BoxedCodeGen, _PyTreeCodeGen, _PyTreeInfo

from fx.codegen.calling import BoxedCodeGen, PyTreeCodeGen, PyTreeInfo
from fx.codegen.codegen import CodeGen
from fx.codegen.errors import InteropError
from fx.codegen.module import GraphModule
from fx.codegen.pickling import new_like
from fx.codegen.source import PythonCode
from fx.ir import Graph, Node, map_arg

_GENERATED: Final = frozenset(
    {"_graph", "_code", "_lineno_map", "_prologue_start", "_python_code", "_in_spec", "_out_spec"}
)
"""What either class keeps about its graph and makes anew."""


class TorchCodeGen(CodeGen):
    """A code generator of ``torch.fx`` at work on our graphs; ``to_torch`` gives it back."""

    def __init__(self, codegen: TorchBase) -> None:
        super().__init__()
        self.torch_codegen = codegen

    def python_code(
        self, graph: Graph, root_module: str = "self", *, verbose: bool = False, **options: Any
    ) -> PythonCode:
        """The code that torch's generator makes of the converted graph."""
        converted = _Converter().graph_to_torch(graph)
        code = converted.python_code(root_module, verbose=verbose, **options)
        return PythonCode(code.src, code.globals)

    def process_inputs(self, *args: Any) -> Any:
        """As torch's generator does it."""
        return self.torch_codegen.process_inputs(*args)

    def process_outputs(self, outputs: Any) -> Any:
        """As torch's generator does it."""
        return self.torch_codegen.process_outputs(outputs)


def _pytree_from_torch(codegen: Any) -> CodeGen:
    return PyTreeCodeGen(PyTreeInfo(*codegen.pytree_info))


def _pytree_to_torch(codegen: Any) -> TorchBase:
    return _PyTreeCodeGen(_PyTreeInfo(*codegen.pytree_info))


_FROM_TORCH: Final[dict[type[TorchBase], Callable[[Any], CodeGen]]] = {
    TorchBase: lambda codegen: CodeGen(),
    _PyTreeCodeGen: _pytree_from_torch,
    _BoxedCodeGen: lambda codegen: BoxedCodeGen(),
}
_TO_TORCH: Final[dict[type[CodeGen], Callable[[Any], TorchBase]]] = {
    CodeGen: lambda codegen: TorchBase(),
    PyTreeCodeGen: _pytree_to_torch,
    BoxedCodeGen: lambda codegen: _BoxedCodeGen(),
    TorchCodeGen: lambda codegen: codegen.torch_codegen,
}


@overload
def from_torch(value: torch.fx.GraphModule) -> GraphModule: ...
@overload
def from_torch(value: torch.fx.Graph) -> Graph: ...
def from_torch(value: torch.fx.GraphModule | torch.fx.Graph) -> GraphModule | Graph:
    """The same graph, or the same module with its graph, in our classes.

    Raises:
        InteropError: it is neither.
    """
    if isinstance(value, torch.fx.GraphModule):
        return _Converter().module_from_torch(value)
    if isinstance(value, torch.fx.Graph):
        return _Converter().graph_from_torch(value)
    raise InteropError(
        f"from_torch takes a torch.fx.GraphModule or torch.fx.Graph, not {type(value).__name__}"
    )


@overload
def to_torch(value: GraphModule) -> torch.fx.GraphModule: ...
@overload
def to_torch(value: Graph) -> torch.fx.Graph: ...
def to_torch(value: GraphModule | Graph) -> torch.fx.GraphModule | torch.fx.Graph:
    """The same graph, or the same module with its graph, in ``torch.fx``'s classes.

    Raises:
        InteropError: it is neither, or its code generator has no counterpart in ``torch.fx``.
    """
    if isinstance(value, GraphModule):
        return _Converter().module_to_torch(value)
    if isinstance(value, Graph):
        return _Converter().graph_to_torch(value)
    raise InteropError(f"to_torch takes a fx.codegen.GraphModule or fx.ir.Graph, not {type(value).__name__}")


class _Converter:
    """One conversion; remembers what it converted, so that what is shared stays shared."""

    def __init__(self) -> None:
        self._modules: dict[int, nn.Module] = {}

    # -- graphs ---------------------------------------------------------------------------------------------------

    def graph_from_torch(self, graph: torch.fx.Graph) -> Graph:
        made = Graph(tracer_cls=graph._tracer_cls, tracer_extras=graph._tracer_extras)
        nodes: dict[torch.fx.Node, Node] = {}
        for node in graph.nodes:
            mapped: Any = nodes.__getitem__  # torch's type of arguments does not know our nodes
            args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), mapped)
            copied = made.create_node(node.op, node.target, tuple(args), dict(kwargs), node.name, node.type)
            if copied.name != node.name:
                copied.name = node.name
            if node.meta:
                copied.meta = dict(node.meta)
            nodes[node] = copied
        made.set_codegen(self._codegen_from_torch(graph._codegen))
        return made

    def graph_to_torch(self, graph: Graph) -> torch.fx.Graph:
        made = torch.fx.Graph(tracer_cls=graph._tracer_cls, tracer_extras=graph._tracer_extras)
        nodes: dict[Node, torch.fx.Node] = {}
        for node in graph.nodes:
            args, kwargs = _thaw(map_arg((node.args, node.kwargs), nodes.__getitem__))
            copied = made.create_node(node.op, node.target, args, kwargs, node.name, node.type)
            if copied.name != node.name:
                copied._rename(node.name)
            copied.meta = dict(node.meta)
            nodes[node] = copied
        made._codegen = self._codegen_to_torch(graph.codegen)
        return made

    @staticmethod
    def _codegen_from_torch(codegen: TorchBase) -> CodeGen:
        make = _FROM_TORCH.get(type(codegen), TorchCodeGen)
        made = make(codegen)
        made.body_transformer = codegen._body_transformer
        return made

    @staticmethod
    def _codegen_to_torch(codegen: Any) -> TorchBase:
        make = _TO_TORCH.get(type(codegen))
        if make is None:
            raise InteropError(
                f"the code generator {type(codegen).__qualname__} has no counterpart in torch.fx: "
                "set another one with graph.set_codegen before converting"
            )
        made = make(codegen)
        made._body_transformer = codegen.body_transformer
        return made

    # -- modules --------------------------------------------------------------------------------------------------

    def module_from_torch(self, module: torch.fx.GraphModule) -> GraphModule:
        made = new_like(GraphModule, type(module).__name__)
        self._modules[id(module)] = made
        made.__dict__.update({key: value for key, value in module.__dict__.items() if key not in _GENERATED})
        made.__dict__.setdefault("meta", {})
        made._modules = self._children(module, torch.fx.GraphModule, self.module_from_torch)
        made._graph = self.graph_from_torch(module.graph)
        made._graph.owning_module = made
        made._generate()
        return made

    def module_to_torch(self, module: GraphModule) -> torch.fx.GraphModule:
        empty = torch.fx.Graph()
        empty.output(None)
        made = torch.fx.GraphModule({}, empty, type(module).__name__)
        self._modules[id(module)] = made
        made.__dict__.update({key: value for key, value in module.__dict__.items() if key not in _GENERATED})
        made._modules = self._children(module, GraphModule, self.module_to_torch)
        made.graph = self.graph_to_torch(module.graph)
        return made

    def _children(
        self, module: nn.Module, cls: type[Any], convert: Callable[[Any], nn.Module]
    ) -> dict[str, nn.Module | None]:
        """The direct submodules; those that are, or hold, instances of ``cls`` converted."""
        return {
            name: None if child is None else self._child(child, cls, convert)
            for name, child in module._modules.items()
        }

    def _child(self, child: nn.Module, cls: type[Any], convert: Callable[[Any], nn.Module]) -> nn.Module:
        if id(child) in self._modules:
            return self._modules[id(child)]
        if isinstance(child, cls):
            return convert(child)
        if not any(isinstance(module, cls) for module in child.modules()):
            return child
        copied: nn.Module = object.__new__(type(child))
        copied.__dict__ = child.__dict__.copy()
        self._modules[id(child)] = copied
        copied._modules = self._children(child, cls, convert)
        return copied


def _thaw(value: Any) -> Any:
    """Our frozen containers as plain ones, which torch.fx freezes in its own way."""
    if isinstance(value, dict):
        return {key: _thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_thaw(item) for item in value]
    if type(value) is tuple:
        return tuple([_thaw(item) for item in value])
    return value
