"""Traced values, and the tracer that records what is done with them.

A ``Proxy`` stands for the value of a node. Whatever a program does with it (operators, methods, attributes, torch functions
through ``__torch_function__``) becomes a new node, made by the proxy's tracer in three steps that a tracer may override:
``create_arg`` lowers each argument to what a graph can hold, ``create_node`` inserts the node, ``proxy`` wraps it. What a
graph cannot express (branches, loops, ``len``) raises a :class:`~fx.trace.errors.TraceError` with the user's line.

Lowering dominates the cost of recording, so the common argument types are looked up in a table by exact type, and a tracer
that does not override ``create_arg`` lowers flat arguments without calling it.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodDescriptorType
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias, cast

import torch

from fx.ir import Argument, Graph, Node, Op, Target
from fx.trace.errors import (
    ArgumentTypeError,
    ControlFlowError,
    ConversionError,
    IterationError,
    LengthError,
    MutationError,
)
from fx.trace.instruction import asserts, instruction_name, unpacked_length
from fx.trace.location import Location, location_from, location_of_user, stack_of_user, user_frame
from fx.trace.lowering import LEAVES, RULES, lower_by_shape
from fx.trace.mutation import mutates_arguments
from fx.trace.operators import Operators
from fx.trace.scope import Scope

__all__ = [
    "Attribute",
    "GraphAppendingTracer",
    "ParameterProxy",
    "Proxy",
    "TracerBase",
    "assert_fn",
    "tracer_in",
]

ModuleStack: TypeAlias = dict[str, tuple[str, type]]


def assert_fn(value: object) -> None:
    """What an ``assert`` on a traced value is recorded as, when ``trace_asserts`` is set."""
    if not value:
        raise AssertionError("Assertion failed")


class TracerBase:
    """Records nodes into ``graph``; knows nothing of modules.

    Subclasses set ``graph`` before the first node is recorded. All other state has defaults, whether or not the subclass calls
    ``super().__init__()``.

    Attributes:
        graph: where nodes are recorded.
        record_stack_traces: give each node ``stack_trace``, the user's part of the Python stack.
        record_locations: give each node ``meta["location"]``, the user's line; cheap, on by default.
        check_mutable_operations: refuse operations that change an argument.
        trace_asserts: record ``assert value`` as a call instead of refusing it.
        proxy_buffer_attributes: reading a buffer of a module gives a traced value, not the tensor.
        scope: module that is being traced; written to ``node_name_to_scope``.
        module_stack: modules entered, outermost first; written to ``meta["nn_module_stack"]``. Nodes recorded in one call of a
            module share that mapping.

    Source: torch.fx ``TracerBase``; seed 003, ``Tracer``.
    """

    graph: Graph
    record_stack_traces: bool = False
    record_locations: bool = True
    check_mutable_operations: bool = False
    trace_asserts: bool = False
    proxy_buffer_attributes: bool = False
    traced_func_name: str = "forward"
    scope: Scope
    module_stack: ModuleStack
    node_name_to_scope: dict[str, tuple[str, type | None]]

    _lowers_plainly: ClassVar[bool] = True
    _makes_plain_proxies: ClassVar[bool] = True
    _stack_snapshot: ModuleStack

    def __new__(cls, *args: object, **kwargs: object) -> TracerBase:
        self = super().__new__(cls)
        self.scope = Scope("", None)
        self.module_stack = {}
        self.node_name_to_scope = {}
        self._stack_snapshot = {}
        return self

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._lowers_plainly = getattr(cls.create_arg, "lowers_plainly", False)
        cls._makes_plain_proxies = cls.proxy is TracerBase.proxy

    def create_node(
        self,
        kind: Op,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """Insert one node, with arguments that are already lowered, and note where it comes from.

        Override to check or change what is recorded, for example to forbid in-place operations.

        Raises:
            MutationError: ``check_mutable_operations`` is set and the operation changes an argument.
        """
        if self.check_mutable_operations and kind in ("call_function", "call_method"):
            self._refuse_mutation(kind, target, args, kwargs)
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        scope, meta = self.scope, node.meta
        self.node_name_to_scope[node.name] = (scope.module_path, scope.module_type)
        if self.module_stack:
            meta["nn_module_stack"] = self._present_module_stack()
        if self.record_locations and kind not in _WITHOUT_PLACE:
            location = location_from(_present_frame(2))
            if location is not None:
                meta["location"] = location
        if self.record_stack_traces and not node.stack_trace:
            node.stack_trace = stack_of_user()
        return node

    def _present_module_stack(self) -> ModuleStack:
        """A copy of ``module_stack``, shared by all nodes recorded before it changes.

        Keys carry the count of calls, so a stack of the same depth with the same last key is the same stack.
        """
        stack, snapshot = self.module_stack, self._stack_snapshot
        if len(snapshot) != len(stack) or next(reversed(snapshot)) != next(reversed(stack)):
            snapshot = self._stack_snapshot = dict(stack)
        return snapshot

    def _refuse_mutation(
        self, kind: Op, target: Target, args: tuple[Argument, ...], kwargs: Mapping[str, Argument]
    ) -> None:
        if mutates_arguments(kind, target, args, kwargs):
            name = target if isinstance(target, str) else getattr(target, "__name__", repr(target))
            raise MutationError(
                f"Tried to trace mutable operation {name}: it changes one of its arguments. Use the out-of-place form, "
                "or trace with check_mutable_operations = False.",
                location_of_user(),
            )

    def proxy(self, node: Node) -> Proxy:
        """Wrap ``node`` for the traced program. Override to use another class of traced values."""
        return Proxy(node, self)

    def create_proxy(
        self,
        kind: Op,
        target: Target,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        name: str | None = None,
        type_expr: Any = None,
        proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Proxy:
        """Lower the arguments, insert a node, wrap it.

        Args:
            kind: one of the six opcodes. For ``placeholder`` the default value, if any, is ``args[0]``.
            target: function, name of method, or qualified name of module or attribute.
            args: positional arguments, which may hold traced values at any depth.
            kwargs: keyword arguments, likewise.
            name: wanted name of the node; made from ``target`` when None.
            type_expr: annotation of the result.
            proxy_factory_fn: wraps the node instead of :meth:`proxy`.
        """
        if self._lowers_plainly:
            lowered = []
            for a in args:
                kind_of_a = type(a)
                lowered.append(
                    a.node if kind_of_a is Proxy else a if kind_of_a in LEAVES else self.create_arg(a)
                )
            args = tuple(lowered)
            if kwargs:
                kwargs = {
                    key: a.node if type(a) is Proxy else a if type(a) in LEAVES else self.create_arg(a)
                    for key, a in kwargs.items()
                }
        else:
            args = cast("tuple[Any, ...]", self.create_arg(args))
            kwargs = cast("dict[str, Any]", self.create_arg(kwargs))
        node = self.create_node(kind, target, args, kwargs, name, type_expr)
        if proxy_factory_fn is not None:
            return proxy_factory_fn(node)
        if self._makes_plain_proxies:
            made: Any = _Bare()
            made.node = node
            made.tracer = self
            made.__class__ = Proxy
            return cast("Proxy", made)
        return self.proxy(node)

    def create_arg(self, a: Any) -> Argument:
        """Lower one argument of the traced program to what a graph can hold.

        Traced values become their nodes; containers are lowered element by element; data classes become a call of their class.
        An object with a method ``__fx_create_arg__(tracer)`` lowers itself. Override to support more types.

        Raises:
            ArgumentTypeError: nothing of this type can be an argument.
        """
        rule = RULES.get(type(a))
        if rule is not None:
            return rule(self, a)
        return a.node if isinstance(a, Proxy) else lower_by_shape(self, a)

    create_arg.lowers_plainly = True  # type: ignore[attr-defined]  # read by __init_subclass__

    def to_bool(self, obj: Proxy) -> bool:
        """Called for the truth value of a traced value. Override to decide it.

        Raises:
            ControlFlowError: always, unless overridden.
        """
        raise ControlFlowError(
            f"symbolically traced variables cannot be used as inputs to control flow: the truth of `{obj.node.name}` is "
            "not known while tracing. Make the condition static (a module attribute, or concrete_args), use torch.where, "
            "or keep the branch as one call (fx.trace.wrap, or a leaf module).",
            location_of_user(),
        )

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """Called when a traced value is iterated over. Override to give an iterator.

        Raises:
            IterationError: always, unless overridden.
        """
        frame = user_frame()
        use = _ITERATING.get(instruction_name(frame) if frame is not None else "", "is iterated over")
        raise IterationError(
            f"Proxy object cannot be iterated: `{obj.node.name}` {use}, and how many elements it has is not known while "
            "tracing. Loop over a static count and index the value (`for i in range(self.n): x[i]`), unpack it into a fixed "
            "number of names, or keep the loop as one call (fx.trace.wrap, or a leaf module).",
            None if frame is None else Location.of_frame(frame),
        )

    def keys(self, obj: Proxy) -> Any:
        """Called when ``keys()`` of a traced value is called, which is also what ``**value`` does first.

        A written call is recorded. Override to give an iterator, which makes ``**value`` work.

        Raises:
            IterationError: the value is used as ``**value``.
        """
        frame = user_frame()
        if frame is not None and instruction_name(frame) in _MAPPING_UNPACKERS:
            raise IterationError(
                f"`**` needs the keys of `{obj.node.name}`, which are not known while tracing. Pass the wanted items one by one "
                "(`f(a=x['a'])`), give the mapping's structure through concrete_args with PH, or keep the call as one call "
                "(fx.trace.wrap).",
                Location.of_frame(frame),
            )
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """Appends to a graph that exists already; used by ``Proxy(node)`` when no tracer is given.

    Source: seed 003, "Proxy/Retracing".
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph


class _Bare(Operators["Proxy"]):
    """What a Proxy is before it gets its class: here a field is set by a plain store, which a Proxy would record.

    ``_attribute`` is what an :class:`Attribute` is of; its layout has to be that of a Proxy to be made in the same way.
    """

    __slots__ = ("__dict__", "__weakref__", "_attribute", "node", "tracer")

    if TYPE_CHECKING:
        _attribute: tuple[Proxy, str]
        node: Node
        tracer: TracerBase


_set_attribute: Final = _Bare._attribute.__set__  # type: ignore[attr-defined]  # a slot's descriptor
_get_node: Final = _Bare.node.__get__  # type: ignore[attr-defined]  # a slot's descriptor
_set_node: Final = _Bare.node.__set__  # type: ignore[attr-defined]  # a slot's descriptor
_set_tracer: Final = _Bare.tracer.__set__  # type: ignore[attr-defined]  # a slot's descriptor


class Proxy(_Bare):
    """The value of a node in a traced program.

    Wrap a node yourself, ``Proxy(node)``, to write new operations as ordinary Python; they are appended where the graph's
    insertion point is.

    Args:
        node: the node whose value this stands for.
        tracer: records what is done with the value; a :class:`GraphAppendingTracer` on the node's graph when None.

    Source: seed 003, ``Proxy``.
    """

    __slots__ = ()

    # numpy arrays leave binary operators with a Proxy to the Proxy
    __array_ufunc__: ClassVar[None] = None

    def __init__(self, node: Node, tracer: TracerBase | None = None) -> None:
        _set_node(self, node)
        _set_tracer(self, GraphAppendingTracer(node.graph) if tracer is None else tracer)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.node.name})"

    def __getattr__(self, k: str) -> Any:
        if k[0] == "_" and k[:2] == "__" and k[-2:] == "__" and not hasattr(torch.Tensor, k):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {k!r}")
        made: Any = _Bare()
        made.node = None
        made.tracer = self.tracer
        made._attribute = (self, k)
        made.__class__ = Attribute
        return made

    def __setattr__(self, k: str, value: object) -> None:
        if type(self) in _RECORDED_CLASSES and k not in _OWN_ATTRIBUTES:
            self.tracer.create_proxy("call_function", setattr, (self, k, value), {})
        else:
            object.__setattr__(self, k, value)

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        frame = user_frame()
        length = None if frame is None else unpacked_length(frame)
        if length is not None:
            return iter([self[i] for i in range(length)])
        return self.tracer.iter(self)

    def __reversed__(self) -> Proxy:
        return self.tracer.create_proxy("call_method", "__reversed__", (self,), {})

    def __bool__(self) -> bool:
        if self.tracer.trace_asserts:
            frame = user_frame()
            if frame is not None and asserts(frame):
                self.tracer.create_proxy("call_function", assert_fn, (self,), {})
                return True
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """Record a call of ``keys()``; see :meth:`TracerBase.keys`."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise LengthError(
            f"'len' is not supported in symbolic tracing by default: Python demands a real integer, and the length of "
            f"`{self.node.name}` is not known while tracing. If you want this call to be recorded, call "
            "fx.trace.wrap('len') at module scope, or write x.size(0).",
            location_of_user(),
        )

    def __contains__(self, item: object) -> bool:
        if type(self).__iter__ is not Proxy.__iter__ or type(self.tracer).iter is not TracerBase.iter:
            return any(element is item or element == item for element in self)
        raise ControlFlowError(
            f"`in` gives a truth value, and whether `{self.node.name}` holds the item is not known while tracing. Write "
            "`(x == item).any()` and keep it a traced value, or keep the test as one call (fx.trace.wrap).",
            location_of_user(),
        )

    def __int__(self) -> int:
        raise _conversion(self, "int")

    def __float__(self) -> float:
        raise _conversion(self, "float")

    def __complex__(self) -> complex:
        raise _conversion(self, "complex")

    def __index__(self) -> int:
        raise _conversion(self, "range")

    def __array__(self, *args: object, **kwargs: object) -> Any:
        raise _conversion(self, "numpy.asarray")

    def __copy__(self) -> Proxy:
        return self.tracer.create_proxy("call_function", copy.copy, (self,), {})

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        return self.tracer.create_proxy("call_function", copy.deepcopy, (self,), {})

    @classmethod
    def __torch_function__(
        cls,
        orig_method: Callable[..., Any],
        types: tuple[type, ...],
        args: tuple[Any, ...] | None = None,
        kwargs: dict[str, Any] | None = None,
    ) -> Proxy:
        """Record a torch function or tensor method that was called with a traced value among its arguments."""
        args = args or ()
        kwargs = kwargs or {}
        tracer: TracerBase | None
        if args and type(args[0]) is Proxy:
            tracer = args[0].tracer
        else:
            tracer = tracer_in(args) or tracer_in(kwargs.values())
        if tracer is None:
            raise ArgumentTypeError(
                f"no traced value was found in the arguments of {orig_method}; a container of this kind cannot be recorded.",
                location_of_user(),
            )
        method = _method_names.get(orig_method)
        if method is None:
            method = _method_name(orig_method)
        if method:
            return tracer.create_proxy("call_method", method, args, kwargs)
        if isinstance(orig_method, torch.ScriptMethod):
            return tracer.create_proxy("call_method", orig_method.name, (orig_method.owner, *args), kwargs)
        return tracer.create_proxy("call_function", orig_method, args, kwargs)


_present_frame: Final = sys._getframe


class Attribute(Proxy):
    """``value.name``: recorded as ``getattr`` when used as a value, as a method call when called.

    Source: torch.fx ``Attribute``.
    """

    __slots__ = ()

    def __init__(self, root: Proxy, attr: str) -> None:
        _set_attribute(self, (root, attr))
        _set_node(self, None)
        _set_tracer(self, root.tracer)

    @property
    def root(self) -> Proxy:
        """The value whose attribute this is."""
        return self._attribute[0]

    @property
    def attr(self) -> str:
        """Name of the attribute."""
        return self._attribute[1]

    @property
    def node(self) -> Node:  # type: ignore[override]  # made when first asked for
        """The ``getattr`` node, recorded on first use: most attributes are only called."""
        node: Node | None = _get_node(self)
        if node is None:
            node = self.tracer.create_proxy("call_function", getattr, self._attribute, {}).node
            _set_node(self, node)
        return node

    def __call__(self, *args: Any, **kwargs: Any) -> Proxy:
        root, attr = self._attribute
        return self.tracer.create_proxy("call_method", attr, (root, *args), kwargs)


class ParameterProxy(Proxy):
    """A traced parameter that answers questions about its shape with the real numbers.

    Used when ``Tracer(param_shapes_constant=True)``, so that branches on shapes of parameters can be traced.

    Source: torch.fx ``ParameterProxy``.
    """

    __slots__ = ("_param", "name")

    if TYPE_CHECKING:
        _param: torch.Tensor
        name: str

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: torch.nn.Parameter) -> None:
        super().__init__(node, tracer)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "_param", param)

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def param(self) -> torch.Tensor:
        """The real parameter."""
        return self._param

    @property
    def shape(self) -> torch.Size:
        """The parameter's shape."""
        return self._param.shape

    @property
    def ndim(self) -> int:
        """The parameter's number of dimensions."""
        return self._param.ndim

    def size(self, dim: int | None = None) -> torch.Size | int:
        """The parameter's shape, or one entry of it."""
        return self._param.size() if dim is None else self._param.size(dim)

    def dim(self) -> int:
        """The parameter's number of dimensions."""
        return self._param.dim()

    def numel(self) -> int:
        """The parameter's number of elements."""
        return self._param.numel()

    def nelement(self) -> int:
        """The parameter's number of elements."""
        return self._param.nelement()


