# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, no-any-return, operator, arg-type"
"""Cases where a capture could give another result than Python: each is run both ways and compared.

The programs are untyped as much user code is, so mypy's rules on definitions are off in this file.
"""

import collections
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter

X = torch.tensor([1.0, -2.0, 3.0])


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def outcome(function: Callable[..., Any], *args: Any) -> tuple[str, Any]:
    """What a call gave or raised, as something that compares."""
    try:
        return "returned", plain(function(*args))
    except Exception as error:
        return "raised", (type(error), str(error))


def plain(value: Any) -> Any:
    """`value` with lists of numbers for tensors."""
    if isinstance(value, torch.Tensor):
        return str(value.dtype), value.tolist()
    if isinstance(value, list | tuple):
        return type(value), [plain(item) for item in value]
    if isinstance(value, dict):
        return type(value), [(key, plain(item)) for key, item in value.items()]
    return value


def check(function: Callable[..., Any], make: Callable[[], tuple[Any, ...]], calls: int = 3) -> None:
    """Captured and plain runs agree on the outcome and on what they leave in their arguments."""
    captured = dynamo.optimize("eager")(function)
    for _ in range(calls):
        expected_args, args = make(), make()
        assert outcome(captured, *args) == outcome(function, *expected_args)
        assert plain(list(args)) == plain(list(expected_args))


# -- hooks of all modules -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["forward_hook", "forward_pre_hook", "full_backward_hook"])
def test_a_global_module_hook_set_after_capture_runs(kind: str) -> None:
    layer = torch.nn.Linear(3, 3)
    counter = CompileCounter()

    @dynamo.optimize(counter)
    def step(x):
        return layer(x) * 2

    x = X.clone().requires_grad_()
    step(x)
    assert counter.frame_count == 1
    ran: list[str] = []
    register = getattr(torch.nn.modules.module, f"register_module_{kind}")
    handle = register(lambda module, *rest: ran.append(type(module).__name__))
    try:
        step(x).sum().backward()
        assert ran == ["Linear"]
    finally:
        handle.remove()
    step(x).sum().backward()
    assert ran == ["Linear"]


# -- containers that change while they are iterated ---------------------------------------------------------


def grow_dict(d, x):
    for key in d:
        d[key + "!"] = x + 1
    return d


def shrink_dict(d, x):
    for key in d.keys():
        x = x + d.pop(key)
    return x


def replace_the_last_key(d, x):
    for key in d:
        if key == "b":
            d["b"] = d.pop("b") + x
    return d


def write_values_while_iterating(d, x):
    total = x
    for _key, value in d.items():
        total = total + value
        d["b"] = x * 10
    return total


def swap_keys(d, x):
    for key in d:
        if key == "a":
            d["c"] = d.pop("a") + x
    return d


@pytest.mark.parametrize(
    "function", [grow_dict, shrink_dict, replace_the_last_key, write_values_while_iterating, swap_keys]
)
@pytest.mark.parametrize("kind", [dict, collections.OrderedDict])
def test_a_dict_changed_while_it_is_iterated_does_what_python_does(
    function: Callable[..., Any], kind: type
) -> None:
    check(function, lambda: (kind(a=X.clone(), b=X + 1), X.clone()))


def grow_a_set(s, x):
    for each in s:
        s.add(each + 1)
        x = x + each
    return x


def test_a_set_changed_while_it_is_iterated_does_what_python_does() -> None:
    check(grow_a_set, lambda: ({1}, X.clone()))


def append_while_iterating(xs, x):
    total = x
    for each in xs:
        if len(xs) < 6:
            xs.append(each + x)
        total = total + each
    return total


def remove_while_iterating(xs, x):
    total = x
    for i, each in enumerate(xs):
        total = total + each * i
        xs.pop(0)
    return total


def sort_while_iterating(xs, x):
    order = [3, 1, 2]
    for each in order:
        order.sort()
        x = x * each
    return x, order


def shrink_while_reversed(xs, x):
    for each in reversed(xs):
        x = x + each
        if len(xs) > 1:
            del xs[-2:]
    return x


def write_while_reversed(xs, x):
    for each in reversed(xs):
        x = x * 2 + each
        xs[0] = x
    return x


@pytest.mark.parametrize(
    "function",
    [
        append_while_iterating,
        remove_while_iterating,
        sort_while_iterating,
        shrink_while_reversed,
        write_while_reversed,
    ],
)
def test_a_list_changed_while_it_is_iterated_does_what_python_does(function: Callable[..., Any]) -> None:
    check(function, lambda: ([X + i for i in range(4)], X.clone()))


def ask_any(x, y):
    left = iter([x.sum() > 100, y.sum() > 100, x.sum() > 1])
    return any(left), len(list(left)), x + 1


def test_a_break_in_any_takes_nothing_from_the_iterator_twice() -> None:
    check(ask_any, lambda: (X.clone(), X + 50))
    check(ask_any, lambda: (X + 50, X.clone()))


# -- operations that raise on the values of their inputs ----------------------------------------------------

GOOD, BAD = torch.tensor([0, 2]), torch.tensor([0, 7])


def append_then_index(seen, x, index):
    seen.append(x + 1)
    return x[index] * 2


def store_then_index(seen, x, index):
    seen.append("before")
    y = x * 2
    y = y[index]
    seen.append("after")
    return y


def catch_the_index_error(seen, x, index):
    y = x + 1
    try:
        y = y[index]
        seen.append("indexed")
    except IndexError:
        seen.append("caught")
        y = y * 10
    return y


def catch_in_a_callee(seen, x, index):
    def pick(value):
        try:
            return value[index]
        except IndexError:
            return value * 100

    y = pick(x + 1) + 1
    seen.append("picked")
    return y


