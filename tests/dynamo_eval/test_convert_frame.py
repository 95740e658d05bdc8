"""What capture does when it cannot go on: the eager result, a logged reason; or an error when asked for one."""

import dis
import gc
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

import dynamo.eval as dynamo
from dynamo.eval.backends.testing import CompileCounter
from dynamo.eval.bytecode import create
from dynamo.eval.interpret.handlers import HANDLERS
from dynamo.guards import GuardBuilder, GuardBuildError


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def test_every_opcode_of_this_python_has_a_handler() -> None:
    normal = create._known_names()
    missing = {name for name in normal if name not in HANDLERS} - {"INTERPRETER_EXIT"}
    assert not missing, missing
    assert all(dis.opmap[name] is not None for name in dis.opmap)


def f(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) + 1


def test_a_guard_that_cannot_be_generated_leaves_the_eager_result(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(self: GuardBuilder, guard: Any) -> None:
        raise GuardBuildError(guard.name, "refused for the test")

    monkeypatch.setattr(GuardBuilder, "TENSOR_MATCH", refuse)
    x = torch.randn(3)
    with caplog.at_level(logging.WARNING, logger="dynamo.eval"):
        assert torch.equal(dynamo.optimize("eager")(f)(x), f(x))
    assert "refused for the test" in caplog.text
    assert "test_convert_frame.py" in caplog.text
    dynamo.reset()
    with pytest.raises(GuardBuildError, match="refused for the test"):
        dynamo.optimize("eager", nopython=True)(f)(x)


def test_an_opcode_without_handler_leaves_the_eager_result_and_is_named(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    import dynamo.eval.interpret.translator as translator

    without = {name: handler for name, handler in HANDLERS.items() if name != "BINARY_OP"}
    monkeypatch.setattr(translator, "HANDLERS", without)
    x = torch.randn(3)
    with caplog.at_level(logging.INFO, logger="dynamo.eval"):
        assert torch.equal(dynamo.optimize("eager")(f)(x), f(x))
    assert "missing: BINARY_OP" in caplog.text
    dynamo.reset()
    with pytest.raises(dynamo.Unsupported, match=r"missing: BINARY_OP.*test_convert_frame.py"):
        dynamo.optimize("eager", nopython=True)(f)(x)


def test_a_backend_that_returns_no_callable_is_named(caplog: pytest.LogCaptureFixture) -> None:
    x = torch.randn(3)
    with caplog.at_level(logging.WARNING, logger="dynamo.eval"):
        assert torch.equal(dynamo.optimize(lambda gm, inputs: 3)(f)(x), f(x))  # type: ignore[arg-type, return-value]  # on purpose
    assert "int" in caplog.text
    with pytest.raises(dynamo.BackendError):
        dynamo.optimize(lambda gm, inputs: 3, nopython=True)(f)(x * 1)  # type: ignore[arg-type, return-value]  # on purpose
        dynamo.reset()
        dynamo.optimize(lambda gm, inputs: 3, nopython=True)(f)(x)  # type: ignore[arg-type, return-value]  # on purpose


def test_an_unknown_backend_is_a_usage_error() -> None:
    with pytest.raises(dynamo.UsageError, match="eager"):
        dynamo.optimize("no such backend")


def test_cache_size_limit_ends_recapture_and_keeps_results(caplog: pytest.LogCaptureFixture) -> None:
    counter = CompileCounter()
    captured = dynamo.optimize(counter)(f)
    limits = dynamo.config.patch(cache_size_limit=2, automatic_dynamic_shapes=False)
    with limits, caplog.at_level(logging.WARNING, logger="dynamo.eval"):
        for size in range(1, 6):
            x = torch.randn(size)
            assert torch.equal(captured(x), f(x))
    assert counter.frame_count == 2
    assert "cache_size_limit" in caplog.text


def test_settings_are_restored_and_unknown_ones_refused() -> None:
    before = dynamo.config.cache_size_limit
    with dynamo.config.patch(cache_size_limit=1):
        assert dynamo.config.cache_size_limit == 1
    assert dynamo.config.cache_size_limit == before
    with pytest.raises(AttributeError, match="no_such"), dynamo.config.patch(no_such=1):
        pass


class Functions(TorchFunctionMode):
    """Notes the functions of torch that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Dispatches(TorchDispatchMode):  # type: ignore[no-untyped-call]  # torch leaves it untyped
    """Notes the operators that run."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch leaves it untyped
        self.seen: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize("kind", [Functions, Dispatches])
@pytest.mark.parametrize("nopython", [False, True])
def test_a_mode_of_the_user_sees_what_it_sees_of_eager_and_capture_comes_after_it(
    kind: type[Functions | Dispatches], nopython: bool
) -> None:
    def f(a: torch.Tensor) -> torch.Tensor:
        return (a @ a).sin() + 1

    def seen(call: Callable[[torch.Tensor], object]) -> list[str]:
        a = torch.ones(2, 2)
        mode = kind()
        with mode:
            call(a)
        return mode.seen

    counter = CompileCounter()
    captured = dynamo.optimize(counter, nopython=nopython)(f)
    assert seen(captured) == seen(captured) == seen(f)
    assert counter.frame_count == 0
    captured(torch.ones(2, 2))
    assert counter.frame_count == 1
    assert seen(captured) == seen(f)


def test_a_disabled_function_runs_plainly_between_two_graphs() -> None:
    @dynamo.disable
    def plain(x: torch.Tensor) -> torch.Tensor:
        assert not dynamo.is_compiling()
        return x * 2

    def g(x: torch.Tensor) -> torch.Tensor:
        return plain(x + 1) - 1

    counter = CompileCounter()
    x = torch.randn(3)
    assert torch.equal(dynamo.optimize(counter)(g)(x), g(x))
    assert counter.frame_count == 2


def test_graph_break_splits_and_is_compiling_is_true_in_capture() -> None:
    def g(x: torch.Tensor) -> torch.Tensor:
        y = x + (1 if dynamo.is_compiling() else 2)
        dynamo.graph_break()
        return y * 2

    counter = CompileCounter()
    x = torch.zeros(2)
    assert torch.equal(dynamo.optimize(counter)(g)(x), torch.full((2,), 2.0))
    assert counter.frame_count == 2


def test_explain_names_break_line_and_guards() -> None:
    def g(x: torch.Tensor) -> torch.Tensor:
        y = x + 1
        print(y.shape)
        return y * 2

    out = dynamo.explain(g)(torch.randn(2))
    assert (out.graph_count, out.graph_break_count, out.op_count) == (2, 1, 2)
    assert out.break_reasons[0].what == "print()"
    assert out.break_reasons[0].lineno == g.__code__.co_firstlineno + 2
    assert any("x" in guard for guards in out.guards for guard in guards)


def test_captures_with_reset_between_do_not_grow() -> None:
    def g(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        x = a / (torch.abs(a) + 1)
        if b.sum() < 0:
            b = b * -1
        return x * b

    a, b = torch.randn(4), torch.ones(4)

    def turn() -> None:
        captured = dynamo.optimize("eager")(g)
        captured(a, b)
        captured(a, -b)
        dynamo.reset()

    for _ in range(5):
        turn()
    gc.collect()
    objects, counts = len(gc.get_objects()), (sys.getrefcount(a), sys.getrefcount(b))
    for _ in range(20):
        turn()
    gc.collect()
    assert len(gc.get_objects()) - objects < 100
    assert (sys.getrefcount(a), sys.getrefcount(b)) == counts


_UNARY = ("torch.sin({})", "{}.abs()", "-{}", "torch.relu({})", "{} * 2", "{}.neg()", "1 - {}")
_BINARY = ("{} + {}", "{} * {}", "torch.maximum({}, {})", "{} - {}")


@st.composite
def sources(draw: st.DrawFn) -> str:
    """A function of two tensors: straight lines, and perhaps one branch on data."""
    names = ["a", "b"]
    lines = ["def f(a, b):"]

    def statements(count: int, indent: str) -> None:
        for _ in range(count):
            form = draw(st.sampled_from(_UNARY + _BINARY))
            operands = [draw(st.sampled_from(names)) for _ in range(form.count("{}"))]
            target = (
                draw(st.sampled_from([*names, f"v{len(names)}"]))
                if not indent
                else draw(st.sampled_from(names))
            )
            lines.append(f"    {indent}{target} = {form.format(*operands)}")
            if target not in names:
                names.append(target)

    statements(draw(st.integers(1, 5)), "")
    if draw(st.booleans()):
        lines.append(f"    if {draw(st.sampled_from(names))}.sum() > 0:")
        statements(draw(st.integers(1, 3)), "    ")
        if draw(st.booleans()):
            lines.append("    else:")
            statements(draw(st.integers(1, 3)), "    ")
    statements(draw(st.integers(0, 3)), "")
    lines.append(f"    return {', '.join(names)}")
    return "\n".join(lines)


@settings(max_examples=40, deadline=None)
@given(sources(), st.integers(0, 1000))
def test_generated_tensor_functions_give_the_eager_results(source: str, seed: int) -> None:
    namespace: dict[str, Any] = {"torch": torch}
    exec(compile(source, "<generated>", "exec"), namespace)
    plain: Callable[..., tuple[torch.Tensor, ...]] = namespace["f"]
    captured = dynamo.optimize("eager")(plain)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(4):
        a, b = torch.randn(3, generator=generator), torch.randn(3, generator=generator)
        for ours, theirs in zip(captured(a, b), plain(a, b), strict=True):
            assert torch.equal(ours, theirs)
