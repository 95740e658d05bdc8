"""Whether a graph that raised may be forgotten and its frame run plainly from the start.

A graph runs before the effects of its frame are replayed, and outside of the frame's ``try`` blocks. When an operation
raises because of the *values* of its inputs, Python would have made some effects already, or would have caught the
exception. The frame is then run again from its first instruction, which is right only if the graph had drawn no
random number and had written to no tensor from outside. `WatchingFakeMode` sees every operator of a capture and tells.
"""

from functools import cache
from typing import Any, Final, NamedTuple

import torch

from dynamo.eval.fake import StaticFakeMode

#: operators that cannot raise because of values, beside views and pointwise ones
_TOTAL: Final = frozenset(
    "detach alias empty empty_like empty_strided new_empty new_empty_strided zeros zeros_like new_zeros ones ones_like "
    "new_ones full full_like new_full scalar_tensor lift_fresh fill_ zero_ fill copy_ copy clone contiguous to "
    "_to_copy arange linspace eye mm addmm bmm baddbmm mv addmv dot vdot addr outer linear convolution "
    "native_batch_norm native_layer_norm native_group_norm native_dropout sum mean var var_mean std std_mean prod "
    "amax amin max min argmax argmin any all norm linalg_vector_norm logsumexp _softmax _log_softmax cumsum cumprod "
    "cat stack constant_pad_nd tril triu roll flip sort topk where rand randn rand_like "
    "randn_like max_pool2d_with_indices avg_pool2d _adaptive_avg_pool2d adaptive_avg_pool2d mse_loss gelu silu "
    "leaky_relu threshold repeat expand reshape _unsafe_view _reshape_alias flatten squeeze unsqueeze "
    "_scaled_dot_product_flash_attention_for_cpu convert_element_type split_dim device isnan isinf equal "
    "result_type squeeze_copy broadcast_in_dim pixel_shuffle upsample_nearest2d upsample_bilinear2d".split()
)
#: pointwise, and yet integers may be divided by zero or raised to a negative power
_DIVISIONS: Final = ("div", "floor_divide", "remainder", "fmod", "pow", "true_divide", "lcm", "gcd")
_DROPOUT: Final = ("dropout_p", "dropout")
_TRAINING: Final = ("training", "train")


class _Traits(NamedTuple):
    draws: bool
    writes: bool
    may_raise: bool
    normalises: bool


@cache
def _traits(func: Any) -> _Traits:
    schema = func._schema
    name = schema.name.partition("::")[2]
    tags = func.tags
    view = any(each.alias_info is not None and not each.alias_info.is_write for each in schema.arguments)
    total = view or name in _TOTAL or torch.Tag.pointwise in tags
    return _Traits(
        torch.Tag.nondeterministic_seeded in tags,
        schema.is_mutable,
        not total or name.rstrip("_") in _DIVISIONS,
        "batch_norm" in name or "fake_quant" in name or "moving_avg" in name,
    )


def _argument(func: Any, args: Any, kwargs: Any, names: tuple[str, ...]) -> Any:
    """The value given for the first parameter with one of these names; None where there is none."""
    for place, parameter in enumerate(func._schema.arguments):
        if parameter.name in names:
            return args[place] if place < len(args) else kwargs.get(parameter.name, parameter.default_value)
    return None


def _is_float(args: Any) -> bool:
    return any(
        isinstance(each, float) or isinstance(each, torch.Tensor) and each.dtype.is_floating_point
        for each in args
    )


_NUMBERS: Final = {bool: 0, int: 1, float: 2, complex: 3}


def _rank(operand: Any) -> int:
    """The place of a number's or tensor's kind in the order of promotion: bool, integer, float, complex; else -1."""
    if not isinstance(operand, torch.Tensor):
        return _NUMBERS.get(type(operand), -1)
    if operand.dtype.is_complex:
        return 3
    return 2 if operand.dtype.is_floating_point else int(operand.dtype != torch.bool)


def _refuses_types(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether real tensors may refuse kinds of numbers that fake ones took.

    Subtraction refuses bools, an ``alpha`` must fit the result, and what is written in place must be of no higher kind.
    """
    name = func._schema.name.partition("::")[2]
    ranks = [_rank(each) for each in args]
    if name.rstrip("_") in ("sub", "rsub", "subtract") and 0 in ranks:
        return True
    alpha = kwargs.get("alpha")
    if alpha is not None and _rank(alpha) != 1:
        return True
    return name.endswith("_") and name not in _TOTAL and bool(ranks) and max(ranks) > ranks[0] >= 0


class WatchingFakeMode(StaticFakeMode):  # type: ignore[no-untyped-call]  # torch leaves __init_subclass__ untyped
    """A fake mode that remembers what kinds of operators it saw.

    Attributes:
        draws: one draws random numbers.
        writes: one writes to a tensor; which one is told by version counters.
        normalises: one updates running statistics, unknown to its schema.
        may_raise: one may raise because of the values of its inputs.
    """

    def __init__(self) -> None:
        super().__init__()
        self.draws = self.writes = self.normalises = self.may_raise = False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:  # what torch passes and takes
        draws, writes, may_raise, normalises = _traits(func)
        if draws and _argument(func, args, kwargs or {}, _DROPOUT) not in (0, 0.0):
            self.draws = True
        if writes:
            self.writes = True
        if not self.may_raise:
            self.may_raise = (may_raise and not _is_total(func, args, kwargs or {})) or _refuses_types(
                func, args, kwargs or {}
            )
        if normalises and _argument(func, args, kwargs or {}, _TRAINING) is not False:
            self.normalises = True
        return super().__torch_dispatch__(func, types, args, kwargs or {})


def _is_total(func: Any, args: Any, kwargs: Any) -> bool:
    """Whether these very arguments cannot make the operator raise: floats are divided, a probability is one."""
    name = func._schema.name.partition("::")[2].rstrip("_")
    if name == "bernoulli":
        probability = _argument(func, args, kwargs, ("p",))
        return isinstance(probability, int | float) and 0 <= probability <= 1
    return name in _DIVISIONS and _is_float(args)
