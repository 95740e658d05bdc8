"""Small programs in which capture is easily wrong: each must look as in eager Python, call after call."""

# ruff: noqa: UP031 – the programs below are odd on purpose

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo
from tests.oracle.eager import assert_like_eager

CASES: list[Any] = []
Function = Callable[..., Any]


def case(*calls: tuple[Any, ...]) -> Callable[[Function], Function]:
    """Register a program and the calls that it is compared on."""

    def register(function: Function) -> Function:
        CASES.append(pytest.param(function, calls, id=function.__name__))
        return function

    return register


def backend(gm: Any, example_inputs: Any) -> Any:
    return gm.forward


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


T = torch.tensor([1.0, -2.0, 3.0])
U = torch.tensor([-4.0, 0.5, 2.0])
SHARED = [T.clone()]
SCALE = 2.0
COUNTER = {"n": 0}


# -- values and guards ------------------------------------------------------------------------------------------


@case((T, 2), (T, 2.0), (T, True), (T, 3), (T, -0.0), (T, 0.0), (T, None), (T, "x"))
def a_python_number_changes_its_type(x: torch.Tensor, k: Any) -> Any:
    return x * k


@case((T,), (T.double(),), (T[:2],), (T.requires_grad_(False),), (T.clone().requires_grad_(),), (T.int(),))
def a_tensor_changes_dtype_shape_and_requires_grad(x: torch.Tensor) -> Any:
    return x + 1, x.dtype, x.shape, x.requires_grad


@case((torch.ones(3, 4),), (torch.ones(4, 3).t(),), (torch.ones(6, 4)[::2],))
def strides_are_as_in_eager(x: torch.Tensor) -> Any:
    return x + 1, x.is_contiguous(), x.stride()


@case(([T, U],), ([T],), ([],), ([T, U, T],))
def a_list_changes_its_length(values: list[torch.Tensor]) -> Any:
    total = torch.zeros(3)
    for value in values:
        total = total + value
    return total


@case(({"a": T, "b": U},), ({"b": U, "a": T},), ({"a": T},), ({"a": U, "c": T},))
def a_dict_changes_its_keys_and_their_order(values: dict[str, torch.Tensor]) -> Any:
    return [(key, value * 2) for key, value in values.items()]


@case((T, U), (T, T))
def two_arguments_may_be_one(x: torch.Tensor, y: torch.Tensor) -> Any:
    return (x + y, x is y)


@case((T, T), (T, U))
def two_arguments_may_cease_to_be_one(x: torch.Tensor, y: torch.Tensor) -> Any:
    x.add_(1)
    return x + y


@case(([T], [U]), (SHARED, SHARED))
def two_lists_may_be_one(a: list[torch.Tensor], b: list[torch.Tensor]) -> Any:
    a.append(torch.ones(3))
    return len(a), len(b), a[0] + 1


@case((float("nan"), T), (float("inf"), T), (float("nan"), U))
def nan_is_a_value(k: float, x: torch.Tensor) -> Any:
    return x * 0 if k != k else x + 1


@case((T, (1, 2)), (T, (1, 3)), (T, [1, 2]), (T, (1, True)))
def a_tuple_of_numbers(x: torch.Tensor, pair: Any) -> Any:
    a, b = pair
    return x * a + b, pair


# -- effects ----------------------------------------------------------------------------------------------------


@case(([T, U], T), ([], T))
def a_list_is_appended_to(values: list[Any], x: torch.Tensor) -> Any:
    values.append(x + 1)
    values.append(7)
    return values


@case(({"n": 1}, T), ({"n": 2}, T))
def a_dict_is_stored_to(state: dict[str, Any], x: torch.Tensor) -> Any:
    state["n"] += 1
    state["x"] = x * state["n"]
    return state["x"]


@case((T,), (T,))
def an_argument_is_changed_in_place(x: torch.Tensor) -> Any:
    y = x.view(-1)
    y.add_(1)
    x.mul_(2)
    return x, y


@case((T,), (T,))
def an_item_of_a_tensor_is_stored(x: torch.Tensor) -> Any:
    x[0] = 5
    x[1:] += 1
    return x * 1


class Box:
    def __init__(self, value: Any) -> None:
        self.value = value

    def double(self, x: torch.Tensor) -> Any:
        return x * 2 + self.value


@case((Box(1), T), (Box(1), T), (Box(2.5), T), (Box(T), U))
def an_attribute_is_read_and_stored(box: Box, x: torch.Tensor) -> Any:
    y = box.double(x)
    box.value = y
    return y + 1


@case((T,), (T,), (T,))
def a_global_dict_is_changed(x: torch.Tensor) -> Any:
    COUNTER["n"] += 1
    return x + COUNTER["n"]


