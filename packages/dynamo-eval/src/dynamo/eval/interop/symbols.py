"""Sizes and integers as symbols, by torch's ``ShapeEnv``: imported only when the first of them becomes one.

A value is called ``v0``, ``v1``, … inside; `SymbolicSizes.relations` gives what must hold between the values in terms of
these numbers, so that the caller can put its own sources in their place.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, final

import sympy  # type: ignore[import-untyped]  # it has no types
import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import GuardSource, SLoc, Source
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental import symbolic_shapes
from torch.fx.experimental.symbolic_shapes import (
    ConstraintViolationError,
    DimDynamic,
    RelaxedUnspecConstraint,
    ShapeEnv,
    StatelessSymbolicContext,
    StrictMinMaxConstraint,
)
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.value_ranges import ValueRanges

_VALUE: Final = re.compile(r"\bv(\d+)\b")
_CONSTANT_PROPERTY: Final = re.compile(r"^(v\d+)\.(size|stride|storage_offset)\(\)(\[\d+\])? == -?\d+$")
#: stands before the user's line in what torch writes behind an expression
_MARK: Final = "\N{SYMBOL FOR DATA LINK ESCAPE}"
_PLACE: Final = re.compile(_MARK + r"(.+?):(\d+)\)")
_FUNCTIONS: Final = {**symbolic_shapes.SYMPY_INTERP, "__builtins__": {"min": min, "max": max, "abs": abs}}


class _Named(Source):
    """A value by its number."""

    def __init__(self, text: str) -> None:
        object.__setattr__(self, "text", text)

    def __hash__(self) -> int:
        return hash(self.text)  # type: ignore[attr-defined]  # set around the frozen base class

    def __eq__(self, other: object) -> bool:
        return type(other) is _Named and other.text == self.text  # type: ignore[attr-defined]  # see __init__

    @property
    def guard_source(self) -> GuardSource:
        return GuardSource.LOCAL

    @property
    def _name_template(self) -> str:
        return self.text  # type: ignore[attr-defined,no-any-return]  # see __init__


if callable(Source.name):  # up to torch 2.9 the name is a method

    def _name(self: _Named) -> str:
        return self._name_template

    _Named.name = _name  # type: ignore[assignment,method-assign]  # as the base class of that torch has it


@dataclass(frozen=True, slots=True)
class DimPlan:
    """What is known of one dimension before capture: free or not, and the bounds that the user promised."""

    free: bool = False
    demanded: bool = False
    low: int | None = None
    high: int | None = None


#: file and line of the user's code
Place = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Relation:
    """An expression over values: ``template`` with ``{0}``, ``{1}`` for the values numbered in ``values``.

    ``place`` is what made it necessary: None where that is no line of the user's.
    """

    template: str
    values: tuple[int, ...]
    holds: Callable[..., object]
    place: Place | None = None


class _PlacedEnv(ShapeEnv):
    """A ``ShapeEnv`` that notes with each guard the user's line, in place of torch's own stack.

    Attributes:
        place: gives the line that runs now.
    """

    place: Callable[[], Place | None] | None = None

    def _get_stack_summary(
        self, is_debug: bool = False, framework_loc: str | None = None
    ) -> tuple[SLoc, str]:
        found = self.place() if self.place is not None else None
        return SLoc(_MARK + f"{found[0]}:{found[1]}" if found is not None else "", None), ""


class DemandError(ValueError):
    """The user demanded that a dimension is free, and it cannot be.

    Attributes:
        relations: what capture and backend took for granted.
    """

    def __init__(self, words: str, relations: list[Relation]) -> None:
        super().__init__(words)
        self.relations = relations


@final
class SymbolicSizes:
    """The symbols of one capture.

    Args:
        place: gives the user's line that runs now, None while none does.
    """

    def __init__(self, place: Callable[[], Place | None]) -> None:
        self.env = _PlacedEnv()
        self.env.place = place
        self._inputs: list[Any] = []
        self._contexts: list[Any] = []
        self._free: dict[int, frozenset[int]] = {}  # by input, its free dimensions

    def attach(self, mode: FakeTensorMode) -> None:
        """Make `mode` compute with symbols."""
        mode.shape_env = self.env
        mode.static_shapes = False

    def tensor(self, mode: FakeTensorMode, value: torch.Tensor, plans: Sequence[DimPlan]) -> torch.Tensor:
        """The fake tensor of a plain strided one; the free dimensions become symbols.

        Sizes of 0 and 1 never become symbols: torch computes with them differently (broadcasting, empty results).
        """
        source = _Named(f"v{len(self._inputs)}")
        dims = [DimDynamic.DUCK if plan.free else DimDynamic.STATIC for plan in plans]
        context: Any = StatelessSymbolicContext(
            dynamic_sizes=[DimDynamic.DYNAMIC if p.demanded else d for p, d in zip(plans, dims, strict=True)],
            constraint_sizes=[_constraint(plan) for plan in plans],
        )
        with self._placeless():
            sizes, strides, offset = self.env.create_symbolic_sizes_strides_storage_offset(
                value, source, symbolic_context=context
            )
        with torch._C._DisableFuncTorch():
            meta = torch.empty_strided(sizes, strides, dtype=value.dtype, device="meta")
        fake: torch.Tensor = fake_tensor.FakeTensor(mode, meta, value.device)
        if type(value) is torch.nn.Parameter:
            fake = torch.nn.Parameter(fake, requires_grad=value.requires_grad)
        elif value.requires_grad:
            fake.requires_grad_()
        self._add(fake, context, frozenset(dim for dim, plan in enumerate(plans) if plan.free))
        return fake

    def other_tensor(self, fake: torch.Tensor) -> None:
        """Count a tensor whose sizes are all fixed."""
        self._add(fake, None, frozenset())

    def integer(self, value: int) -> torch.SymInt:
        """The symbol of an integer."""
        source = _Named(f"v{len(self._inputs)}")
        with self._placeless():
            symbol = self.env.create_unspecified_symint_and_symbol(value, source, DimDynamic.DYNAMIC)
        assert isinstance(symbol, torch.SymInt)
        self._add(symbol, None, frozenset())
        return symbol

    def operators(self) -> contextlib.AbstractContextManager[None]:
        """Operators made of others are taken apart in Python, as in torch's own capture: in C++ some read sizes as numbers."""
        return enable_python_dispatcher()

    @contextlib.contextmanager
    def _placeless(self) -> Iterator[None]:
        """For bounds that symbols are born with: no line of the user's made them necessary."""
        place, self.env.place = self.env.place, None
        try:
            yield
        finally:
            self.env.place = place

    def _add(self, value: Any, context: Any, free: frozenset[int]) -> None:
        self._free[len(self._inputs)] = free
        self._inputs.append(value)
        self._contexts.append(context)

    def pristine(self, mode: FakeTensorMode, value: Any) -> Any:
        """An input as it was before the graph, in a mode of its own: for backends that compute with fakes themselves."""
        if not isinstance(value, torch.Tensor):
            return value
        meta = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="meta")
        fake: torch.Tensor = fake_tensor.FakeTensor(mode, meta, value.device)
        if type(value) is torch.nn.Parameter:
            return torch.nn.Parameter(fake, requires_grad=value.requires_grad)
        return fake.requires_grad_(value.requires_grad and value.is_leaf)

    def relations(self) -> list[Relation]:
        """What capture and backend took for granted about the symbols.

        Raises:
            DemandError: the user demanded that a dimension is free, and it cannot be.
        """
        self.env.place = None
        try:
            found = self._relations(self._contexts)
        except ConstraintViolationError as error:
            undemanded = [context and _without_demands(context) for context in self._contexts]
            raise DemandError(str(error), self._relations(undemanded)) from error
        return found

    def _relations(self, contexts: Sequence[Any]) -> list[Relation]:
        texts, placed = self.env.produce_guards_verbose(
            self._inputs,
            [_Named(f"v{index}") for index in range(len(self._inputs))],
            source_ref=_reference,
            input_contexts=contexts,  # type: ignore[arg-type]  # None stands for what has no context
            ignore_static=False,
            langs=("python", "verbose_python"),
        )
        places: dict[str, Place | None] = {}
        for text, verbose in zip(texts.exprs, placed.exprs, strict=True):
            places[text] = places.get(text) or _place_in(verbose)
        return [_relation(text, place) for text, place in places.items() if self._matters(text)]

    def _matters(self, text: str) -> bool:
        """Whether the tensor guards do not tell already: all strides of a tensor with a free size are free to them."""
        constant = _CONSTANT_PROPERTY.match(text)
        if constant is None:
            return True
        name, what, place = constant.groups()
        free = self._free[int(name[1:])]
        if what == "size":
            return int(place[1:-1]) in free
        return what == "stride" and bool(free)


