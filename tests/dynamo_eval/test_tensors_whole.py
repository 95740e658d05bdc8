# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, no-any-return, var-annotated, attr-defined, arg-type, operator, type-arg, import-untyped"
"""Tensors and what torch does with them: captured whole where that is possible, like eager everywhere."""

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn as nn
import torch.nn.attention
import torch.nn.functional as F
import torch.utils.checkpoint

from tests.oracle.whole import assert_right, assert_whole

WHOLE: list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = []
RIGHT: list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = []


def whole(*calls):
    def register(function):
        WHOLE.append((function, calls))
        return function

    return register


def right(*calls):
    def register(function):
        RIGHT.append((function, calls))
        return function

    return register


def T(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) * 0.5 + 0.25


x = T(3, 4)


@right((x,))
def t_index(x):
    return (
        x[0],
        x[:, 1],
        x[..., -1],
        x[None],
        x[1:, ::2],
        x[torch.tensor([0, 2])],
        x[[0, 2]],
        x[(0, 1)],
        x[-1, ...],
        x[torch.tensor([0, 1]), torch.tensor([1, 2])],
        x[:, [True, False, True, False]],
    )


@whole((x,))
def t_setitem(x):
    y = x.clone()
    y[0] = 1
    y[:, 1] = y[:, 2]
    y[y > 3] = 0
    y[torch.tensor([0]), 1] += 2
    y[..., 0] *= 3
    y[0, 0] = torch.tensor(2.0)
    return y


@whole((x,))
def t_mask(x):
    return torch.where(x > 1, x, -x).masked_fill(x > 2, 0.0)


@whole((x,))
def t_shape(x):
    b, c = x.shape
    h = x.shape[-1] // 2
    s = x.shape[:-1] + (2, h)
    return (
        x.view(s),
        x.reshape(b * c),
        x.view(-1, h),
        x.new_zeros(*x.shape),
        torch.zeros(x.shape),
        torch.zeros(*x.size(), dtype=x.dtype),
        x.dim(),
        len(x),
        x.stride(0),
        x.element_size(),
        x.shape.numel(),
        x.expand(2, *x.shape),
        b / c,
        b % c,
        -b,
        max(b, c),
        math.sqrt(b),
        range(b),
    )


@whole((x,))
def t_inplace(x):
    x.add_(1).mul_(2)
    x += 1
    x -= 0.5
    x.relu_()
    x.clamp_(0, 3)
    x.zero_()
    x.fill_(2)
    x.copy_(torch.ones(3, 4))
    return x


@whole((x,))
def t_out(x):
    o = torch.empty(3, 4)
    torch.add(x, 1, out=o)
    torch.mul(o, 2, out=o)
    return o


@whole((x, torch.empty(3, 4)))
def t_out2(x, o):
    r = torch.add(x, 1, out=o)
    return r is o, r


@whole((x,))
def t_views(x):
    y = x.clone()
    v = y.view(-1)
    v[0] = 9
    t = y.t()
    t[0, 1] = 5
    c = y.chunk(2, dim=1)
    c[0].zero_()
    a, b = y.split([1, 2])
    u = y.unbind(0)
    y.transpose_(0, 1)
    return y, v, t, c, a, b, u


@whole((x,))
def t_unsq(x):
    y = x.clone()
    y.unsqueeze_(0)
    y.squeeze_(0)
    y.t_()
    return y


@whole((x,))
def t_attrs(x):
    return (
        x.T,
        x.mT,
        x.real,
        x.dtype,
        x.device,
        x.device.type,
        x.is_cuda,
        x.layout,
        x.requires_grad,
        x.ndim,
        x.itemsize,
        x.nbytes,
        x.is_contiguous(),
        x.is_floating_point(),
        x.grad is None,
        x.is_leaf,
        x.data,
        x.dtype.is_floating_point,
        x.dtype.itemsize,
        torch.finfo(x.dtype).min,
        torch.finfo(x.dtype).eps,
        torch.iinfo(torch.int32).max,
    )


@whole((x,))
def t_methods(x):
    return (
        x.float(),
        x.to(torch.float64),
        x.type(torch.int32),
        x.type_as(x),
        x.to("cpu"),
        x.cpu(),
        x.detach(),
        x.contiguous(),
        x.max(),
        x.max(dim=1),
        x.max(dim=1).values,
        x.topk(2),
        x.sort(),
        x.std(),
        x.softmax(-1),
        x.sum(dim=(0, 1), keepdim=True),
        x.permute(1, 0),
        x.flip(0),
        x.repeat(2, 1),
        x.gather(1, torch.zeros(3, 1, dtype=torch.long)),
        x.new_tensor([1, 2]),
        x.long().bool(),
        x.half().bfloat16(),
        x.unfold(0, 2, 1),
        x.cumsum(0),
        x.double(),
    )


@whole((x,))
def t_create(x):
    return (
        torch.arange(3),
        torch.ones(2, 3),
        torch.tensor([1, 2.0]),
        torch.tensor(3),
        torch.full((2,), x.shape[0]),
        torch.eye(2),
        torch.linspace(0, 1, 3),
        torch.zeros_like(x),
        torch.empty_like(x).fill_(1),
        torch.as_tensor([1, 2]),
        torch.tensor([[1], [2]]),
        torch.scalar_tensor(2),
        torch.stack([x, x]),
        torch.cat([x, x], dim=-1),
        torch.tensor(x.shape),
    )