@case((T,), (T,), (T,))
def a_global_is_stored(x: torch.Tensor) -> Any:
    global SCALE
    SCALE = SCALE + 1
    return x * SCALE


@case((T, True), (T, False), (T, True))
def an_exception_leaves_after_an_effect(x: torch.Tensor, fail: bool) -> Any:
    x.add_(1)
    seen = [x]
    if fail:
        raise ValueError("after the effect", len(seen))
    return seen


@case(([1], T), ([2], T))
def an_effect_stays_when_an_exception_leaves(log: list[Any], x: torch.Tensor) -> Any:
    log.append("begun")
    y = x + 1
    log.append(y)
    return y[10]


@case((T,), (T,))
def printing_keeps_its_order(x: torch.Tensor) -> Any:
    print("before")
    y = x + 1
    print("sum", y.sum().item())
    y = y * 2
    print("after", y.shape)
    return y


@case((T,), (T,))
def a_container_is_returned_twice(x: torch.Tensor) -> Any:
    inner = [x + 1]
    return {"one": inner, "two": inner, "three": [inner]}


@case(([T],), ([U],))
def an_argument_comes_back_inside_a_container(values: list[torch.Tensor]) -> Any:
    return {"same": values, "item": values[0], "new": values[0] + 1}


@case((T,), (T,))
def a_closure_counts(x: torch.Tensor) -> Any:
    count = 0

    def step(y: torch.Tensor) -> torch.Tensor:
        nonlocal count
        count += 1
        return y + count

    return step(step(x)), count


@case((T,), (U,))
def a_function_is_returned_with_its_closure(x: torch.Tensor) -> Any:
    y = x + 1

    def later(z: torch.Tensor) -> torch.Tensor:
        return y * z

    return later(x), [later][0](torch.ones(3))


# -- control flow -----------------------------------------------------------------------------------------------


@case((T,), (-T,), (U,), (-U,))
def a_branch_on_data_inside_a_loop(x: torch.Tensor) -> Any:
    out = []
    for k in range(3):
        if x.sum() > k:
            x = x - 1
            out.append(x)
        else:
            x = x + 2
    return x, out


@case((T,), (-T,))
def a_while_loop_on_data(x: torch.Tensor) -> Any:
    steps = 0
    while x.abs().sum() > 1:
        x = x / 2
        steps += 1
    return x, steps


@case((T, 0), (T, 3), (T, 5))
def a_loop_with_break_continue_and_else(x: torch.Tensor, stop: int) -> Any:
    for k in range(4):
        if k == 1:
            continue
        if k == stop:
            break
        x = x + k
    else:
        x = x * 10
    return x


@case((T,), (-T,))
def a_break_inside_try_finally(x: torch.Tensor) -> Any:
    log = []
    try:
        if x.sum() > 0:
            x = x + 1
        log.append("body")
        return x * 2, log
    finally:
        log.append("finally")


@case((T, 0), (T, 1), (T, 2))
def exceptions_are_caught(x: torch.Tensor, kind: int) -> Any:
    try:
        x = x + 1
        if kind == 0:
            raise KeyError("k")
        if kind == 1:
            x = x.view(7, 7)
        x = x * 3
    except KeyError as error:
        return x, error.args
    except RuntimeError:
        return x, "runtime"
    else:
        return x, "else"


@case((T,), (U,))
def an_exception_has_a_cause(x: torch.Tensor) -> Any:
    y = x + 1
    try:
        raise ValueError("first")
    except ValueError as error:
        try:
            raise TypeError("second") from error
        except TypeError as second:
            return y, type(second.__cause__).__name__, str(second)


@case((T,), (U,))
def gradients_are_switched_off_and_on(x: torch.Tensor) -> Any:
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        y = w * x
        inside = torch.is_grad_enabled()
    z = w + y
    return y.requires_grad, z.requires_grad, inside, torch.is_grad_enabled()


@case((T,), (-T,))
def a_break_inside_no_grad(x: torch.Tensor) -> Any:
    w = torch.ones(3, requires_grad=True)
    with torch.no_grad():
        y = w * x
        if y.sum() > 0:
            y = y + w
        z = y * 2
    return z, z.requires_grad, (w + z).requires_grad, torch.is_grad_enabled()


@contextlib.contextmanager
def noted(log: list[str]) -> Iterator[str]:
    log.append("enter")
    try:
        yield "inside"
    finally:
        log.append("exit")


@case(([], T), (["x"], U))
def a_users_context_manager(log: list[str], x: torch.Tensor) -> Any:
    with noted(log) as word:
        y = x + len(word)
        log.append(word)
    return y, log