def run_finally(seen, x, index):
    try:
        y = x[index] + 1
    finally:
        seen.append("left")
    return y


def write_then_index(seen, x, index):
    x.add_(1)
    seen.append("written")
    y = x[index]
    x.mul_(3)
    return y


def write_and_catch(seen, x, index):
    x.add_(1)
    try:
        y = x[index] + 1
    except IndexError:
        y = x * 2
    x.add_(5)
    return y


def keep_values_and_break(seen, x, index):
    seen.append(x * 2)
    y = x[index]
    seen.append(float(y.sum()))
    return y + 1


class Leaving:
    def __init__(self, seen):
        self.seen = seen

    def __enter__(self):
        return self

    def __exit__(self, kind, value, traceback):
        self.seen.append(kind is None)
        return True


def swallow_in_a_context(seen, x, index):
    y = x
    with Leaving(seen):
        y = x[index] + 1
    return y


def append_in_a_loop(seen, x, index):
    for i in range(3):
        seen.append(i)
        x = x + x[index].sum()
    return x


@pytest.mark.parametrize(
    "function",
    [
        append_then_index,
        store_then_index,
        catch_the_index_error,
        catch_in_a_callee,
        run_finally,
        write_then_index,
        write_and_catch,
        keep_values_and_break,
        swallow_in_a_context,
        append_in_a_loop,
    ],
)
def test_a_graph_that_raises_leaves_what_python_leaves(function: Callable[..., Any]) -> None:
    captured = dynamo.optimize("eager")(function)
    for index in (GOOD, BAD, GOOD, BAD):
        expected_args: tuple[Any, ...] = ([], X.clone(), index)
        args: tuple[Any, ...] = ([], X.clone(), index)
        assert outcome(captured, *args) == outcome(function, *expected_args)
        assert plain(list(args)) == plain(list(expected_args))


def test_random_numbers_are_not_drawn_twice_when_a_graph_raises() -> None:
    def step(seen, x, index):
        y = torch.nn.functional.dropout(x, 0.5)
        seen.append(y)
        return y[index]

    captured = dynamo.optimize("eager")(step)
    for index in (GOOD, BAD):
        left: list[Any] = []
        right: list[Any] = []
        torch.manual_seed(0)
        expected = outcome(step, left, X, index), torch.rand(1).item()
        torch.manual_seed(0)
        assert (outcome(captured, right, X, index), torch.rand(1).item()) == expected
        assert plain(left) == plain(right)


def test_running_statistics_are_not_updated_twice_when_a_graph_raises() -> None:
    seen: list[str] = []
    plain_norm, norm = torch.nn.BatchNorm1d(3), torch.nn.BatchNorm1d(3)

    def step(norm, x, index):
        y = norm(x)
        seen.append("normalised")
        return y[index]

    captured = dynamo.optimize("eager")(step)
    x = torch.randn(4, 3)
    for index in (GOOD, BAD):
        assert outcome(captured, norm, x, index) == outcome(step, plain_norm, x, index)
        assert plain(list(norm.buffers())) == plain(list(plain_norm.buffers()))
    assert len(seen) == 4


def test_an_effect_beside_operations_that_cannot_raise_stays_in_one_graph() -> None:
    counter = CompileCounter()
    seen: list[torch.Tensor] = []

    @dynamo.optimize(counter)
    def step(x):
        y = torch.nn.functional.dropout(x, 0.5)
        seen.append(y)
        return torch.relu(y) / 2

    step(X)
    assert counter.frame_count == 1 and len(seen) == 1


def test_a_divisor_of_zero_raises_after_the_effects_before_it() -> None:
    def step(seen, x, y):
        seen.append(x)
        return x // y

    captured = dynamo.optimize("eager")(step)
    for divisor in (2, 0):
        left: list[Any] = []
        right: list[Any] = []
        args = torch.tensor([4, 6]), torch.tensor([divisor, divisor])
        assert outcome(captured, left, *args) == outcome(step, right, *args)
        assert plain(left) == plain(right)


def test_capture_of_a_frame_that_raises_still_runs_the_graph_when_it_does_not() -> None:
    counter = CompileCounter()
    captured = dynamo.optimize(counter)(append_then_index)
    for index in (GOOD, BAD, GOOD):
        left: list[Any] = []
        right: list[Any] = []
        assert outcome(captured, left, X, index) == outcome(append_then_index, right, X, index)
        assert plain(left) == plain(right)
    assert counter.frame_count == 1
    assert counter.op_count == 3


def test_an_interrupt_of_a_graph_is_not_taken_for_a_failure() -> None:
    runs: list[int] = []

    def interrupted(module: Any, inputs: list[torch.Tensor]) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            runs.append(1)
            raise KeyboardInterrupt

        return run

    with pytest.raises(KeyboardInterrupt):
        dynamo.optimize(interrupted)(append_then_index)([], X, GOOD)
    assert runs == [1]


def test_a_probability_out_of_range_raises_after_the_effects_before_it() -> None:
    def step(seen, x):
        seen.append("before")
        return torch.zeros_like(x).bernoulli_(2.0)

    check(step, lambda: ([], X.clone()))


def test_capture_keeps_no_value_alive_that_eager_python_frees() -> None:
    """A finaliser that runs late is an effect out of order: here it must empty the dict while it is iterated."""

    class Ending(int):
        def __del__(self) -> None:
            items.clear()

    items: dict[int, object] = {key: Ending(key) for key in range(8)}

    def replace_one() -> None:
        for key, _ in items.items():
            if key == 2:
                items[2] = None

    with pytest.raises(RuntimeError, match="changed size"):
        dynamo.optimize("eager")(replace_one)()
