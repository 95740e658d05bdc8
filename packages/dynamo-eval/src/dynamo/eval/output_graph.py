"""The graph that a capture writes, with its inputs, guards and fake values.

`OutputGraph` is an `fx.trace` tracer: it owns an `fx.ir.Graph`, appends one node per torch call and runs
the same call on fake tensors to know what comes out. It knows nothing of bytecode and nothing of the
variables that stand for Python values; those hold its nodes.
"""

import contextlib
import functools
import itertools
import linecache
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import TYPE_CHECKING, Any, Final, Literal

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from dynamo.eval.ambient_state import SETTERS, read_ambient, restore_ambient
from dynamo.eval.effects import EffectLog
from dynamo.eval.errors import BackendError, GraphBreak, UsageError
from dynamo.eval.fake import data_dependent, fake_of
from dynamo.eval.rerun import WatchingFakeMode
from dynamo.eval.sizes import NeedsSymbols, SizePolicy
from dynamo.guards import AmbientSource, GlobalSource, Guard, GuardBuilder, ItemSource, Source
from fx.codegen import GraphModule
from fx.ir import Graph, Node
from fx.trace import TracerBase

if TYPE_CHECKING:
    from dynamo.eval.interop.symbols import Relation, SymbolicSizes

#: numbers that are known only when the graph runs
SYMBOLS: Final = (torch.SymInt, torch.SymFloat, torch.SymBool)
CallKind = Literal["call_function", "call_method"]
Backend = Callable[[GraphModule, list[torch.Tensor]], Callable[..., Any]]

#: what torch says about settings and options of its own
_ABOUT_TORCH: Final = re.compile(
    r' For more information, run with TORCH_LOGS="\+dynamic"\.| If you\'re using Dim\.[^\n]*'
)

#: torch functions that change the ambient state: a graph holding one is run under a restorer.
AMBIENT: Final = frozenset(SETTERS)


@dataclass(frozen=True, slots=True)
class GraphInput:
    """One placeholder: where its value comes from at a call, and the value seen at capture.

    A tensor, or an integer that varies, whose `fake` is a symbol.
    """

    source: Source
    node: Node
    value: torch.Tensor | int
    fake: torch.Tensor | torch.SymInt
    version: int

    @property
    def is_buffer(self) -> bool:
        """Whether the value may be a running statistic, which some operators update unknown to their schema."""
        return isinstance(self.fake, torch.Tensor) and not self.fake.requires_grad

    @property
    def is_untouched(self) -> bool:
        """Whether the graph provably leaves the value as it is."""
        if not isinstance(self.fake, torch.Tensor):
            return True
        return self.version >= 0 and _version(self.fake) == self.version


