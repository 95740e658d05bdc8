"""What :mod:`fx.ir` is told about torch: values that stand in arguments, and what torch's operators do.

Leaf types are written to files as plain data.  Decoding looks names up among torch's own constants; it runs nothing
that a file chooses.

Purity follows the operators' schemas: an argument that a schema marks as written to (``Tensor(a!)``) is mutated, a
tag ``nondeterministic_seeded`` means that it draws random numbers.  A function such as ``torch.add_`` or
``torch.nn.functional.dropout`` is judged by the schema of the operator of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import torch
from torch import nn
from torch._ops import OpOverload, OpOverloadPacket

from fx.codegen.globals import torch_path_of
from fx.ir import Effects, effects, register_argument_type, register_namespace, register_target_namer
from fx.ir.effects import IMPURE, MUTATES_FIRST, PURE, RANDOM


def register() -> None:
    """Tell :mod:`fx.ir`; done once, when :mod:`fx.codegen` is imported."""
    _register_types()
    _register_effects()
    register_target_namer(_operator_name)
    for module in ("torch._C._nn", "torch._C._fft", "torch._C._linalg", "torch._C._special"):
        register_namespace(module)


def _operator_name(target: Callable[..., Any]) -> str | None:
    """Operators by the path on which users find them, not by the module that makes them."""
    return torch_path_of(target) if isinstance(target, OpOverload | OpOverloadPacket) else None


# -- values -----------------------------------------------------------------------------------------------------------


def _constant(cls: type[Any]) -> Callable[[Any], Any]:
    """Decoder for the names of torch's constants of one class."""

    def decode(name: Any) -> Any:
        value = getattr(torch, name, None) if isinstance(name, str) else None
        if not isinstance(value, cls):
            raise ValueError(f"{name!r} is no {cls.__name__} of torch")
        return value

    return decode


def _name(value: Any) -> str:
    return str(value).removeprefix("torch.")


def _decode_device(name: Any) -> torch.device:
    if not isinstance(name, str):
        raise ValueError(f"{name!r} is no device")
    return torch.device(name)


def _decode_size(sizes: Any) -> torch.Size:
    return torch.Size([int(size) for size in sizes])


def _register_types() -> None:
    for cls in (torch.dtype, torch.layout, torch.memory_format):
        register_argument_type(cls, name=f"torch.{cls.__name__}", encode=_name, decode=_constant(cls))
    register_argument_type(torch.device, name="torch.device", encode=str, decode=_decode_device)
    register_argument_type(torch.Size, name="torch.Size", encode=list, decode=_decode_size)
    register_argument_type(torch.Tensor, name="torch.Tensor", format=_tensor_text)


def _tensor_text(value: torch.Tensor) -> str:
    return f"Tensor({_name(value.dtype)}, {list(value.shape)})"


# -- effects ----------------------------------------------------------------------------------------------------------

_RANDOM_FUNCTIONS: Final = (
    "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal poisson dropout "
    "alpha_dropout feature_dropout feature_alpha_dropout native_dropout rrelu binomial"
).split()
_RANDOM_FUNCTIONAL: Final = (
    "dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout rrelu gumbel_softmax "
    "fractional_max_pool2d fractional_max_pool3d"
).split()
_STATEFUL: Final = (
    "manual_seed seed set_rng_state set_default_dtype set_default_device set_grad_enabled set_num_threads _assert "
    "_assert_async set_printoptions set_flush_denormal set_deterministic_debug_mode use_deterministic_algorithms"
).split()
_RANDOM_METHODS: Final = "bernoulli multinomial".split()
_MUTATING_METHODS: Final = "__setitem__ set_ copy_ resize_ share_memory_ index_put_ requires_grad_".split()


def _of_schema(operator: OpOverload) -> Effects:
    """The effects that an operator's schema declares."""
    written: set[int | str] = set()
    schema = operator._schema
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            written.add(argument.name if argument.kwarg_only else position)
    random = torch.Tag.nondeterministic_seeded in operator.tags
    if not written and not random:
        return PURE if schema.returns else IMPURE
    return Effects(mutates=frozenset(written), random=random)


def _rule(target: Callable[..., Any]) -> Effects | None:
    """Effects of operators, by their schema."""
    if isinstance(target, OpOverload):
        return _of_schema(target)
    if isinstance(target, OpOverloadPacket):
        overloads = cast("list[str]", target.overloads())  # type: ignore[no-untyped-call]  # torch has no annotation here
        names = [name for name in overloads if name != "out" and not name.endswith("_out")]
        return _of_schema(cast("OpOverload", getattr(target, names[0]))) if names else None
    return None


def _declare(owner: Any, names: Iterable[str], what: Effects) -> None:
    for name in names:
        function = getattr(owner, name, None)
        if function is not None:
            effects.declare(function, what)


def _random_if_training(module: Any) -> Effects:
    return RANDOM if module.training else PURE


def _counts_batches(module: Any) -> Effects:
    """Batch normalisation in training writes its running statistics."""
    return IMPURE if module.training and module.track_running_stats else PURE


def _register_effects() -> None:
    effects.add_rule(_rule)
    _declare(torch, _RANDOM_FUNCTIONS, RANDOM)
    _declare(nn.functional, _RANDOM_FUNCTIONAL, RANDOM)
    _declare(torch, _STATEFUL, IMPURE)
    for function in (torch._C._set_grad_enabled, torch._C._functorch._vmap_increment_nesting):
        effects.declare(function, IMPURE)
    for name in _RANDOM_METHODS:
        effects.declare_method(name, RANDOM)
    for name in _MUTATING_METHODS:
        effects.declare_method(name, MUTATES_FIRST)
    for cls in (nn.modules.dropout._DropoutNd, nn.RReLU):
        effects.declare_module(cls, _random_if_training)
    effects.declare_module(nn.modules.batchnorm._NormBase, _counts_batches)
