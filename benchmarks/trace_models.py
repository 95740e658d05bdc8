"""Which models trace, and do they compute what eager does, beside torch.fx?

    python benchmarks/trace_models.py [--only NAME ...] [--explain]

Prints a Markdown table. Architectures of torch.nn come from tests/oracle; those of `transformers` and `timm` (small, random
weights) are added where these packages are installed, in an environment of their own. Each model is tried in two ways, and
the first that works counts:

- plain: ``symbolic_trace`` of a module whose parameters are the model's documented inputs, all options fixed;
- sized: a Tracer whose values carry fake tensors, so that shapes, dtypes and devices are numbers: the graph is right for inputs of
  these shapes. The same few overrides are used for both implementations.

A cell says how it was traced and how many nodes it has, and whether results, gradients and buffers are exactly those of eager, with
the same random seed, in train and eval mode; otherwise what stood in the way.
"""

from __future__ import annotations

import argparse
import copy
import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.fx
import torch.utils._pytree as pytree
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import fx.codegen
import fx.ir
import fx.trace

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.oracle.architectures import ARCHITECTURES, inputs_of


@dataclass(frozen=True)
class Implementation:
    """One of the two that are compared."""

    symbolic_trace: Callable[..., Any]
    tracer: type[Any]
    proxy: type[Any]
    graph_module: Callable[..., Any]
    map_nodes: Callable[..., Any]


IMPLEMENTATIONS = {
    "ours": Implementation(
        fx.trace.symbolic_trace, fx.trace.Tracer, fx.trace.Proxy, fx.codegen.GraphModule, fx.ir.map_aggregate
    ),
    "torch": Implementation(
        torch.fx.symbolic_trace,
        torch.fx.Tracer,
        torch.fx.Proxy,
        torch.fx.GraphModule,
        torch.fx.node.map_aggregate,
    ),
}


@dataclass(frozen=True)
class Case:
    """A model, its inputs by name, and the options that are not inputs."""

    name: str
    make: Callable[[], nn.Module]
    inputs: dict[str, torch.Tensor]
    fixed: dict[str, Any] = field(default_factory=dict)


# -- tracing with known shapes ---------------------------------------------------------------------------------------------

_CALL, _GETATTR = nn.Module.__call__, nn.Module.__getattr__


@contextmanager
def untraced() -> Iterator[None]:
    """Modules as they are without a trace."""
    before = nn.Module.__call__, nn.Module.__getattr__
    nn.Module.__call__, nn.Module.__getattr__ = _CALL, _GETATTR  # type: ignore[method-assign]
    try:
        yield
    finally:
        nn.Module.__call__, nn.Module.__getattr__ = before  # type: ignore[method-assign]