def _reference(source: Source) -> str:
    name: Any = source.name
    return str(name() if callable(name) else name)


def _constraint(plan: DimPlan) -> Any:
    if not plan.demanded:
        return None
    if plan.low is None and plan.high is None:
        return RelaxedUnspecConstraint(warn_only=False)
    bounds = ValueRanges(
        sympy.Integer(max(2, plan.low or 2)),
        sympy.Integer(plan.high) if plan.high is not None else int_oo,
    )
    return StrictMinMaxConstraint(vr=bounds, warn_only=False)


def _without_demands(context: Any) -> Any:
    """The context of a tensor with nothing demanded of its sizes."""
    return StatelessSymbolicContext(dynamic_sizes=context.dynamic_sizes)


def _place_in(verbose: str) -> Place | None:
    """The user's line that torch wrote behind an expression."""
    found = _PLACE.search(verbose)
    return (found[1], int(found[2])) if found is not None else None


def _relation(text: str, place: Place | None) -> Relation:
    numbers = tuple(dict.fromkeys(int(number) for number in _VALUE.findall(text)))
    places = {number: place for place, number in enumerate(numbers)}
    names = ", ".join(f"v{number}" for number in numbers)
    holds: Callable[..., object] = eval(f"lambda {names}: {text}", dict(_FUNCTIONS))
    escaped = text.replace("{", "{{").replace("}", "}}")
    template = _VALUE.sub(lambda match: "{" + str(places[int(match[1])]) + "}", escaped)
    return Relation(template, numbers, holds, place)
