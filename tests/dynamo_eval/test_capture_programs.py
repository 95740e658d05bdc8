# mypy: disable-error-code="no-untyped-def, no-untyped-call, func-returns-value, no-redef, misc, var-annotated, no-any-return, operator, arg-type"
"""Captured programs against plain Python: values, mutation, identity, exceptions.

The programs are untyped as much user code is, so mypy's rules on definitions are off in this file.
"""

import collections
import copy
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
import torch

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def same(left: Any, right: Any) -> bool:
    if isinstance(left, torch.Tensor):
        return isinstance(right, torch.Tensor) and left.dtype == right.dtype and torch.equal(left, right)
    if type(left) is not type(right):
        return False
    if isinstance(left, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


class Pair(NamedTuple):
    first: torch.Tensor
    second: Any


class Counter:
    def __init__(self, start: int) -> None:
        self.count = start
        self.seen: list[torch.Tensor] = []

    @property
    def doubled(self) -> int:
        return self.count * 2

    def add(self, x: torch.Tensor) -> torch.Tensor:
        self.count += 1
        self.seen.append(x)
        return x * self.count


X = torch.tensor([1.0, -2.0, 3.0])
TOTAL = 0


def straight(x):
    y = torch.sin(x) + 2
    return y.relu() / 3


def branch(x):
    if x.sum() > 0:
        return x + 1
    return x - 1


def branch_both(x):
    y = x * 2
    if y.sum() > 0:
        y = y - 1
    z = y * 3
    if z.max() > 100:
        return z, y
    return y, z


def loop_over_data(x):
    n = 0
    while x.sum() < 50 and n < 5:
        x = x.abs() * 2
        n += 1
    return x, n


def unrolled(x):
    out = []
    for i in range(4):
        out.append(x * i)
    return torch.stack(out).sum(0), out


def printing(x):
    y = x + 1
    print("sum", y.sum().item())
    z = y * 2
    print("more", float(z[0]))
    return z - 1


def containers(x):
    d = {"a": x, "b": [x + 1, 2]}
    d["c"] = d.pop("a") * 2
    a, *rest = [x, 1, 2, d]
    return d, a, rest, (x, d["b"])


def closures(x):
    k = 2

    def inner(y):
        nonlocal k
        k += 1
        return y * k

    return inner(x) + inner(x), k


def closure_returned(x):
    k = 1

    def inner(y):
        nonlocal k
        k = k + 1
        return y * k

    first = inner(x)
    return first + inner(x) + k


def comprehension(x):
    return [x * i for i in range(3) if i != 1], {i: x + i for i in range(2)}


def tuples(x):
    p = Pair(x + 1, 3)
    q = p._replace(second=x)
    return p, q.first + q.second


def shapes(x):
    n = x.shape[0]
    return x.reshape(1, n).expand(2, n) + n * len(x.shape), x.dim(), x.dtype


def keyword(x, *, scale=2, **more):
    return x * scale + more.get("shift", 0)


def calls(x):
    return keyword(x, scale=3, shift=1) + keyword(x) + keyword(*[x], **{"shift": 5})


def raising(x):
    y = x + 1
    raise ValueError(f"bad {y.shape}")


def catching(x):
    try:
        y = x + 1
        d = {}
        y = y + d["missing"]
    except KeyError as error:
        y = x * 2
        return y, str(error)
    finally:
        x = x * 0
    return y, "none"


def with_no_grad(x):
    w = x.clone().requires_grad_(True)
    with torch.no_grad():
        y = w * 2
        print("inside", y.requires_grad)
        z = w * 3
    return y.requires_grad, z.requires_grad, (w * 2).requires_grad


def no_grad_plain(x):
    with torch.no_grad():
        y = x * 2
    return y + torch.is_grad_enabled()


def globals_change(x):
    global TOTAL
    TOTAL = TOTAL + 1
    return x * TOTAL


def nested_break(x):
    return helper_break(x + 1) * 2 + helper_break(x)


def helper_break(x):
    y = x * 3
    print("helper", y[0].item())
    return y + 1


def sorted_and_zip(x):
    items = sorted([3, 1, 2], key=lambda v: -v)
    return [x * a + b[1] for a, b in zip(items, enumerate(items), strict=False) if isinstance(b, tuple)]


def default_dict(x):
    d = collections.defaultdict(list)
    d["a"].append(x)
    d["a"].append(x + 1)
    return d["a"][1] + len(d)


def max_named(x):
    best = torch.max(x, dim=0)
    return best.values + 1, best.indices, best[0]


def in_place(x):
    y = x.clone()
    z = y
    y += 1
    y.mul_(2)
    y[0] = 7
    return y, z is y, z


def formatting(x):
    n = x.shape[0]
    return x + 1, f"{n:>4}|{n!r}|{'a'}"


def walrus_match(x):
    if (n := x.shape[0]) > 2:
        x = x + n
    match n:
        case 3:
            return x * 3
        case _:
            return x


def generator(x):
    return sum(v for v in gen(x))


def gen(x):
    yield x
    yield x + 1


def objects(x):
    c = Counter(3)
    y = c.add(x)
    return y + c.doubled, c.count, c.seen[0] is x


def chained(x):
    return x + 1 if 0 < x.shape[0] <= 3 else x - 1


def assertion(x):
    assert x.shape[0] == 3, "three"
    assert x.sum() > -100
    return x + 1


def star_import_free(x):
    import math

    return x * math.pi


def lambda_default(x):
    f = lambda y, n=2: y * n  # noqa: E731
    return f(x) + f(x, 3) + f(x, n=4)


def iterates_tensor(x):
    return [row * 2 for row in x], list(x.unbind())[0]


def item_branch(x):
    v = x[0].item()
    if v > 0:
        return x * v
    return x


def try_finally_break(x):
    out = []
    try:
        y = x + 1
        print("in try")
        out.append(y)
        return y * 2
    finally:
        out.append(x)
        print("finally", len(out))


def loop_with_break(x):
    total = x * 0
    for i in range(5):
        total = total + x * i
        print("turn", i)
        if i == 2:
            continue
        if i == 3:
            break
    else:
        total = total - 1
    return total, i


def delete_names(x):
    y = x + 1
    z = y * 2
    del y
    try:
        return y
    except NameError as error:
        return z, str(error)


PROGRAMS = [
    straight, branch, branch_both, loop_over_data, unrolled, printing, containers, closures, closure_returned,
    comprehension, tuples, shapes, calls, raising, catching, with_no_grad, no_grad_plain, globals_change,
    nested_break, sorted_and_zip, default_dict, max_named, in_place, formatting, walrus_match, generator, objects,
    chained, assertion, star_import_free, lambda_default, iterates_tensor, item_branch, try_finally_break,
    loop_with_break, delete_names,
]  # fmt: skip


def outcome(function: Callable[..., Any], *args: Any) -> tuple[str, Any]:
    try:
        return "value", function(*args)
    except Exception as error:
        return "raised", (type(error), str(error))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_a_captured_program_does_what_it_does_plainly(
    program: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    global TOTAL
    captured = dynamo.optimize("eager")(program)
    for x in (X, -X, X, torch.arange(3.0, dtype=torch.float64), X):
        TOTAL = 0
        expected = outcome(program, x.clone())
        printed = capsys.readouterr().out
        TOTAL = 0
        result = outcome(captured, x.clone())
        assert capsys.readouterr().out == printed
        assert same(result, expected), (result, expected)


def mutate_list(x, items):
    items.append(x)
    items[0] = x + 1
    return items


def mutate_dict(x, d):
    d["new"] = x * 2
    d.pop("old", None)
    return len(d)


def mutate_object(x, c):
    y = c.add(x)
    c.extra = y
    return y + c.doubled


def mutate_then_break(x, items):
    items.append(x + 1)
    print(len(items))
    items.append(x + 2)
    return items[-1] * 2


def mutate_then_raise(x, items):
    items.append(x)
    raise RuntimeError("after the append")


def swap_attributes(x, c):
    old = c.seen
    c.seen = [x]
    return old, c.seen


def aliased(x, items):
    other = items
    other.append(x)
    return other is items, len(items)


MUTATIONS = [
    (mutate_list, lambda: [1, 2]),
    (mutate_dict, lambda: {"old": 1, "keep": 2}),
    (mutate_object, lambda: Counter(1)),
    (mutate_then_break, lambda: [1]),
    (mutate_then_raise, lambda: [1]),
    (swap_attributes, lambda: Counter(5)),
    (aliased, lambda: []),
]


@pytest.mark.parametrize(("program", "make"), MUTATIONS, ids=lambda v: getattr(v, "__name__", ""))
def test_arguments_are_changed_as_they_are_plainly(
    program: Callable[..., Any], make: Callable[[], Any]
) -> None:
    captured = dynamo.optimize("eager")(program)
    for _ in range(3):
        plain, ours = make(), make()
        expected, result = outcome(program, X, plain), outcome(captured, X, ours)
        assert same(getattr(ours, "__dict__", ours), getattr(plain, "__dict__", plain))
        if not (isinstance(result[1], list) and result[1] is ours):
            assert same(result, expected)
        else:
            assert expected[1] is plain


def test_two_names_for_one_list_and_two_lists_are_told_apart() -> None:
    def f(x: torch.Tensor, a: list[Any], b: list[Any]) -> int:
        a.append(x + 1)
        return len(b)

    captured = dynamo.optimize("eager")(f)
    for _ in range(3):
        shared: list[Any] = []
        assert captured(X, shared, shared) == 1
        assert captured(X, [], [0, 1]) == 2
        assert captured(X, [1, 2], [1, 2]) == 2


class Block(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))
        self.norm = torch.nn.LayerNorm(3)
        self.drop = torch.nn.Dropout(0.5)
        self.names = torch.nn.ModuleDict({"a": torch.nn.Linear(3, 3)})
        self.steps = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.steps += 1
        return self.drop(self.norm(self.layers(x) + x)) + self.names["a"](x)


def test_modules_are_followed_and_their_state_is_guarded() -> None:
    torch.manual_seed(0)
    counter = CompileCounter()
    block = Block().eval()
    plain = copy.deepcopy(block)
    captured = dynamo.optimize(counter)(block)
    x = torch.randn(2, 3)
    for _ in range(3):
        assert torch.equal(captured(x), plain(x))
    block.train(), plain.train()
    torch.manual_seed(1)
    ours = captured(x)
    torch.manual_seed(1)
    assert torch.equal(ours, plain(x))
    with torch.no_grad():
        for module in (block, plain):
            module.names["a"].weight.fill_(0.5)
    block.eval(), plain.eval()
    assert torch.equal(captured(x), plain(x))
    assert block.steps == plain.steps
    block.layers[0].register_forward_hook(lambda module, args, out: out * 2)
    plain.layers[0].register_forward_hook(lambda module, args, out: out * 2)
    assert torch.equal(captured(x), plain(x))


def test_gradients_flow_through_a_captured_graph() -> None:
    def f(x: torch.Tensor) -> torch.Tensor:
        y = (x * 2).sin()
        print("between")
        return (y**2).sum()

    a, b = X.clone().requires_grad_(), X.clone().requires_grad_()
    dynamo.optimize("eager")(f)(a).backward()
    f(b).backward()
    assert torch.equal(a.grad, b.grad)
