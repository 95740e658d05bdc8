"""Graphs run by ONNX Runtime."""

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch

from dynamo.eval.errors import BackendError
from fx.codegen import GraphModule
from fx.codegen.interop import to_torch
from fx.ir import Node

#: what NumPy and ONNX Runtime both hold
_DTYPES: Final = frozenset(
    {
        torch.float16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.bool,
    }
)


def compile_for_onnxruntime(gm: GraphModule, example_inputs: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """The graph as an ONNX Runtime session on the CPU.

    ONNX knows values, not memory: what writes to an input, or returns memory that something else holds too, would
    not be as in eager Python and is refused, and so are inputs that need gradients.  Results get the strides that
    they have in eager Python.

    Raises:
        BackendError: the graph cannot be run rightly, or a package is missing.
    """
    results = _results(gm)
    _refuse_what_differs(gm, example_inputs, results)
    try:
        import onnxruntime  # type: ignore[import-not-found,unused-ignore]  # an extra
    except ImportError as error:
        raise BackendError(f"{error}: install dynamo-eval[onnxruntime]") from error
    inputs = tuple(example_inputs)
    program = torch.onnx.export(to_torch(gm).eval(), inputs, dynamo=True, verbose=False)
    assert program is not None  # given no file, it is returned
    session = onnxruntime.InferenceSession(
        program.model_proto.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    places = {entry.name: index for index, entry in enumerate(program.model.graph.inputs)}
    used = [(entry.name, places[entry.name]) for entry in session.get_inputs()]

    layouts = [(fake.shape, fake.stride()) for _, fake in results]

    def run(*args: torch.Tensor) -> tuple[torch.Tensor, ...]:
        feeds = {name: args[index].detach().contiguous().numpy() for name, index in used}
        arrays = session.run(None, feeds)
        return tuple(_with_strides(array, *layout) for array, layout in zip(arrays, layouts, strict=True))

    return run


def _with_strides(array: Any, shape: Sequence[int], strides: Sequence[int]) -> torch.Tensor:
    tensor = torch.as_tensor(array)
    if tensor.stride() == strides:
        return tensor
    return torch.empty_strided(shape, strides, dtype=tensor.dtype).copy_(tensor)


def _results(gm: GraphModule) -> list[tuple[str, torch.Tensor]]:
    """Name and fake value of each result of the graph."""
    results = []
    for value in gm.graph.output_node().args[0]:  # type: ignore[union-attr]  # a tuple of nodes
        assert isinstance(value, Node)
        results.append((value.name, value.meta["example_value"]))
    return results


def _refuse_what_differs(
    gm: GraphModule, example_inputs: Sequence[torch.Tensor], results: Sequence[tuple[str, torch.Tensor]]
) -> None:
    if torch.is_grad_enabled() and any(value.requires_grad for value in example_inputs):
        raise BackendError("ONNX Runtime computes no gradients: call the function under torch.no_grad()")
    holders: dict[int, str] = {}
    for node in gm.graph.find_nodes(op="placeholder"):
        fake = node.meta["example_value"]
        if fake._version:
            raise BackendError(f"the graph writes to its input {node.name}, which ONNX cannot express")
        holders[fake.untyped_storage()._cdata] = node.name
    for name, fake in results:
        storage = fake.untyped_storage()._cdata
        if storage in holders:
            raise BackendError(f"result {name} shares memory with {holders[storage]}; ONNX would copy it")
        holders[storage] = name
    for fake in (*example_inputs, *(fake for _, fake in results)):
        if fake.dtype not in _DTYPES or fake.device.type != "cpu":
            raise BackendError(f"ONNX Runtime is not given a {fake.dtype} tensor on {fake.device} here")
