"""Our captured graphs given to backends that take a ``torch.fx.GraphModule``.

torch's compilers are written for graphs that ``torch.compile`` captured: all tensors are inputs, parameters too, and the
result is a tuple.  Ours have the same form, so that converting the graph is all there is to do.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from fx.codegen import GraphModule
from fx.codegen.interop import to_torch

Compiled = Callable[..., Any]
Backend = Callable[..., Compiled]


def for_torch_graph(backend: Backend) -> Backend:
    """A backend that converts the graph and hands it to `backend`, one written for ``torch.compile``."""

    @functools.wraps(backend)
    def converting(gm: GraphModule, example_inputs: Sequence[Any], **options: Any) -> Compiled:
        return _kept_apart(gm, backend(to_torch(gm), list(example_inputs), **options))

    return converting


def _kept_apart(gm: GraphModule, compiled: Compiled) -> Compiled:
    """`compiled`, but the graph as it is when an input that it writes to shares memory with another input.

    Compilers turn writes into new values that are copied back at the end, so that what another input sees of a write
    comes too late. They know what shared memory at capture, not what will.
    """
    inputs = gm.graph.find_nodes(op="placeholder")
    written = [place for place, node in enumerate(inputs) if node.meta.get("written")]
    if not written or len(inputs) < 2:
        return compiled

    def run(*args: Any) -> Any:
        storages = [
            value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None for value in args
        ]
        if any(storages.count(storages[place]) > 1 for place in written):
            return gm.forward(*args)
        return compiled(*args)

    return run


def torch_registered(name: str) -> Backend | None:
    """The backend that is registered with torch under `name`, made to take our graphs; None if there is none."""
    from torch._dynamo.backends.registry import list_backends, lookup_backend

    if name not in list_backends(exclude_tags=()):
        return None
    return for_torch_graph(lookup_backend(name))


def aot_eager(gm: GraphModule, example_inputs: Sequence[Any]) -> Compiled:
    """Forward and backward as traced by AOTAutograd, run node by node."""
    from torch._functorch.aot_autograd import aot_module_simplified

    compiled: Compiled = aot_module_simplified(
        to_torch(gm), list(example_inputs), fw_compiler=_boxed, bw_compiler=_boxed
    )
    return _kept_apart(gm, compiled)


def _boxed(gm: Any, example_inputs: Sequence[Any]) -> Compiled:
    """`gm` called with one list of arguments, which is emptied: so inputs can be freed while it runs."""

    def run(values: list[Any]) -> Any:
        given = tuple(values)
        values.clear()
        return gm.forward(*given)

    run._boxed_call = True  # type: ignore[attr-defined]  # by this AOTAutograd knows the calling convention
    return run


def inductor(
    gm: GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Compiled:
    """The graph compiled by Inductor.

    Args:
        mode: a mode of ``torch.compile``; its settings come first.
        options: settings of Inductor.
    """
    from torch._inductor import list_mode_options
    from torch._inductor.compile_fx import compile_fx

    settings: dict[str, Any] = {}
    if mode is not None and mode != "default":
        settings.update(list_mode_options(mode))
    settings.update(options or {})
    compiled = compile_fx(to_torch(gm), list(example_inputs), config_patches=settings or None)
    assert callable(compiled)  # the other kinds of result are asked for by settings of ahead-of-time packages
    return _kept_apart(gm, compiled)
