"""Backends that compile the graph; each brings its compiler in when it is first used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from dynamo.eval.backends.registry import register_backend

if TYPE_CHECKING:
    from fx.codegen import GraphModule


@register_backend(tags=["debug"])
def aot_eager(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """Trace forward and backward ahead of time with torch's AOTAutograd, and run both as they are."""
    from dynamo.eval.interop import aot_eager

    return aot_eager(gm, example_inputs)


@register_backend
def inductor(
    gm: GraphModule,
    example_inputs: list[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile forward and backward with torch's Inductor, which needs a C++ compiler.

    Args:
        mode: a mode of ``torch.compile``, such as ``"max-autotune"``.
        options: settings of Inductor, as ``torch.compile(options=…)`` takes them.
    """
    from dynamo.eval.interop import inductor

    return inductor(gm, example_inputs, mode=mode, options=options)


@register_backend
def onnxruntime(gm: GraphModule, example_inputs: list[Any]) -> Callable[..., Any]:
    """Export the graph to ONNX and run it with ONNX Runtime: inference only.

    Needs the extra ``dynamo-eval[onnxruntime]``.
    """
    from dynamo.eval.backends.onnx import compile_for_onnxruntime

    return compile_for_onnxruntime(gm, example_inputs)
