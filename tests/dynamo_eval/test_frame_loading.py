"""What is loaded when: little with `import dynamo.eval` and `optimize`, the rest with the first capture, whole or not."""

from __future__ import annotations

from tests.oracle.process import run_python


def test_optimize_loads_nothing_that_only_captures_need() -> None:
    source = """
    import sys, torch
    import dynamo.eval
    once = set(sys.modules)
    assert not {name for name in once if name.startswith(("fx.", "dynamo."))} - {
        "dynamo.eval", "dynamo.eval._version", "dynamo.eval.loading"
    }
    f = dynamo.eval.optimize("eager")(lambda a, b: a + b)
    dynamo.eval.disable(lambda: None)
    dynamo.eval.reset()
    late = ("fx.codegen", "fx.trace", "dynamo.eval.bytecode", "dynamo.eval.capture", "dynamo.eval.models")
    assert not set(late) & set(sys.modules)
    print(f(torch.ones(2), torch.ones(2)).tolist(), set(late) <= set(sys.modules))
    """
    assert run_python(source) == "[2.0, 2.0] True\n"


MODES = {
    "inference mode": "torch.inference_mode()",
    "no grad": "torch.no_grad()",
    "meta device": "torch.device('meta')",
    "autocast": "torch.autocast('cpu')",
    "function mode": "Functions()",
    "dispatch mode": "Dispatches()",
}
UNDER_MODES = """
import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

seen = []
class Functions(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return func(*args, **(kwargs or {}))

class Dispatches(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        seen.append(str(func))
        return func(*args, **(kwargs or {}))
"""


def test_loading_under_modes_of_torch_is_not_seen_by_them_and_spoils_nothing() -> None:
    source = f"""
    with {", ".join(MODES.values())}:
        import dynamo.guards
    print(seen, dynamo.guards.native_status())
    """
    plainly = "import dynamo.guards\nprint([], dynamo.guards.native_status())"
    assert run_python(source, UNDER_MODES) == run_python(plainly)


def test_the_first_call_under_modes_of_torch_gives_what_eager_gives() -> None:
    source = f"""
    import logging, os
    from dynamo.eval import optimize
    logging.disable()
    def f(a):
        return (a @ a).sin() + torch.ones(3, device="cpu")
    g = optimize("eager")(f)
    a = torch.arange(9.).reshape(3, 3)
    for mode in {list(MODES.values())!r}:
        child = os.fork()
        if child == 0:
            def told(call):
                with eval(mode):
                    made = call(a)
                return made.tolist(), made.dtype, made.requires_grad, made.is_inference()
            first, second, eager = told(g), told(g), told(f)
            if not first == second == eager:
                print(mode, first, second, eager, sep="\\n", flush=True)
            os._exit(0)
        os.waitpid(child, 0)
    """
    assert run_python(source, UNDER_MODES) == ""


CUT_SHORT = """
import os, sys, logging, torch
from dynamo.eval import CompileCounter, optimize
logging.disable()
torch.set_num_threads(1)

def check(cut):
    # In a child: the first call is cut short, and the next function is captured all the same.
    child = os.fork()
    if child == 0:
        counter = CompileCounter()
        cut(optimize(counter)(lambda a: a - 1), torch.ones(2))
        second = optimize(counter)(lambda a, b: a * b)
        before = counter.frame_count
        right = second(torch.ones(2), torch.ones(2)).tolist() == [1.0, 1.0]
        os._exit(0 if right and counter.frame_count == before + 1 else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
"""


def test_capture_works_after_its_load_was_interrupted_anywhere() -> None:
    source = """
    class Interrupt:
        def __init__(self, after):
            self.left = after
        def find_spec(self, name, path, target=None):
            if name.startswith(("dynamo.", "fx.")):
                self.left -= 1
                if self.left == 0:
                    sys.meta_path.remove(self)
                    raise KeyboardInterrupt
    def interrupted(after):
        def cut(function, argument):
            sys.meta_path.insert(0, Interrupt(after))
            try:
                function(argument)
            except KeyboardInterrupt:
                return
            os._exit(9)  # there is no such module to load any more
        return cut
    outcomes = [check(interrupted(after)) for after in range(1, 400, 24)]
    print(outcomes.count(0) > 5, set(outcomes) <= {0, 9})
    """
    assert run_python(source, CUT_SHORT) == "True True\n"


def test_capture_works_after_its_load_ran_into_the_recursion_limit() -> None:
    source = """
    def deep(left):
        def cut(function, argument):
            def dive(left):
                return function(argument) if left == 0 else dive(left - 1)
            assert dive(left).tolist() == [0.0, 0.0]
        return cut
    print({check(deep(sys.getrecursionlimit() - 10 - left)) for left in range(5, 250, 18)})
    """
    assert run_python(source, CUT_SHORT) == "{0}\n"
