"""What :mod:`fx.ir` is told about torch's effects: what is changed in place, and what draws random numbers.

Operators and functions made in C are judged by the schemas of all overloads of the operator of the same name: an
argument that a schema marks as written to (``Tensor(a!)``) is mutated, the tag ``nondeterministic_seeded`` means that
random numbers are drawn.  Where the arguments decide (``training=``, ``dropout_p=``, ``max_norm=``), and where a schema
keeps silent about the running statistics that it writes, the tables below say what a call does.  A module does what the
modules in it do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType
from typing import Any, Final, cast

import torch
from torch import nn
from torch._ops import OpOverload, OpOverloadPacket

from fx.ir import Argument, Effects, effects
from fx.ir.effects import IMPURE, MUTATES_FIRST, PURE, RANDOM

_RANDOM_FUNCTIONS: Final = (
    "rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal poisson binomial"
).split()
_RANDOM_FUNCTIONAL: Final = "gumbel_softmax fractional_max_pool2d fractional_max_pool3d".split()
_STATEFUL: Final = (
    "manual_seed seed set_rng_state set_default_dtype set_default_device set_grad_enabled set_num_threads _assert "
    "_assert_async set_printoptions set_flush_denormal set_deterministic_debug_mode use_deterministic_algorithms"
).split()
_RANDOM_METHODS: Final = "bernoulli multinomial".split()
_MUTATING_METHODS: Final = "__setitem__ set_ copy_ resize_ share_memory_ index_put_ requires_grad_".split()


# -- calls whose arguments decide ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Parameter:
    """Where a parameter stands, how it is called, and its default."""

    place: int
    name: str
    default: object

    def of(self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> object:
        if self.place < len(args):
            return args[self.place]
        return kwargs.get(self.name, self.default)


@dataclass(frozen=True, slots=True)
class _Random:
    """Draws unless the probability is 0, or it is not training."""

    p: _Parameter | None
    training: _Parameter | None

    def __call__(self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> Effects:
        for parameter in (self.p, self.training):
            value = None if parameter is None else parameter.of(args, kwargs)
            if parameter is not None and isinstance(value, bool | int | float) and not value:
                return PURE
        return RANDOM


@dataclass(frozen=True, slots=True)
class _WritesStatistics:
    """Writes running statistics, if it has them, when it is training."""

    statistics: tuple[_Parameter, ...]
    training: _Parameter

    def __call__(self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> Effects:
        if self.training.of(args, kwargs) is False:
            return PURE
        return _mutates([s for s in self.statistics if s.of(args, kwargs) is not None], args)


@dataclass(frozen=True, slots=True)
class _Renormalises:
    """Scales rows of its weight in place if it is given a largest norm."""

    weight: _Parameter
    max_norm: _Parameter

    def __call__(self, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]) -> Effects:
        return PURE if self.max_norm.of(args, kwargs) is None else _mutates([self.weight], args)


def _mutates(parameters: list[_Parameter], args: tuple[Argument, ...]) -> Effects:
    return Effects(mutates=frozenset([p.place if p.place < len(args) else p.name for p in parameters]))


def _dropout(training: bool | None, train: str = "training") -> _Random:
    return _Random(_Parameter(1, "p", 0.5), _Parameter(2, train, training))


def _statistics(mean: int, training: int, flag: str, default: bool | None) -> _WritesStatistics:
    both = (_Parameter(mean, "running_mean", None), _Parameter(mean + 1, "running_var", None))
    return _WritesStatistics(both, _Parameter(training, flag, default))


_ATTENTION: Final = _Random(_Parameter(4, "dropout_p", 0.0), None)
_MANY_HEADS: Final = _Random(_Parameter(10, "dropout_p", None), _Parameter(13, "training", True))
_RRELU: Final = _Random(None, _Parameter(3, "training", False))
_BATCH_NORM: Final = _statistics(3, 5, "training", None)
_INSTANCE_NORM: Final = _statistics(3, 5, "use_input_stats", None)

_CALLS: Final[Mapping[Any, effects.OfCall]] = {
    **dict.fromkeys(
        (
            nn.functional.dropout,
            nn.functional.dropout1d,
            nn.functional.dropout2d,
            nn.functional.dropout3d,
        ),
        _dropout(True),
    ),
    nn.functional.alpha_dropout: _dropout(False),
    nn.functional.feature_alpha_dropout: _dropout(False),
    **dict.fromkeys(
        (
            torch.dropout,
            torch.alpha_dropout,
            torch.feature_dropout,
            torch.feature_alpha_dropout,
            torch.native_dropout,
        ),
        _dropout(None, "train"),
    ),
    nn.functional.rrelu: _RRELU,
    torch.rrelu: _RRELU,
    nn.functional.scaled_dot_product_attention: _ATTENTION,
    nn.functional.multi_head_attention_forward: _MANY_HEADS,
    nn.functional.batch_norm: _statistics(1, 5, "training", False),
    nn.functional.instance_norm: _statistics(1, 5, "use_input_stats", True),
    torch.batch_norm: _BATCH_NORM,
    torch.native_batch_norm: _BATCH_NORM,
    torch.instance_norm: _INSTANCE_NORM,
    nn.functional.embedding: _Renormalises(_Parameter(1, "weight", None), _Parameter(3, "max_norm", None)),
    nn.functional.embedding_bag: _Renormalises(
        _Parameter(1, "weight", None), _Parameter(3, "max_norm", None)
    ),
}

_OF_OPERATORS: Final[Mapping[str, effects.OfCall]] = {
    "scaled_dot_product_attention": _ATTENTION,
    "dropout": _dropout(None, "train"),
    "native_dropout": _dropout(None, "train"),
    "batch_norm": _BATCH_NORM,
    "native_batch_norm": _BATCH_NORM,
    "cudnn_batch_norm": _BATCH_NORM,
    "miopen_batch_norm": _BATCH_NORM,
    "instance_norm": _INSTANCE_NORM,
}
"""By the names of operators in ``torch.ops.aten``; an overload and its packet are judged alike."""


# -- schemas ---------------------------------------------------------------------------------------------------------


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


def _of_packet(packet: OpOverloadPacket) -> Effects:
    """What one of the overloads may do; those that write into ``out=`` or its like show it by that keyword."""
    found = PURE
    for name in cast("list[str]", packet.overloads()):  # type: ignore[no-untyped-call]  # torch has no annotation here
        one = _of_schema(cast("OpOverload", getattr(packet, name)))
        if not any(isinstance(written, str) for written in one.mutates):
            found = Effects(
                found.impure or one.impure, found.mutates | one.mutates, found.random or one.random
            )
    return found


_KNOWN: Final[dict[Callable[..., Any], Effects | None]] = {}


def _rule(target: Callable[..., Any]) -> Effects | None:
    """Effects of operators and of torch's functions made in C, by their schemas."""
    if not isinstance(target, OpOverload | OpOverloadPacket | BuiltinFunctionType):
        return None
    if target not in _KNOWN:
        _KNOWN[target] = _by_schema(target)
    return _KNOWN[target]


