"""What `optimize` and `disable` make of each kind of callable: as the original, to whoever looks at it."""

import abc
import copy
import functools
import inspect
import pickle
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import dynamo.eval as dynamo
from dynamo.eval import _frame

ONE = torch.ones(2)


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    dynamo.reset()
    yield
    dynamo.reset()


def plain_function(x: torch.Tensor, *, scale: int = 2) -> torch.Tensor:
    """Scale."""
    return x * scale


@dynamo.optimize("eager")
def decorated(x: torch.Tensor, *, scale: int = 2) -> torch.Tensor:
    """Scale."""
    return x * scale


class Kinds:
    factor = 3

    @dynamo.optimize("eager")
    def method(self, x: torch.Tensor) -> torch.Tensor:
        return x * self.factor

    @classmethod
    @dynamo.optimize("eager")
    def inside_class(cls, x: torch.Tensor) -> torch.Tensor:
        return x * cls.factor

    @dynamo.optimize("eager")  # type: ignore[type-var, arg-type, untyped-decorator, unused-ignore]  # taken at run time
    @classmethod
    def around_class(cls, x: torch.Tensor) -> torch.Tensor:
        return x * cls.factor

    @staticmethod
    @dynamo.optimize("eager")
    def inside_static(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @dynamo.optimize("eager")
    @staticmethod
    def around_static(x: torch.Tensor) -> torch.Tensor:
        return x * 3

    @property
    @dynamo.optimize("eager")
    def inside_property(self) -> torch.Tensor:
        return ONE * self.factor

    def _get(self) -> torch.Tensor:
        return ONE * self.factor

    def _set(self, value: torch.Tensor) -> None:
        self.stored = value + 1

    around_property = dynamo.optimize("eager")(property(_get, _set, None, "Doc."))  # type: ignore[type-var]  # as above


class Derived(Kinds):
    factor = 4


@pytest.mark.parametrize("name", ["method", "inside_class", "around_class", "inside_static", "around_static"])
def test_methods_of_each_kind_are_captured_and_bind_as_python_does(name: str) -> None:
    for owner in (Kinds(), Derived()):
        factor = 3 if "static" in name else owner.factor
        for _ in range(2):
            assert torch.equal(getattr(owner, name)(ONE), ONE * factor)
    assert _frame.stats()["hits"] >= 1
    assert _frame.stats()["captures"] >= 1


def test_properties_are_captured_with_setter_and_doc() -> None:
    owner = Kinds()
    for _ in range(2):
        assert torch.equal(owner.inside_property, ONE * 3)
        assert torch.equal(owner.around_property, ONE * 3)
        owner.around_property = ONE
        assert torch.equal(owner.stored, ONE + 1)
    assert Kinds.__dict__["around_property"].__doc__ == "Doc."
    assert type(Kinds.__dict__["around_class"]) is classmethod
    assert type(Kinds.__dict__["around_static"]) is staticmethod
    with pytest.raises(AttributeError, match="no deleter"):
        del owner.around_property
    assert _frame.stats()["captures"] == 3


def test_what_is_no_callable_is_refused() -> None:
    for value in (5, "text", [plain_function]):
        with pytest.raises(dynamo.UsageError, match="not callable"):
            dynamo.optimize("eager")(value)  # type: ignore[type-var]


def test_optimizing_twice_captures_once() -> None:
    counter = dynamo.CompileCounter()
    twice = dynamo.optimize(counter)(dynamo.optimize("eager")(plain_function))
    assert torch.equal(twice(ONE), ONE * 2)
    assert torch.equal(twice(ONE), ONE * 2)
    assert twice.__wrapped__ is plain_function  # type: ignore[attr-defined]
    assert counter.frame_count == 1


def test_disabling_an_optimized_function_runs_it_plainly() -> None:
    counter = dynamo.CompileCounter()

    def function(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    off = dynamo.disable(dynamo.optimize(counter)(function))
    assert torch.equal(off(ONE), ONE + 1)
    assert counter.frame_count == 0

    def around(x: torch.Tensor) -> torch.Tensor:
        return off(x * 2) * 3

    again = dynamo.optimize(counter)(around)
    assert torch.equal(again(ONE), (ONE * 2 + 1) * 3)
    assert counter.frame_count == 2  # both sides of the call


def test_it_looks_like_the_function() -> None:
    entry: Any = decorated
    assert inspect.signature(entry) == inspect.signature(plain_function)
    assert entry.__doc__ == "Scale."
    assert (entry.__name__, entry.__qualname__, entry.__module__) == ("decorated", "decorated", __name__)
    assert entry.__kwdefaults__ == {"scale": 2}
    assert entry.__annotations__ == plain_function.__annotations__ or entry.__annotations__
    assert entry.__code__.co_name == "decorated"
    assert inspect.getsource(entry).splitlines()[1].startswith("def decorated")
    assert inspect.isroutine(entry)
    assert not inspect.iscoroutinefunction(entry)
    assert callable(entry) and hash(entry) == hash(entry)
    assert pickle.loads(pickle.dumps(entry)) is entry
    assert copy.copy(entry) is entry and copy.deepcopy(entry) is entry
    reference: weakref.ref[Any] = weakref.ref(entry)
    assert reference() is entry
    vars(entry)["note"] = 5
    assert getattr(entry, "note") == 5  # noqa: B009 - as anyone may
    delattr(entry, "note")
    assert not hasattr(entry, "note")


def test_methods_and_partials_of_it_pickle_and_copy() -> None:
    owner = Kinds()
    bound = pickle.loads(pickle.dumps(owner.method))
    assert torch.equal(bound(ONE), ONE * 3)
    copied = copy.deepcopy(owner)
    assert torch.equal(copied.method(ONE), ONE * 3)
    part = functools.partial(decorated, scale=5)
    assert torch.equal(pickle.loads(pickle.dumps(part))(ONE), ONE * 5)


def test_it_can_be_wrapped_dispatched_and_declared_abstract() -> None:
    @functools.wraps(decorated)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return decorated(*args, **kwargs)

    assert inspect.signature(outer) == inspect.signature(plain_function)
    assert inspect.unwrap(outer).__name__ == "decorated"

    class Base(abc.ABC):
        @dynamo.optimize("eager")
        @abc.abstractmethod
        def run(self, x: torch.Tensor) -> torch.Tensor: ...

    with pytest.raises(TypeError, match="abstract"):
        Base()  # type: ignore[abstract]

    class Cached:
        @functools.cached_property
        @dynamo.optimize("eager")
        def value(self) -> torch.Tensor:
            return ONE + 1

        @functools.singledispatchmethod
        @dynamo.optimize("eager")
        def kind(self, value: object) -> str:
            return "object"

    assert torch.equal(Cached().value, ONE + 1)
    assert Cached().kind(5) == "object"


#: a parameter list, and what the function returns of it
SIGNATURES = [
    "x", "x, y", "x, y=2", "x, /, y", "x, /, y=2, *, z", "x, *, y, z=3", "x, *args", "x, **kwargs", "x, /, **kwargs",
    "x, y=2, *args, z, **kwargs", "*args", "**kwargs", "x=1, *, y=2", "",
]  # fmt: skip


def made(signature: str) -> Callable[..., Any]:
    names = [part.split("=")[0].strip(" *") for part in signature.split(",")]
    parts = ", ".join(name for name in names if name and name != "/")
    namespace: dict[str, Any] = {"ONE": ONE}
    exec(f"def function({signature}):\n    return ONE + 1, ({parts}{',' if parts else ''})\n", namespace)
    function: Callable[..., Any] = namespace["function"]
    return function


FUNCTIONS = {signature: made(signature) for signature in SIGNATURES}
ENTRIES = {signature: dynamo.optimize("eager")(function) for signature, function in FUNCTIONS.items()}


def outcome(call: Callable[..., Any], args: list[int], kwargs: dict[str, int]) -> tuple[str, Any]:
    try:
        tensor, rest = call(*args, **kwargs)
    except TypeError as error:
        return "raised", str(error)
    return "returned", (tensor.tolist(), rest)


@given(
    signature=st.sampled_from(SIGNATURES),
    args=st.lists(st.integers(0, 1), max_size=4),
    kwargs=st.dictionaries(st.sampled_from(["x", "y", "z", "w"]), st.integers(0, 1), max_size=3),
)
def test_a_captured_function_takes_and_refuses_arguments_as_eager(
    signature: str, args: list[int], kwargs: dict[str, int]
) -> None:
    expected = outcome(FUNCTIONS[signature], args, kwargs)
    assert outcome(ENTRIES[signature], args, kwargs) == expected
