"""torch functions that become one node of the graph."""

import types
from functools import cache
from typing import Any, Final, final

import torch

from dynamo.eval.ambient_state import SETTERS
from dynamo.eval.variables.base import Translator, VariableTracker
from dynamo.eval.variables.known import KnownCallableVariable
from dynamo.eval.variables.tensor import call_torch

#: namespaces whose functions are pure tensor functions, each kept as one node
NAMESPACES: Final = (
    torch, torch.functional, torch.nn.functional, torch.special, torch.linalg, torch.fft,
    torch._C._nn, torch._C._VariableFunctions,
)  # fmt: skip
#: written in Python, yet kept as one node
PYTHON_MODULES: Final = frozenset({"torch.functional", "torch.nn.functional"})
#: in those namespaces, but they touch what a graph must not: files, numpy memory, global state, handles
EXCLUDED: Final = frozenset(
    "from_numpy frombuffer from_file as_tensor asarray from_dlpack to_dlpack manual_seed seed save load compile "
    "set_grad_enabled handle_torch_function has_torch_function boolean_dispatch assert_int_or_pair "
    "resize_as_ resize_as_sparse_ set_default_dtype promote_types can_cast result_type "
    "multi_head_attention_forward get_enum".split()
)
#: also one node: the changes of ambient state that context managers put into the graph
EXTRA: Final = SETTERS


@cache
def graph_functions() -> dict[int, Any]:
    """The functions that become nodes, by identity (kept alive by the table)."""
    found: dict[int, Any] = {}
    for namespace in NAMESPACES:
        for name, value in _members(namespace):
            if name.startswith("__") or name in EXCLUDED or isinstance(value, type) or not callable(value):
                continue
            if isinstance(value, types.FunctionType):
                if value.__module__ in PYTHON_MODULES and not name.startswith("_"):
                    found[id(value)] = value
            elif isinstance(value, types.BuiltinFunctionType) and (
                value.__module__ in ("torch._C._nn", "torch._C._special", "torch._C._linalg", "torch._C._fft")
                or value is getattr(torch._C._VariableFunctions, name, None)
            ):
                found[id(value)] = value
    for value in EXTRA:
        found[id(value)] = value
    return found


def _members(namespace: Any) -> list[tuple[str, Any]]:
    """What a namespace holds. A module is not asked by `getattr`, which would import torch's lazy submodules."""
    if isinstance(namespace, types.ModuleType):
        return list(vars(namespace).items())
    return [(name, getattr(namespace, name, None)) for name in dir(namespace)]


def is_graph_function(value: Any) -> bool:
    """Whether a call of `value` can be a node."""
    return id(value) in graph_functions()


@final
class TorchVariable(KnownCallableVariable):
    """A torch function."""

    def describe(self) -> str:
        return f"torch function {getattr(self.value, '__name__', self.value)}()"

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return call_torch(tx, "call_function", self.value, args, kwargs)
