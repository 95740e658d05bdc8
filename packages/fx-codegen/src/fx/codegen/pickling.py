"""Copies of a GraphModule: pickle, ``copy.copy``, ``copy.deepcopy``.

What is written is the instance's dictionary and the graph itself, so names, meta, hooks, flags and parameters that are
shared come back as they were, and nothing is traced.  The class of the instance cannot be named in a file: it is made
anew from the class that users wrote.  The code is generated again on arrival, so a file never brings source.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from fx.codegen.module import GraphModule
    from fx.codegen.source import PythonCode

    _M = TypeVar("_M", bound=GraphModule)

_CODE: Final = "_python_code"
IMPLEMENTS: Final = "_fx_implements"
"""Where the class of an instance keeps the class that users wrote."""


def new_like(cls: type[_M], class_name: str) -> _M:
    """An empty instance of ``cls`` with a class of its own, before any ``__init__``."""
    made = cls.__new__(cls)
    type(made).__name__ = class_name
    return made


def reduce(module: GraphModule) -> tuple[Any, ...]:
    """What pickle needs to build ``module`` again."""
    state = module.__dict__.copy()
    state.pop(_CODE, None)
    return new_like, (written_class(type(module)), type(module).__name__), state


def restore(module: GraphModule, state: dict[str, Any], base: Callable[[dict[str, Any]], None]) -> None:
    """Fill ``module`` with ``state``; ``base`` is ``nn.Module.__setstate__``."""
    base(state)
    module._graph.owning_module = module
    module._generate()


def deep_copy(module: _M, memo: dict[int, Any]) -> _M:
    """A copy with its own graph, parameters and submodules."""
    copied = new_like(written_class(type(module)), type(module).__name__)
    memo[id(module)] = copied
    code: PythonCode = module._python_code
    for key, value in module.__dict__.items():
        if key != _CODE:
            copied.__dict__[key] = copy.deepcopy(value, memo)
    copied._graph.owning_module = copied
    copied._install(code)
    return copied


def shallow_copy(module: _M) -> _M:
    """A copy that shares graph, parameters, buffers and submodules; adding to one does not add to the other."""
    copied = new_like(written_class(type(module)), type(module).__name__)
    code = module._python_code
    for key, value in module.__dict__.items():
        if key != _CODE:
            copied.__dict__[key] = value.copy() if isinstance(value, (dict, set)) else value
    copied._install(code)
    return copied


def written_class(cls: type[_M]) -> type[_M]:
    """The class that users wrote, for the class of an instance."""
    written: type[_M] = vars(cls).get(IMPLEMENTS, cls)
    return written