@case((T, 1), (T, [1, 2]), (T, {"k": 3}), (T, "other"))
def a_match_statement(x: torch.Tensor, what: Any) -> Any:
    match what:
        case int(number):
            return x + number
        case [first, *rest]:
            return x * first, rest
        case {"k": value}:
            return x - value
        case _:
            return x


# -- calls ------------------------------------------------------------------------------------------------------


def helper(x: torch.Tensor, *rest: int, scale: float = 1.0, **more: int) -> torch.Tensor:
    return x * scale + sum(rest) + more.get("offset", 0)


@case((T,), (U,))
def calls_with_every_kind_of_argument(x: torch.Tensor) -> Any:
    pair, words = (1, 2), {"offset": 5}
    return helper(x), helper(x, 1, 2, scale=3.0), helper(x, *pair, **words), helper(scale=2.0, x=x)


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        return x + 1
    return x - 1


@case((T,), (-T,), (U,))
def a_break_in_a_callee(x: torch.Tensor) -> Any:
    y = x * 2
    z = branching(y) * 3
    return z + branching(-z), y


@case((T,), (-T,))
def recursion_is_followed(x: torch.Tensor) -> Any:
    def down(y: torch.Tensor, depth: int) -> torch.Tensor:
        return y if depth == 0 else down(y + depth, depth - 1)

    return down(x, 4)


@case((T,), (U,))
def a_generator_is_consumed(x: torch.Tensor) -> Any:
    def values() -> Iterator[torch.Tensor]:
        for k in range(3):
            yield x + k

    return list(values()), sum(values())


@case((T,), (U,))
def comprehensions_of_every_kind(x: torch.Tensor) -> Any:
    xs = [x * k for k in range(4) if k % 2]
    return xs, {k: x + k for k in range(2)}, {k % 2 for k in range(4)}, tuple(v.shape for v in xs)


@case((T,), (U,))
def builtins_over_sequences(x: torch.Tensor) -> Any:
    a = list(zip(range(3), "abc", strict=True))
    b = [(i, v + i) for i, v in enumerate([x, x * 2])]
    c = sorted([3, 1, 2], key=lambda k: -k)
    d = list(map(lambda v: v + 1, [x]))
    return a, b, c, d, max(1, 2), min([3, 2]), any([0, 1]), all([]), list(reversed([1, x])), len(b)


@case((T,), (U,))
def mathematics_and_partials(x: torch.Tensor) -> Any:
    double = functools.partial(torch.mul, other=2)
    return double(x), math.sqrt(4) * x, x**math.pi, -x, +x, abs(x), x // 2, x % 2, divmod(7, 2)


Point = collections.namedtuple("Point", ["x", "y"])


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any = 3


@case((T,), (U,))
def named_tuples_and_dataclasses(x: torch.Tensor) -> Any:
    point = Point(x, x + 1)
    pair = Pair(point.x * 2)
    pair.second += 1
    return point, pair, point._replace(y=0).y, isinstance(point, tuple)


@case((T,), (U,))
def strings_are_formatted(x: torch.Tensor) -> Any:
    return f"{x.shape!r:>30}|{x.dtype}", "%d-%s" % (x.dim(), "z"), "a,b".split(","), x + 1


@case((T,), (U,))
def item_and_tolist_are_values(x: torch.Tensor) -> Any:
    k = x[0].item()
    return x + k, int(x.sum()), x.tolist(), float(x[1]), bool(x[2] > 0)


@case((torch.ones(2, 3),), (torch.ones(4, 5),), (torch.ones(2, 3),))
def shapes_are_computed_with(x: torch.Tensor) -> Any:
    n, m = x.shape
    return x.reshape(m * n), x.size(0) + 1, x.new_zeros(n, m), torch.zeros(n), x.numel() / n


@case((T,), (U,))
def slices_and_ellipsis(x: torch.Tensor) -> Any:
    return x[..., None], x[:-1], x[[0, 2]], x[x > 0], x[None, 1:]


@case((T,), (U,))
def multiple_results_are_unpacked(x: torch.Tensor) -> Any:
    values, index = torch.topk(x, 2)
    first, *rest = torch.split(x, 1)
    result = torch.max(x, dim=0)
    return values, index, first, rest, result.values, result.indices


@case((T,), (U,))
def random_numbers_come_in_order(x: torch.Tensor) -> Any:
    a = torch.rand(3) + x
    print("between")
    return a, torch.rand(3), torch.nn.functional.dropout(x, 0.5)


@case((T,), (U,))
def sets_strings_and_slices_of_lists(x: torch.Tensor) -> Any:
    items: list[Any] = [1, 2, 3, 4]
    items[1:3] = [9]
    del items[0]
    items.insert(0, x)
    items.extend((5, 6))
    return items, items.pop(), items[::-1], (1, 2) + (3,), [x] * 2, 3 in items[1:]


