# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, no-any-return, var-annotated, attr-defined, arg-type, operator, type-arg, import-untyped"
"""Modules of every kind, each captured whole and like eager."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn as nn
import torch.nn.functional as F

from tests.oracle.whole import assert_whole

Cases = list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]]
CASES: Cases = []


def whole(*calls):
    def register(function):
        CASES.append((function, calls))
        return function

    return register


def T(*shape):
    return torch.arange(float(torch.Size(shape).numel())).reshape(shape) * 0.5 + 0.25


torch.manual_seed(0)
x = T(2, 3, 8)
enc = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
encT = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
encS = nn.TransformerEncoder(
    nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0), 2, enable_nested_tensor=False
)
mha = nn.MultiheadAttention(8, 2, batch_first=True)
lstm = nn.LSTM(8, 5, num_layers=2, batch_first=True)
gru = nn.GRU(8, 5, bidirectional=True)
rnn = nn.RNN(8, 4)
lc = nn.LSTMCell(8, 4)
tr = nn.Transformer(8, 2, 1, 1, 16, batch_first=True, dropout=0.0)


@whole((x,))
def m_encT(x):
    return encT(x)


@whole((x,))
def m_encS(x):
    return encS(x)


@whole((x,))
def m_mha(x):
    return mha(x, x, x, need_weights=False)


@whole((x,))
def m_mhaw(x):
    return mha(x, x, x, attn_mask=torch.ones(3, 3).tril() == 0)


@whole((x,))
def m_lstm(x):
    return lstm(x)


@whole((x,))
def m_gru(x):
    return gru(x)


@whole((x,))
def m_rnn(x):
    return rnn(x)


@whole((x,))
def m_cell(x):
    return lc(x[:, 0])


seq = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
ml = nn.ModuleList([nn.Linear(8, 8) for _ in range(3)])
md = nn.ModuleDict({"a": nn.Linear(8, 8), "b": nn.ReLU()})
pl = nn.ParameterList([nn.Parameter(torch.ones(8)) for _ in range(2)])
pd = nn.ParameterDict({"w": nn.Parameter(torch.ones(8))})


@whole((x,))
def m_slice(x):
    return seq[:2](x)


hk = nn.Linear(8, 8)
hk.register_forward_hook(lambda m, i, o: o * 2)
hk.register_forward_pre_hook(lambda m, i: (i[0] + 1,))


@whole((x,))
def m_hook(x):
    return hk(x)


par = nn.utils.parametrizations.weight_norm(nn.Linear(8, 8))


class Sym(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)


par2 = nn.Linear(8, 8)
nn.utils.parametrize.register_parametrization(par2, "weight", Sym())


@whole((x,))
def m_param2(x):
    return par2(x)


class Buf(nn.Module):
    def __init__(s):
        super().__init__()
        s.register_buffer("b", torch.zeros(8))
        s.n = 0
        s.lin = nn.Linear(8, 8)

    def forward(s, x):
        s.b = s.b + 1  # type: ignore[has-type]  # made by register_buffer
        s.n += 1
        return s.lin(x) + s.b


class BufIn(Buf):
    def forward(s, x):
        s.b.add_(1)
        return x + s.b


@whole((Buf(), x))
def m_buf(m, x):
    return m(x)


@whole((BufIn(), x))
def m_bufin(m, x):
    return m(x)


@whole((x,))
def m_inside(x):
    layer = nn.ReLU()
    s = nn.Sequential(nn.ReLU(), nn.Tanh())
    return s(layer(x))


@whole((x,))
def m_inside2(x):
    layer = nn.Linear(8, 2)
    return layer(x)


class CC(nn.Module):
    def __call__(self, x):
        return super().__call__(x) * 2

    def forward(self, x):
        return x + 1


@whole((CC(), x))
def m_call(m, x):
    return m(x)


class GAm(nn.Module):
    def __init__(s):
        super().__init__()
        s.lin = nn.Linear(8, 8)

    def __getattr__(s, n):
        if n == "zip":
            return 5
        return super().__getattr__(n)

    def forward(s, x):
        return s.lin(x) * s.zip


@whole((GAm(), x))
def m_ga(m, x):
    return m(x)


bn = nn.BatchNorm1d(3)


@whole((bn, x))
def m_bn(m, x):
    return m(x)


conv = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2), nn.Flatten(), nn.LazyLinear(3))
conv(torch.ones(1, 1, 8, 8))


@whole((conv, T(2, 1, 8, 8)))
def m_conv(m, x):
    return m(x)


emb = nn.EmbeddingBag(10, 4, mode="sum")


@whole((torch.tensor([[1, 2], [3, 4]]),))
def m_emb(i):
    return emb(i)


@whole((x,))
def m_loss(x):
    return (
        nn.CrossEntropyLoss()(x[:, 0], torch.tensor([1, 2])),
        F.cross_entropy(x[:, 0], torch.tensor([1, 2])),
        nn.MSELoss()(x, x + 1),
    )


@whole((nn.ModuleList([nn.Linear(8, 8)]), x))
def m_isinst(m, x):
    return (
        x + 1,
        isinstance(m, nn.Module),
        isinstance(m[0], (nn.Linear, nn.Conv2d)),
        type(m[0]).__name__,
        m[0].weight.shape,
        m[0].in_features,
        m[0].bias is not None,
    )


@pytest.mark.parametrize("case", CASES, ids=lambda case: case[0].__name__)
def test_is_one_graph_and_like_eager(case):
    function, calls = case
    assert_whole(function, *calls)