class OutputGraph(TracerBase):
    """One graph in the making.

    Attributes:
        graph: the nodes so far.
        inputs: placeholders in order, each with its `Source`.
        guards: what must hold for the graph to be right, in the order it was found out.
        effects: what is to be replayed after the graph.
        calls: number of torch calls in the graph.
        root_step: number of the root frame's step that runs now.
        handled: variables of the exceptions that are being handled, innermost last.
        generators: variables of all generators that were made.
        guarded_block: whether code ran whose exceptions the user's code may handle.
        classes_written: whether an attribute of a class was stored.
        sizes: decides which sizes and integers are symbols; None takes all as they are.
        symbols: those that are, None while there are none.
        frames: for each frame that runs symbolically, outermost first, what gives its line; None for a frame of torch.
    """

    record_locations = False

    def __init__(
        self,
        is_disabled: Callable[[CodeType], bool] = lambda code: False,
        sizes: SizePolicy | None = None,
        with_symbols: bool = False,
    ) -> None:
        super().__init__()
        self.sizes = sizes
        self.symbols = self._new_symbols() if with_symbols else None
        self.frames: list[Callable[[], tuple[str, int] | None]] = []
        self.is_disabled = is_disabled
        self.root_namespace: dict[str, Any] = {}
        self.steps = 0
        self.graph = Graph()
        self.inputs: list[GraphInput] = []
        self.guards: dict[tuple[str, str], Guard] = {}
        self.effects = EffectLog()
        self.fake_mode = WatchingFakeMode()
        if self.symbols is not None:
            self.symbols.attach(self.fake_mode)
        self.symbol_sources: list[Source] = []
        self.input_names: set[str] = set()
        self.integers: dict[str, tuple[Node, torch.SymInt]] = {}
        self.size_nodes: dict[tuple[Node, int], Node] = {}
        self.wrapped: dict[int, tuple[object, Any]] = {}
        self.tensors: dict[int, Any] = {}
        self.calls = 0
        self.inlined = 0
        self.ambient_changed = False
        self.guarded_block = False
        self.root_step = 0
        self.handled: list[Any] = []
        self.generators: list[Any] = []
        self.classes_written = False
        self.guard(AmbientSource(), "AMBIENT")

    def _new_symbols(self) -> "SymbolicSizes":
        from dynamo.eval.interop.symbols import SymbolicSizes

        return SymbolicSizes(self.place)

    def whole_sizes(self) -> contextlib.AbstractContextManager[None]:
        """Where sizes are symbols: torch's operators written in Python, for some of those in C++ ask for the numbers."""
        return contextlib.nullcontext() if self.symbols is None else self.symbols.operators()

    def place(self) -> tuple[str, int] | None:
        """The user's file and line that runs now; None while none does."""
        return next((found for frame in reversed(self.frames) if (found := frame()) is not None), None)

    # -- guards -----------------------------------------------------------------------------------------
    def guard(self, source: Source, kind: str) -> None:
        """Ask that `source` still matches what was seen, in the way that `GuardBuilder.<kind>` tells."""
        key = (source.name(), kind)
        if key not in self.guards:
            self.guards[key] = source.make_guard(getattr(GuardBuilder, kind))

    def guard_same(self, source: Source, other: Source) -> None:
        """Ask that two sources still lead to one object."""
        self._guard_with(source, "OBJECT_ALIASING", other.name(), other=other)

    def guard_distinct(self, source: Source, other: Source) -> None:
        """Ask that two sources still lead to different objects."""
        self._guard_with(source, "NOT_ALIASING", other.name(), others=[other])

    def guard_absent(self, source: Source, name: str) -> None:
        """Ask that the own dict of the object at `source` still lacks `name`."""
        self._guard_with(source, "NOT_PRESENT_IN_GENERIC_DICT", name, attr=name)

    def guard_class_attribute(self, source: Source, name: str) -> None:
        """Ask that the class of the object at `source` still holds the same under `name`, or still nothing."""
        self._guard_with(source, "CLASS_ATTR_MATCH", name, attr=name)

    def guard_that(self, source: Source, predicate: Callable[[object], bool], words: str) -> None:
        """Ask that `predicate` still holds of the value at `source`; `words` say so to a person."""
        self._guard_with(source, "LAMBDA_GUARD", words, predicate=predicate, words=words)

    def guard_absent_global(self, namespace: Source | None, name: str) -> None:
        """Ask that no global hides a builtin; `namespace` None means the frame's own globals."""
        self.guard(GlobalSource(name) if namespace is None else ItemSource(namespace, name), "UNBOUND")

    def _guard_with(self, source: Source, kind: str, detail: str, **arguments: Any) -> None:
        key = (source.name(), f"{kind} {detail}")
        if key not in self.guards:
            create_fn = functools.partial(getattr(GuardBuilder, kind), **arguments)
            self.guards[key] = source.make_guard(create_fn)

    # -- nodes ------------------------------------------------------------------------------------------
    def add_input(self, value: torch.Tensor, source: Source, name: str) -> tuple[Node, torch.Tensor]:
        """A placeholder for `value`, and the fake tensor that stands for it. Guards the tensor.

        Raises:
            NeedsSymbols: one of its sizes varies, and this capture has no symbols yet.
        """
        plans = self.sizes.plans(source, value) if self.sizes is not None else None
        if plans is not None and self.symbols is None:
            raise NeedsSymbols(source.name())
        if plans is None or self.symbols is None:
            self.guard(source, "TENSOR_MATCH")
            fake = fake_of(self.fake_mode, value)
            if self.symbols is not None:
                self.symbols.other_tensor(fake)
        else:
            free = [dim for dim, plan in enumerate(plans) if plan.free]
            self._guard_with(source, "TENSOR_MATCH", "of free sizes", dynamic_dims=free)
            fake = self.symbols.tensor(self.fake_mode, value, plans)
        return self._placeholder(name, source, value, fake, _version(fake)), fake

    def add_integer(self, value: int, source: Source, name: str) -> tuple[Node, torch.SymInt] | None:
        """A placeholder for an integer that varies, and its symbol; None for one that is taken as it is.

        Raises:
            NeedsSymbols: it varies, and this capture has no symbols yet.
        """
        if self.sizes is None or not self.sizes.is_symbol(source, value):
            return None
        if self.symbols is None:
            raise NeedsSymbols(source.name())
        known = self.integers.get(source.name())
        if known is None:
            self.guard(source, "TYPE_MATCH")
            symbol = self.symbols.integer(value)
            known = self._placeholder(name, source, value, symbol, -1), symbol
            self.integers[source.name()] = known
        return known

    def _placeholder(
        self, name: str, source: Source, value: torch.Tensor | int, fake: Any, version: int
    ) -> Node:
        if self.inputs:
            place = self.graph.inserting_after(self.inputs[-1].node)
        else:
            place = self.graph.inserting_before(next(iter(self.graph.nodes), None))
        with place:
            node = self.graph.placeholder(self._free_name(name))
        node.meta["example_value"] = fake
        self.inputs.append(GraphInput(source, node, value, fake, version))
        if self.symbols is not None:
            self.symbol_sources.append(source)
        return node

    def _free_name(self, name: str) -> str:
        """`name`, or the first of ``name_1``, ``name_2``, … that is free: ``a.b`` and ``a_b`` give one name."""
        candidates = itertools.chain([name], (f"{name}_{number}" for number in itertools.count(1)))
        free = next(each for each in candidates if each not in self.input_names)
        self.input_names.add(free)
        return free

    def size_node(self, tensor: Node, dim: int, size: torch.SymInt) -> Node:
        """The node that reads a size, one for each dimension."""
        node = self.size_nodes.get((tensor, dim))
        if node is None:
            node = self.size_nodes[tensor, dim] = self.create_node("call_method", "size", (tensor, dim), {})
            node.meta["example_value"] = size
        return node

    def call(
        self,
        kind: CallKind,
        target: Callable[..., Any] | str,
        graph_args: tuple[Any, ...],
        graph_kwargs: Mapping[str, Any],
        fake_args: tuple[Any, ...],
        fake_kwargs: Mapping[str, Any],
    ) -> tuple[Callable[[], Node], Any]:
        """Run one torch call on fakes; returns a function that appends the node, and the fake result.

        The node is appended only if the caller wants it, so that a call whose result is a plain constant
        leaves no trace.

        Raises:
            GraphBreak: the call needs real data, or raises; Python will run it then, and raise rightly.
        """
        name = target if isinstance(target, str) else getattr(target, "__name__", repr(target))
        try:
            with self.fake_mode, self.whole_sizes():
                if isinstance(target, str):
                    result = getattr(fake_args[0], target)(*fake_args[1:], **fake_kwargs)
                else:
                    result = target(*fake_args, **fake_kwargs)
        except GraphBreak:
            raise
        except Exception as error:
            raise _call_break(name, error) from error

        def append() -> Node:
            node = self.create_node(kind, target, graph_args, dict(graph_kwargs))
            node.meta["example_value"] = result
            self.calls += 1
            if target in AMBIENT:
                self.ambient_changed = True
            return node

        return append, result

    # -- what a failing graph leaves behind --------------------------------------------------------------
    def raises_unlike_python(self) -> bool:
        """Whether an exception out of the graph would come before effects, or pass a handler, as it does not in Python."""
        return self.fake_mode.may_raise and (self.guarded_block or len(self.effects) > 0)

    def runs_twice_alike(self) -> bool:
        """Whether the graph leaves nothing behind, so that its frame may be run from the start after it raised."""
        mode = self.fake_mode
        if mode.draws or mode.normalises:
            return False
        return not mode.writes or all(each.is_untouched for each in self.inputs)

    # -- the end ----------------------------------------------------------------------------------------
    def compile(self, backend: Backend, outputs: list[Node]) -> tuple[Callable[..., Any], GraphModule]:
        """Close the graph with `outputs` and hand it to the backend.

        Raises:
            BackendError: the backend raised or returned something that cannot be called.
        """
        self.graph.output(tuple(outputs))
        self._drop_unused()
        for each in self.inputs:
            each.node.meta["written"] = not each.is_untouched or self.fake_mode.normalises and each.is_buffer
        module = GraphModule(torch.nn.Module(), self.graph)
        try:
            compiled = backend(module, self._example_inputs())
        except Exception as error:
            name = getattr(backend, "__name__", repr(backend))
            raise BackendError(f"backend {name!r} raised {type(error).__name__}: {error}") from error
        if not callable(compiled):
            raise BackendError(f"backend returned {type(compiled).__name__}, which cannot be called")
        if self.ambient_changed:
            compiled = _restoring_ambient(compiled)
        return compiled, module

    def _example_inputs(self) -> list[Any]:
        """The values at capture; where sizes vary, fake tensors and symbols, for no one value stands for all."""
        if self.symbols is None:
            return [each.value for each in self.inputs]
        mode = FakeTensorMode(shape_env=self.symbols.env, static_shapes=False)
        return [self.symbols.pristine(mode, each.fake) for each in self.inputs]

    def guard_symbols(self) -> None:
        """Guard what capture and backend took for granted about sizes and integers that vary.

        Raises:
            UsageError: a dimension that the user marked as dynamic is not.
        """
        if self.symbols is None:
            return
        from dynamo.eval.interop.symbols import DemandError

        try:
            relations = self.symbols.relations()
        except DemandError as error:
            raise UsageError(self._unmet(str(error), error.relations)) from error
        for relation in relations:
            create_fn = functools.partial(
                GuardBuilder.SHAPE_RELATION,
                sources=[self.symbol_sources[number] for number in relation.values],
                template=relation.template,
                holds=relation.holds,
            )
            guard = AmbientSource().make_guard(create_fn, relation.place)
            self.guards[guard.name, f"SHAPE_RELATION {relation.template}{relation.values}"] = guard

    def _unmet(self, words: str, relations: "list[Relation]") -> str:
        """What torch says of a demand that cannot be met, with our sources and the user's lines that forbid it."""
        text = _ABOUT_TORCH.sub("", words)
        text = re.sub(r"\bv(\d+)\b", lambda match: self.symbol_sources[int(match[1])].name(), text)
        lines = [
            f"  {relation.template.format(*(self.symbol_sources[number].name() for number in relation.values))} "
            f"is asked for by {in_file(*relation.place)}"
            for relation in relations
            if relation.place is not None
        ]
        return "\n".join([text.rstrip(), *lines])

    def _drop_unused(self) -> None:
        """Erase getitem nodes, numbers and placeholders that nothing reads."""
        for node in reversed(list(self.graph.nodes)):
            if (
                isinstance(node.meta.get("example_value"), SYMBOLS)
                and not node.users
                and node.op != "placeholder"
            ):
                self.graph.erase_node(node)
                continue
            if node.op == "call_function" and node.target is operator.getitem and not node.users:
                source_node = node.args[0]
                if isinstance(source_node, Node) and not isinstance(
                    source_node.meta.get("example_value"), torch.Tensor
                ):
                    self.graph.erase_node(node)
        for each in list(self.inputs):
            if not each.node.users:
                self.graph.erase_node(each.node)
                self.inputs.remove(each)


def in_file(filename: str, lineno: int) -> str:
    """A place in a file, with the text of the line where it can be read."""
    text = linecache.getline(filename, lineno).strip()
    return f"{filename}:{lineno}, {text!r}" if text else f"{filename}:{lineno}"


def _version(tensor: torch.Tensor) -> int:
    """Its version counter; -1 for a tensor of inference mode, which has none."""
    return -1 if tensor.is_inference() else tensor._version


def _call_break(name: str, error: Exception) -> GraphBreak:
    if data_dependent(error):
        return GraphBreak(
            f"{name}() needs the values of a tensor, not only its shape",
            "Python runs it between two graphs; keep the value in a tensor (torch.where, …) to avoid that",
        )
    text = str(error).strip().splitlines()
    return GraphBreak(f"{name}() raised {type(error).__name__}: {text[0] if text else ''}")


def _restoring_ambient(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Put the ambient state back when the graph raises half-way, as the user's ``with`` would have done."""

    def run(*args: Any) -> Any:
        before = read_ambient()
        try:
            return compiled(*args)
        except BaseException:
            restore_ambient(before)
            raise

    return run