@case((T,), (U,))
def backward_inside(x: torch.Tensor) -> Any:
    w = torch.ones(3, requires_grad=True)
    loss = (w * x).sum()
    loss.backward()  # type: ignore[no-untyped-call]  # torch's own stub
    return w.grad, loss


@case((T.clone().requires_grad_(),), (U.clone().requires_grad_(),))
def gradients_flow_through(x: torch.Tensor) -> Any:
    y = (x * x).sum()
    (grad,) = torch.autograd.grad(y, x)
    return y.detach(), grad


class Net(torch.nn.Module):
    seen: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList([torch.nn.Linear(3, 3), torch.nn.ReLU(), torch.nn.Linear(3, 3)])
        self.norm = torch.nn.BatchNorm1d(3)
        self.drop = torch.nn.Dropout(0.5)
        self.calls = 0
        self.register_buffer("seen", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        for layer in self.layers:
            x = layer(x)
        self.seen += 1
        y: torch.Tensor = self.drop(self.norm(x)) * self.calls
        return y


@case(
    (Net(), torch.ones(2, 3)),
    (Net().eval(), torch.ones(2, 3)),
    (Net(), torch.ones(4, 3)),
    (Net(), torch.ones(2, 3)),
)
def a_module_with_state(net: Net, x: torch.Tensor) -> Any:
    first = net(x)
    return first, net(x + 1), net.calls, net.seen


@pytest.mark.parametrize(("function", "calls"), CASES)
def test_a_program_looks_as_in_eager_python(function: Function, calls: tuple[tuple[Any, ...], ...]) -> None:
    def restore() -> None:
        global SCALE
        SCALE, COUNTER["n"] = 2.0, 0

    assert_like_eager(dynamo.optimize(backend), function, calls, before_each=restore)


# -- changes between calls --------------------------------------------------------------------------------------


def test_a_global_that_changes_between_calls_is_read_anew() -> None:
    global SCALE

    def f(x: torch.Tensor) -> torch.Tensor:
        return x * SCALE

    captured = dynamo.optimize(backend)(f)
    try:
        for value in (2.0, 3.0, 2.0, 3):
            SCALE = value
            assert torch.equal(captured(T), f(T))
            assert captured(T).dtype == f(T).dtype
    finally:
        SCALE = 2.0


def test_a_patched_callee_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        return helper(x) + 1

    captured = dynamo.optimize(backend)(f)
    assert torch.equal(captured(T), f(T))
    monkeypatch.setattr(__import__(__name__, fromlist=["helper"]), "helper", lambda x: x * 100)
    monkeypatch.setitem(f.__globals__, "helper", lambda x: x * 100)
    assert torch.equal(captured(T), T * 100 + 1)


@pytest.mark.parametrize(
    "change",
    [
        lambda net: net.eval(),
        lambda net: setattr(net, "norm", torch.nn.Identity()),
        lambda net: setattr(net.layers[0], "weight", torch.nn.Parameter(torch.ones(3, 3))),
        lambda net: net.layers[0].weight.data.fill_(2.0),
        lambda net: net.layers[0].register_forward_hook(lambda module, args, out: out * 2),
        lambda net: net.layers.append(torch.nn.Tanh()),
        lambda net: setattr(net, "forward", lambda x: x * 7),
        lambda net: net.double(),
        lambda net: [p.requires_grad_(False) for p in net.parameters()],
        lambda net: setattr(net.layers[0].weight, "data", torch.ones(3, 3) * 2),
        lambda net: setattr(net, "calls", 40),
    ],
    ids=[
        "eval",
        "submodule",
        "parameter",
        "values",
        "hook",
        "append",
        "forward",
        "double",
        "no-grad",
        "data",
        "attribute",
    ],
)
def test_a_module_changed_between_calls_is_seen(change: Callable[[Net], Any]) -> None:
    ours, theirs = Net(), Net()

    def call(net: Net, x: torch.Tensor) -> Any:
        return net(x)

    captured = dynamo.optimize(backend)(call)

    def compare(x: torch.Tensor) -> None:
        torch.manual_seed(1)
        expected = theirs(x)
        torch.manual_seed(1)
        result = captured(ours, x)
        assert torch.equal(result, expected)
        assert result.requires_grad == expected.requires_grad
        assert torch.equal(ours.seen, theirs.seen)

    for _ in range(3):
        compare(torch.ones(2, 3))
    change(ours)
    change(theirs)
    dtype = next(ours.parameters()).dtype
    for _ in range(3):
        compare(torch.ones(2, 3, dtype=dtype))
