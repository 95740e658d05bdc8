# mypy: disable-error-code="no-untyped-def, no-untyped-call, misc, no-any-return, var-annotated"
"""`disable`, `skip` and their kin: what is marked, and what is not."""

import torch

import dynamo.eval as dynamo
from dynamo.eval import CompileCounter, CompileCounterWithBackend


def test_skip_marks_one_function_not_all_of_a_def() -> None:
    def make(factor):
        def scale(x):
            return x * factor

        return scale

    skipped, other = dynamo.skip(make(2)), make(3)
    counter = CompileCounter()
    for function in (skipped, other):
        assert torch.equal(dynamo.optimize(counter)(function)(torch.ones(2)), function(torch.ones(2)))
    assert counter.frame_count == 1


def test_a_skip_outlives_reset() -> None:
    @dynamo.skip
    def double(x):
        return x * 2

    dynamo.reset()
    counter = CompileCounter()
    dynamo.optimize(counter)(double)(torch.ones(2))
    assert counter.frame_count == 0


def test_disable_leaves_the_function_itself_as_it_was() -> None:
    def double(x):
        return x * 2

    disabled = dynamo.disable(double)

    def calls_both(x):
        return disabled(x + 1) - double(x)

    counter = CompileCounter()
    x = torch.ones(2)
    assert torch.equal(dynamo.optimize(counter)(calls_both)(x), calls_both(x))
    assert counter.frame_count == 2
    assert dynamo.explain(calls_both)(x).break_reasons[0].what.endswith("which is marked to run plainly")


def test_disable_takes_the_forms_of_a_decorator() -> None:
    class Model:
        @dynamo.disable(reason="prints")
        def show(self, x):
            return x + 1

        @dynamo.disable
        @staticmethod
        def plain(x):
            return x - 1

        def run(self, x):
            return self.show(x * 2) + self.plain(x)

    x = torch.ones(2)
    assert torch.equal(dynamo.optimize("eager")(Model().run)(x), Model().run(x))


def test_a_disabled_module_is_still_a_module() -> None:
    linear = torch.nn.Linear(2, 2)
    disabled = dynamo.disable(linear)
    assert list(disabled.parameters())[0] is linear.weight
    counter = CompileCounter()
    x = torch.ones(1, 2)
    assert torch.equal(dynamo.optimize(counter)(lambda x: disabled(x * 2) + 1)(x), linear(x * 2) + 1)


def test_a_captured_function_is_followed_by_another() -> None:
    @dynamo.optimize("eager")
    def inner(x):
        return x * 2

    counter = CompileCounter()
    captured = dynamo.optimize(counter, nopython=True)(lambda x: inner(x) + 1)
    assert torch.equal(captured(torch.ones(2)), torch.full((2,), 3.0))
    assert counter.op_count == 2


def test_a_counter_runs_the_backend_that_it_was_given() -> None:
    seen = []

    def backend(gm, example_inputs):
        seen.append(gm)
        return gm.forward

    counter = CompileCounterWithBackend(backend)
    dynamo.optimize(counter)(lambda x: x + 1)(torch.ones(2))
    assert (counter.frame_count, counter.op_count, len(seen)) == (1, 1, 1)


def test_config_is_patched_by_block_and_by_decorator() -> None:
    before = dynamo.config.cache_size_limit

    @dynamo.config.patch(cache_size_limit=3)
    def limit():
        return dynamo.config.cache_size_limit

    assert (limit(), limit(), dynamo.config.cache_size_limit) == (3, 3, before)
    with dynamo.config.patch(cache_size_limit=5):
        assert dynamo.config.cache_size_limit == 5
    assert dynamo.config.cache_size_limit == before