@whole((x,))
def t_rand(x):
    return (
        torch.randn(2, 3),
        torch.rand_like(x),
        F.dropout(x, 0.5),
        torch.randint(0, 5, (2,)),
        torch.bernoulli(torch.full((3,), 0.5)),
        torch.randperm(4),
    )


@whole((x,))
def t_einsum(x):
    return (
        torch.einsum("ij,kj->ik", x, x),
        torch.matmul(x, x.T),
        x @ x.T,
        F.linear(x, x),
        torch.nn.functional.scaled_dot_product_attention(x[None], x[None], x[None]),
        F.pad(x, (1, 1)),
        F.one_hot(torch.tensor([0, 1]), 3),
        F.layer_norm(x, (4,)),
        F.gelu(x),
        F.interpolate(x[None, None], scale_factor=2),
    )


@right((x.clone().requires_grad_(),))
def t_grad(x):
    y = (x * x).sum()
    (g,) = torch.autograd.grad(y, x)
    return g


@right((x.clone().requires_grad_(),))
def t_backward(x):
    y = (x * 2).sum()
    y.backward()
    return x.grad * 2


class Fn(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 3


@right((x,))
def t_fn(x):
    return Fn.apply(x) + 1


@right((x.clone().requires_grad_(),))
def t_fng(x):
    return Fn.apply(x) + 1


@right((x,))
def t_vmap(x):
    return torch.vmap(lambda r: r.sum() * 2)(x)


@right((x,))
def t_funcgrad(x):
    return torch.func.grad(lambda v: (v * v).sum())(x)


@right((x,))
def t_ckpt(x):
    return torch.utils.checkpoint.checkpoint(lambda v: v.sin().cos(), x, use_reentrant=False)


@right((nn.Linear(4, 2), x))
def t_opt(m, x):
    o = torch.optim.SGD(m.parameters(), lr=0.1)
    m(x).sum().backward()
    o.step()
    o.zero_grad()
    return m(x)


@right((x,))
def t_np(x):
    return x * np.float32(2.0) + np.int64(3), np.float64(1.5) * 2, float(np.float32(2.0))


@right((np.float32(2.0), x))
def t_npin(n, x):
    return x * n


@whole((x,))
def t_copy(x):
    items = [1, [2, 3]]
    d = {"a": [1]}
    return x + 1, copy.copy(items), copy.deepcopy(items), copy.deepcopy(d), copy.copy(d)


@whole((x,))
def t_fmt(x):
    return (
        x + 1,
        f"{x.shape}",
        str(x.dtype),
        f"{tuple(x.shape)}",
        f"{[1, 2]}",
        str({"a": 1}),
        repr((1, "a")),
        f"{x.shape[0]:>4}|{x.device}",
    )


@whole((x,))
def t_dtype(x):
    t = torch.promote_types(torch.float32, torch.int64)
    return (
        x.to(t),
        torch.result_type(x, 1.0),
        torch.is_tensor(x),
        torch.is_floating_point(x),
        torch.numel(x),
        torch.get_default_dtype(),
        torch.float32 == x.dtype,
        x.dtype in (torch.float32, torch.float16),
        torch.can_cast(torch.int32, torch.float32),
    )


@whole((x,))
def t_cmp(x):
    return (
        x == x,
        x != 1,
        x < 2,
        (x > 1) & (x < 3),
        ~(x > 1),
        x**2,
        2**x,
        -x,
        abs(x),
        x // 2,
        x % 2,
        1 - x,
        2 / x,
        divmod(7, 2),
        x.eq(1),
        torch.equal,
    )


@whole((x,))
def t_contains(x):
    return (
        x + 1,
        3 in [1, 3],
        x.shape == (3, 4),
        x.shape == torch.Size([3, 4]),
        list(x.shape) == [3, 4],
        x.size() != (1,),
    )


@whole((x,))
def t_iter(x):
    return [r * 2 for r in x], [a for a in zip(x, x, strict=True)], torch.stack(list(x)), tuple(x)[0], sum(x)


@whole((x,))
def t_ng(x):
    @torch.no_grad()
    def g(v):
        return v * 2

    with torch.enable_grad():
        y = x * 3
    return g(x) + y


@right((x,))
def t_sdpa(x):
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return F.scaled_dot_product_attention(x[None], x[None], x[None])


@right((x,))
def t_device(x):
    with torch.device("cpu"):
        y = torch.ones(3, 4)
    return x + y


@right((x,))
def t_set(x):
    torch.set_default_dtype(torch.float64)
    y = torch.ones(2)
    torch.set_default_dtype(torch.float32)
    return y, x + 1


@whole((x,))
def t_param(x):
    p = nn.Parameter(x * 2)
    return p * 2, isinstance(p, nn.Parameter), p.requires_grad


@right((x,))
def t_reqgrad(x):
    y = x.clone().requires_grad_()
    return (y * 2).detach(), y.requires_grad


@whole((x,))
def t_amp(x):
    with torch.amp.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.T
    with torch.autocast(device_type="cpu", enabled=False):
        z = x @ x.T
    return y, z


@whole((x,))
def t_cplx(x):
    c = torch.complex(x, x)
    return torch.view_as_real(c), c.abs(), c.conj().imag, torch.polar(x, x).real


@pytest.mark.parametrize("case", WHOLE, ids=lambda case: case[0].__name__)
def test_is_one_graph_and_like_eager(case):
    assert_whole(case[0], *case[1])


@pytest.mark.parametrize("case", RIGHT, ids=lambda case: case[0].__name__)
def test_is_like_eager_with_breaks(case):
    assert_right(case[0], *case[1])