def sized_tracer(impl: Implementation, inputs: dict[str, torch.Tensor]) -> Any:
    """A tracer whose values know their shapes, dtypes and devices."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    class Sized(impl.proxy):  # type: ignore[misc, name-defined]
        @property
        def value(self) -> Any:
            return self.tracer.values[self.node]

        @property
        def shape(self) -> Any:
            return self.value.shape

        @property
        def dtype(self) -> Any:
            return self.value.dtype

        @property
        def device(self) -> Any:
            return self.value.device

        @property
        def ndim(self) -> Any:
            return self.value.ndim

        def size(self, dim: int | None = None) -> Any:
            return self.value.size() if dim is None else self.value.size(dim)

        def dim(self) -> int:
            return int(self.value.dim())

        def numel(self) -> int:
            return int(self.value.numel())

        def __len__(self) -> int:
            return len(self.value)

        def __iter__(self) -> Iterator[Any]:
            return iter([self[index] for index in range(len(self))])

    class SizedTracer(impl.tracer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.values: dict[Any, Any] = {}

        def proxy(self, node: Any) -> Any:
            return Sized(node, self)

        def create_node(self, kind: str, target: Any, args: Any, kwargs: Any, *rest: Any, **more: Any) -> Any:
            node = super().create_node(kind, target, args, kwargs, *rest, **more)
            with untraced(), mode, torch.no_grad():
                self.values[node] = self.value_of(node)
            return node

        def value_of(self, node: Any) -> Any:
            if node.op == "placeholder":
                return mode.from_tensor(inputs[node.target])
            if node.op == "output":
                return None
            if node.op == "get_attr":
                value: Any = self.root
                for part in node.target.split("."):
                    value = getattr(value, part)
                return mode.from_tensor(value) if isinstance(value, torch.Tensor) else value
            args, kwargs = impl.map_nodes(node.args, self.known), impl.map_nodes(node.kwargs, self.known)
            if node.op == "call_function":
                return node.target(*args, **kwargs)
            if node.op == "call_method":
                return getattr(args[0], node.target)(*args[1:], **kwargs)
            module = self.root.get_submodule(node.target)
            state = {**dict(module.named_parameters()), **dict(module.named_buffers())}
            fake = {name: mode.from_tensor(value) for name, value in state.items()}
            return torch.func.functional_call(module, fake, tuple(args), dict(kwargs))

        def known(self, argument: Any) -> Any:
            return self.values[argument] if isinstance(argument, (fx.ir.Node, torch.fx.Node)) else argument

        def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
            if not any(m is module for module in self.root.modules()):
                return forward(*args, **kwargs)  # a kernel in the dress of a module
            return super().call_module(m, forward, args, kwargs)

    return SizedTracer()


def sized_trace(impl: Implementation, module: nn.Module, inputs: dict[str, torch.Tensor]) -> Any:
    tracer = sized_tracer(impl, inputs)
    graph = tracer.trace(module)
    return impl.graph_module(tracer.root, graph)


# -- one model ---------------------------------------------------------------------------------------------------------------


class Program(nn.Module):
    """``model`` with its options fixed; subclasses name the inputs."""

    def __init__(self, model: nn.Module, fixed: dict[str, Any]) -> None:
        super().__init__()
        self.model, self.fixed = model, fixed


def program(case: Case) -> nn.Module:
    torch.manual_seed(0)
    names = list(case.inputs)
    namespace: dict[str, Any] = {}
    passed = ", ".join(f"{name}={name}" for name in names)
    exec(f"def forward(self, {', '.join(names)}): return self.model({passed}, **self.fixed)", namespace)
    return type("Program", (Program,), {"forward": namespace["forward"]})(case.make(), case.fixed)  # type: ignore[no-any-return]


def outcome(module: Any, inputs: dict[str, torch.Tensor]) -> list[torch.Tensor]:
    """Results, gradients and buffers of one step."""
    torch.manual_seed(1)
    result = module(**inputs)
    tensors = [leaf for leaf in pytree.tree_leaves(result) if isinstance(leaf, torch.Tensor)]
    module.zero_grad()
    loss = sum((t.float().square().sum() for t in tensors if t.requires_grad), torch.zeros(()))
    if loss.requires_grad:
        loss.backward()
    return [t.detach() for t in tensors]


def gradients_and_buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    found = {f"grad of {name}": p.grad for name, p in module.named_parameters() if p.grad is not None}
    return {**found, **dict(module.named_buffers())}


def differing(traced: Any, eager: nn.Module, inputs: dict[str, torch.Tensor]) -> str:
    """What differs from eager; empty if nothing does."""
    got, expected = outcome(traced, inputs), outcome(eager, inputs)
    if len(got) != len(expected):
        return f"{len(got)} results for {len(expected)}"
    if not all(torch.equal(a, b) for a, b in zip(got, expected, strict=True)):
        return f"results differ by {max((a - b).abs().max().item() for a, b in zip(got, expected, strict=True)):.1e}"
    ours, theirs = gradients_and_buffers(traced), gradients_and_buffers(eager)
    common = ours.keys() & theirs.keys()  # shared parameters may have kept another of their names
    wrong = [name for name in sorted(common) if not torch.equal(ours[name], theirs[name])]
    return f"{wrong[0]} and {len(wrong) - 1} more differ" if wrong else ""


WAYS: dict[str, Callable[[Implementation, nn.Module, dict[str, torch.Tensor]], Any]] = {
    "plain": lambda impl, module, inputs: impl.symbolic_trace(module),
    "sized": sized_trace,
}


def attempt(case: Case, impl: Implementation, explain: bool) -> str:
    """The cell of a model: how it was traced, or what stood in the way."""
    reason = ""
    for way, trace in WAYS.items():
        found = []
        for training in (True, False):
            module = program(case).train(training)
            eager = copy.deepcopy(module)
            try:
                traced = trace(impl, module, case.inputs)
                found.append(differing(traced, eager, case.inputs))
            except Exception as error:  # whatever a model or a tracer raises is an answer here
                reason = f"{type(error).__name__}: {str(error).splitlines()[0][:90] if str(error) else ''}"
                if explain:
                    place = str(error).strip().splitlines()[-1:]
                    print(f"<!-- {case.name}, {way}: {reason} {' '.join(place)} -->")
                break
        else:
            if not any(found):
                return f"{way}, {len(traced.graph.nodes)} nodes"
            reason = f"{way}, but in training {found[0] or 'exact'}, in eval {found[1] or 'exact'}"
    return reason.replace("|", "/")


# -- the models --------------------------------------------------------------------------------------------------------------


def of_torch() -> Iterator[Case]:
    for name, make in ARCHITECTURES.items():
        yield Case(name, make, inputs_of(name))


def of_transformers() -> Iterator[Case]:
    import transformers as tf

    draw = torch.Generator().manual_seed(3)
    tokens = {"input_ids": torch.randint(3, 99, (2, 7), generator=draw)}
    masked = {**tokens, "attention_mask": torch.ones(2, 7, dtype=torch.long)}
    image = {"pixel_values": torch.randn(2, 3, 32, 32, generator=draw)}
    width = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    text = {**width, "vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    patches = {**width, "image_size": 32, "patch_size": 8}
    vocabulary = {"vocab_size": 99, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    two = {"encoder_layers": 2, "decoder_layers": 2, "encoder_ffn_dim": 64, "decoder_ffn_dim": 64}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    plain, uncached = {"return_dict": False}, {"return_dict": False, "use_cache": False}
    both = {**tokens, "decoder_input_ids": tokens["input_ids"]}
    table: list[tuple[str, dict[str, Any], dict[str, torch.Tensor], dict[str, Any]]] = [
        ("Bert", text, tokens, plain),
        ("Bert", text, masked, plain),
        ("Roberta", text, tokens, plain),
        (
            "DistilBert",
            {**vocabulary, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
            tokens,
            plain,
        ),
        ("Albert", {**text, "embedding_size": 16}, tokens, plain),
        ("Electra", {**text, "embedding_size": 16}, tokens, plain),
        (
            "GPT2",
            {"vocab_size": 99, "bos_token_id": 1, "eos_token_id": 2, "n_embd": 32, "n_layer": 2, "n_head": 4},
            tokens,
            uncached,
        ),
        ("GPTNeoX", text, tokens, uncached),
        ("Llama", text, tokens, uncached),
        ("Mistral", {**text, "num_key_value_heads": 2}, tokens, uncached),
        ("Qwen2", {**text, "num_key_value_heads": 2}, tokens, uncached),
        (
            "T5",
            {**vocabulary, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
            both,
            uncached,
        ),
        (
            "Bart",
            {**vocabulary, **two, **heads, "d_model": 32, "max_position_embeddings": 64},
            both,
            uncached,
        ),
        ("ViT", patches, image, plain),
        ("DeiT", patches, image, plain),
        ("Beit", {**patches, "vocab_size": 99}, image, plain),
        ("CLIPVision", patches, image, plain),
        (
            "Swin",
            {
                "image_size": 32,
                "patch_size": 4,
                "embed_dim": 16,
                "depths": [1, 1],
                "num_heads": [2, 2],
                "window_size": 4,
            },
            image,
            plain,
        ),
        ("ConvNext", {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1]}, image, plain),
        ("ResNet", {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}, image, plain),
        ("Segformer", {"depths": [1, 1, 1, 1], "hidden_sizes": [8, 8, 16, 16]}, image, plain),
        ("MobileNetV2", {"image_size": 32, "depth_multiplier": 0.25}, image, plain),
        (
            "Mamba",
            {**vocabulary, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4},
            tokens,
            uncached,
        ),
    ]
    for name, settings, inputs, fixed in table:
        model, config = getattr(tf, f"{name}Model"), getattr(tf, f"{name}Config")
        label = f"{name}Model{' with mask' if inputs is masked else ''}"
        yield Case(label, lambda model=model, config=config, s=settings: model(config(**s)), inputs, fixed)  # type: ignore[misc]


def of_timm() -> Iterator[Case]:
    import timm

    x = {"x": torch.randn(2, 3, 64, 64, generator=torch.Generator().manual_seed(3))}
    for name in (
        "resnet18",
        "mobilenetv3_small_050",
        "efficientnet_b0",
        "convnext_atto",
        "regnetx_002",
        "densenet121",
    ):
        yield Case(f"timm {name}", lambda name=name: timm.create_model(name), x)  # type: ignore[misc]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--explain", action="store_true", help="print each error with its place")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    cases = list(of_torch())
    if find_spec("transformers") is not None:
        cases += of_transformers()
    if find_spec("timm") is not None:
        cases += of_timm()
    print("| model | ours | torch.fx |\n| --- | --- | --- |")
    for case in cases:
        if not options.only or case.name in options.only:
            cells = [attempt(case, impl, options.explain) for impl in IMPLEMENTATIONS.values()]
            print(f"| {case.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