def _by_schema(target: OpOverload | OpOverloadPacket | BuiltinFunctionType) -> Effects | None:
    if isinstance(target, OpOverload):
        return _of_schema(target)
    if isinstance(target, OpOverloadPacket):
        return _of_packet(target)
    packet = getattr(torch.ops.aten, target.__name__, None) if _is_of_torch(target) else None
    return _of_packet(packet) if isinstance(packet, OpOverloadPacket) else None


def _is_of_torch(target: BuiltinFunctionType) -> bool:
    owner = getattr(target, "__self__", None)
    module = getattr(target, "__module__", None) or getattr(owner, "__module__", None)
    name = getattr(owner, "__name__", "")
    return str(module).partition(".")[0] == "torch" or str(name).partition(".")[0] == "torch"


# -- modules ---------------------------------------------------------------------------------------------------------


def _random_if_training(module: Any) -> Effects:
    return RANDOM if module.training else PURE


def _drops_if_training(module: Any) -> Effects:
    return RANDOM if module.training and module.dropout else PURE


def _counts_batches(module: Any) -> Effects:
    """Batch normalisation in training writes its running statistics."""
    return IMPURE if module.training and module.track_running_stats else PURE


def _renormalises(module: Any) -> Effects:
    return PURE if module.max_norm is None else IMPURE


_MODULES: Final[Mapping[type, Callable[[Any], Effects]]] = {
    nn.modules.dropout._DropoutNd: _random_if_training,
    nn.RReLU: _random_if_training,
    nn.FractionalMaxPool2d: lambda module: RANDOM,
    nn.FractionalMaxPool3d: lambda module: RANDOM,
    nn.MultiheadAttention: _drops_if_training,
    nn.RNNBase: _drops_if_training,
    nn.modules.batchnorm._NormBase: _counts_batches,
    nn.Embedding: _renormalises,
    nn.EmbeddingBag: _renormalises,
}


def _of_module(module: Any) -> Effects:
    """What ``module`` and those in it do."""
    found = PURE
    for part in module.modules():
        for cls in type(part).__mro__:
            if cls in _MODULES:
                one = _MODULES[cls](part)
                found = Effects(found.impure or one.impure, found.mutates, found.random or one.random)
                break
    return found


def _declare(owner: Any, names: list[str], what: Effects) -> None:
    for name in names:
        function = getattr(owner, name, None)
        if function is not None:
            effects.declare(function, what)


def register() -> None:
    """Tell :mod:`fx.ir`; done once, when :mod:`fx.codegen` is imported."""
    effects.add_rule(_rule)
    _declare(torch, _RANDOM_FUNCTIONS, RANDOM)
    _declare(nn.functional, _RANDOM_FUNCTIONAL, RANDOM)
    _declare(torch, _STATEFUL, IMPURE)
    for function in (torch._C._set_grad_enabled, torch._C._functorch._vmap_increment_nesting):
        effects.declare(function, IMPURE)
    for target, of_call in _CALLS.items():
        effects.declare_call(target, of_call)
    for name, of_call in _OF_OPERATORS.items():
        packet = getattr(torch.ops.aten, name)
        for operator in (packet, *[getattr(packet, overload) for overload in packet.overloads()]):
            effects.declare_call(operator, of_call)
    for name in _RANDOM_METHODS:
        effects.declare_method(name, RANDOM)
    effects.declare_method("record_stream", IMPURE)
    for name in _MUTATING_METHODS:
        effects.declare_method(name, MUTATES_FIRST)
    effects.declare_module(nn.Module, _of_module)
