"""Shapes that capture derives itself are those of the real operators; capturing imports no second capture stack."""

import subprocess
import sys
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch._subclasses.fake_tensor import FakeTensor

from dynamo.eval.fake import StaticFakeMode, fake_of
from dynamo.eval.plain_shapes import _RULES, known_result

TOY = """
import sys, torch
before = set(sys.modules)
import dynamo.eval as dynamo

def toy(a, b):
    x = a / (torch.abs(a) + 1)
    if b.sum() < 0:
        b = b * -1
    return x * b

captured = dynamo.optimize("eager")(toy)
for sign in (1, -1):
    a, b = torch.randn(10), sign * torch.ones(10)
    assert torch.equal(captured(a, b), toy(a, b))
stats = dynamo.report()
new = set(sys.modules) - before
heavy = ("torch._dynamo", "torch._inductor", "torch.fx.experimental.symbolic_shapes", "sympy")
print([name for name in heavy if name in new])
"""


def test_capturing_the_founding_example_imports_no_other_capture_stack() -> None:
    done = subprocess.run(
        [sys.executable, "-c", TOY], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "[]"


DTYPES = [
    torch.float32,
    torch.float64,
    torch.float16,
    torch.bfloat16,
    torch.int64,
    torch.int32,
    torch.bool,
    torch.complex64,
]
SHAPES: list[tuple[int, ...]] = [
    (),
    (1,),
    (3,),
    (2, 3),
    (3, 1),
    (1, 3),
    (2, 1),
    (4, 2, 3),
    (1, 1, 3),
    (0,),
    (2, 0),
]


def tensor(shape: tuple[int, ...], dtype: torch.dtype, arranged: str) -> torch.Tensor:
    value = torch.ones(shape, dtype=dtype)
    if arranged == "transposed":
        return value.transpose(0, -1) if value.dim() > 1 else value
    if arranged == "strided":
        return torch.ones((*shape, 2), dtype=dtype)[..., 0]
    return value


tensors = st.builds(
    tensor,
    st.sampled_from(SHAPES),
    st.sampled_from(DTYPES),
    st.sampled_from(["plain", "plain", "transposed", "strided"]),
)


@pytest.mark.parametrize("func", list(_RULES), ids=str)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_what_is_known_is_laid_out_as_the_real_result(func: Any, data: st.DataObject) -> None:
    args: list[Any] = [data.draw(tensors)]
    for each in func._schema.arguments[1:]:
        if not each.kwarg_only and str(each.type) in ("Tensor", "number"):
            numbers = st.sampled_from([2, -1, 0.5])
            args.append(data.draw(numbers if str(each.type) == "number" else st.one_of(tensors, numbers)))
    known = known_result(func, args, {})
    if known is None:
        return
    meta, device = known
    real = func(*args)
    assert (meta.shape, meta.stride(), meta.dtype, device) == (
        real.shape,
        real.stride(),
        real.dtype,
        real.device,
    )


@pytest.mark.parametrize("func", list(_RULES), ids=str)
def test_a_plain_matrix_of_floats_is_known(func: Any) -> None:
    count = sum(
        not each.kwarg_only and str(each.type) in ("Tensor", "number") for each in func._schema.arguments
    )
    number = str(func._schema.arguments[count - 1].type) == "number"
    matrix = torch.ones(3, 3)
    assert known_result(func, [matrix, 2.0 if number else matrix][:count], {}) is not None


def test_the_result_is_a_fake_tensor_that_tracks_gradients() -> None:
    mode = StaticFakeMode()
    fake = fake_of(mode, torch.ones(2, 3, requires_grad=True))
    with mode:
        result = torch.relu(fake) * 2
    assert isinstance(result, FakeTensor)
    assert result.requires_grad and result.grad_fn is not None