_RECORDED_CLASSES: Final = frozenset({Proxy, Attribute, ParameterProxy})
_OWN_ATTRIBUTES: Final = frozenset({"node", "tracer", "__dict__", "__class__"})
_WITHOUT_PLACE: Final = frozenset({"placeholder", "output"})
_ITERATING: Final = {
    "GET_ITER": "is the subject of a loop or comprehension",
    "FOR_ITER": "is the subject of a loop or comprehension",
    "LIST_EXTEND": "is unpacked with `*`",
    "SET_UPDATE": "is unpacked with `*`",
    "CALL_FUNCTION_EX": "is unpacked with `*`",
    "CALL_INTRINSIC_1": "is unpacked with `*`",
    "UNPACK_EX": "is unpacked into a starred name",
}
_MAPPING_UNPACKERS: Final = frozenset({"DICT_MERGE", "DICT_UPDATE", "CALL_FUNCTION_EX"})

_method_names: dict[Callable[..., Any], str] = {}


def _method_name(function: Callable[..., Any]) -> str:
    """Name under which a call is recorded as ``call_method``; empty when it is a function. Remembered for C functions."""
    name = function.__name__ if torch.overrides.is_tensor_method_or_property(function) else ""
    if isinstance(function, (BuiltinFunctionType, MethodDescriptorType, FunctionType)):
        _method_names[function] = name
    return name


def tracer_in(values: Iterable[Any]) -> TracerBase | None:
    """The tracer of the first traced value in ``values``, at any depth of containers and data classes; None if there is none."""
    for value in values:
        if type(value) in LEAVES:
            continue
        if isinstance(value, Proxy):
            return value.tracer
        if isinstance(value, (tuple, list)):
            found = tracer_in(value)
        elif isinstance(value, Mapping):
            found = tracer_in(value.values())
        elif isinstance(value, slice):
            found = tracer_in((value.start, value.stop, value.step))
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            found = tracer_in([getattr(value, field.name, None) for field in dataclasses.fields(value)])
        else:
            continue
        if found is not None:
            return found
    return None


def _conversion(value: Proxy, function: str) -> ConversionError:
    return ConversionError(
        f"{function}() demands a real number, and the value of `{value.node.name}` is not known while tracing. Keep it a "
        f"traced value, pass the number through concrete_args, or record the call: fx.trace.wrap({function!r}) at module scope.",
        location_of_user(),
    )


RULES[Proxy] = lambda tracer, proxy: proxy.node
