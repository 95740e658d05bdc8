"""Tensors: a node of the graph and the fake tensor that tells its metadata."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, final

import torch

from dynamo.eval.errors import GraphBreak
from dynamo.eval.fake import is_fake
from dynamo.eval.output_graph import SYMBOLS, CallKind
from dynamo.eval.variables.base import Translator, VariableTracker, realize, realized
from dynamo.eval.variables.constant import ConstantVariable, from_constant, is_literal
from dynamo.eval.variables.lookup import NoSuchAttribute
from dynamo.eval.variables.sequence import ListVariable, SizeVariable, TupleVariable
from dynamo.eval.variables.symbolic import symbolic
from dynamo.eval.variables.wrap import wrap_value
from dynamo.guards import AttrSource, Source
from fx.ir import Node

#: attributes that metadata tells; every one is guarded by TENSOR_MATCH of the inputs
METADATA: Final = frozenset(
    "dtype device layout ndim requires_grad is_cuda is_cpu is_meta is_sparse is_quantized is_mkldnn is_mps "
    "is_xpu is_nested itemsize nbytes is_leaf names".split()
) - {"is_leaf", "names"}
#: attributes that are other tensors, computed by a call
VIEWS: Final = {"T": "T", "mT": "mT", "H": "H", "mH": "mH", "real": "real", "imag": "imag"}
#: methods whose answer is metadata
METADATA_METHODS: Final = frozenset(
    "dim ndimension numel nelement element_size is_contiguous is_floating_point is_complex is_signed "
    "get_device is_conj is_neg is_inference __len__".split()
)
#: methods that need values, change metadata in place, or touch autograd's or Python's state
UNSUPPORTED_METHODS: Final = {
    "item": "use the tensor itself, or accept the break",
    "tolist": "use the tensor itself, or accept the break",
    "numpy": "move the numpy work out of the captured function",
    "__array__": "move the numpy work out of the captured function",
    "backward": "call it outside of the captured function, or accept the break",
    "requires_grad_": "set it before the captured function is called",
    "register_hook": "register hooks outside of the captured function",
    "retain_grad": "call it outside of the captured function",
    "set_": "", "resize_": "", "resize_as_": "", "share_memory_": "", "data_ptr": "", "storage": "",
    "untyped_storage": "", "apply_": "", "map_": "", "map2_": "", "__reduce_ex__": "", "__deepcopy__": "",
    "rename_": "", "as_subclass": "", "detach_": "", "storage_offset": "", "unsafe_split": "",
    "__dlpack__": "", "pin_memory": "", "cuda": "", "record_stream": "", "transpose_": "", "t_": "",
    "squeeze_": "", "unsqueeze_": "", "swapaxes_": "", "swapdims_": "", "as_strided_": "", "_make_subclass": "",
}  # fmt: skip

#: of those, methods that change metadata in place: a tensor that the graph made may be changed so
RESHAPES_IN_PLACE: Final = frozenset("transpose_ t_ squeeze_ unsqueeze_ swapaxes_ swapdims_".split())


@final
class TensorVariable(VariableTracker):
    """A tensor: `node` computes it, `fake` has its metadata."""

    mutable = True

    def __init__(self, node: Node, fake: torch.Tensor, source: Source | None = None) -> None:
        super().__init__(source)
        self.node = node
        self.fake = fake

    @property
    def hashed_by_identity(self) -> bool:
        return True

    def builtin_content(self) -> VariableTracker | None:
        return self

    def python_type(self) -> type:
        fake = self.fake
        return torch.nn.Parameter if isinstance(fake, torch.nn.Parameter) else torch.Tensor

    def describe(self) -> str:
        return f"a tensor of shape {tuple(self.fake.shape)}"

    def as_graph_arg(self) -> Node:
        return self.node

    def as_fake(self) -> torch.Tensor:
        return self.fake

    def truth(self, tx: Translator) -> bool:
        raise GraphBreak(
            "a branch on the values of a tensor",
            "use torch.where, or accept the break: both sides become graphs of their own",
        )

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        if name == "shape":
            return SizeVariable([self._size(tx, dim) for dim in range(self.fake.dim())])
        if name in METADATA:
            value = self.fake.numel() * self.fake.itemsize if name == "nbytes" else getattr(self.fake, name)
            return symbolic(tx, lambda: self._asked(tx, "call_function", getattr, name), value)
        if name in VIEWS:
            return call_torch(tx, "call_function", getattr, [self, ConstantVariable(name)], {})
        if name == "grad_fn" and self.fake.grad_fn is None:
            return ConstantVariable(None)
        if name == "is_leaf" and self.fake.grad_fn is None:
            return ConstantVariable(True)
        if name == "data":
            tx.output.fake_mode.normalises = True  # what is written to it is not counted as a write
            return call_torch(tx, "call_function", getattr, [self, ConstantVariable(name)], {})
        if name == "grad":
            given = next((each for each in tx.output.inputs if each.node is self.node), None)
            if given is not None and isinstance(given.value, torch.Tensor) and given.value.is_leaf:
                return wrap_value(tx.output, given.value.grad, AttrSource(given.source, "grad"))
            raise GraphBreak("tensor.grad", "read gradients outside of the captured function")
        found = getattr(torch.Tensor, name, None)
        if found is not None and callable(found):
            return TensorMethodVariable(self, name)
        if found is None and not hasattr(torch.Tensor, name):
            return self._own_attribute(tx, name)
        raise GraphBreak(f"attribute {name!r} of a tensor")

    def _own_attribute(self, tx: Translator, name: str) -> VariableTracker:
        """What the user stored on the tensor itself; one that the graph makes has nothing."""
        given = next((each for each in tx.output.inputs if each.node is self.node), None)
        if given is not None:
            if name in given.value.__dict__:
                return wrap_value(tx.output, given.value.__dict__[name], AttrSource(given.source, name))
            tx.output.guard_absent(given.source, name)
        raise NoSuchAttribute(f"AttributeError: 'Tensor' object has no attribute {name!r}")

    def call_method(
        self, tx: Translator, name: str, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        if name in UNSUPPORTED_METHODS and not (name in RESHAPES_IN_PLACE and self.source is None):
            raise GraphBreak(f"Tensor.{name}()", UNSUPPORTED_METHODS[name])
        if name == "size":
            size = self.get_attr(tx, "shape")
            if not args and not kwargs:
                return size
            dim = (list(args) + list(kwargs.values()))[0].as_python_constant()
            return self._size(tx, range(self.fake.dim())[dim])
        if name == "stride" and not args and not kwargs:
            return TupleVariable([self._stride(tx, dim) for dim in range(self.fake.dim())])
        if name in METADATA_METHODS:
            values = [realize(arg).as_python_constant() for arg in args]
            named = {key: realize(arg).as_python_constant() for key, arg in kwargs.items()}
            answer = len(self.fake) if name == "__len__" else getattr(self.fake, name)(*values, **named)
            if isinstance(answer, SYMBOLS):
                return symbolic(tx, lambda: self._asked(tx, "call_method", name), answer)
            return from_constant(answer)
        if not hasattr(torch.Tensor, name):
            raise GraphBreak(f"Tensor has no method {name!r}")
        return call_torch(tx, "call_method", name, [self, *args], kwargs)

    def _size(self, tx: Translator, dim: int) -> VariableTracker:
        size: Any = self.fake.shape[dim]  # torch's type does not know symbols
        return symbolic(tx, lambda: tx.output.size_node(self.node, dim, size), size)

    def _stride(self, tx: Translator, dim: int) -> VariableTracker:
        return symbolic(tx, lambda: self._asked(tx, "call_method", "stride", dim), self.fake.stride()[dim])

    def _asked(self, tx: Translator, kind: CallKind, target: Any, *args: Any) -> Node:
        """A node that asks this tensor for a number."""
        return tx.output.create_node(kind, target, (self.node, *args), {})

    def iterate(self, tx: Translator) -> VariableTracker:
        return TupleVariable(self.unpack(tx)).iterate(tx)

    def unpack(self, tx: Translator) -> list[VariableTracker]:
        if self.fake.dim() == 0:
            raise GraphBreak("iterating over a 0-d tensor")
        items = call_torch(tx, "call_method", "unbind", [self], {})
        return items.unpack(tx)


@final
class TensorMethodVariable(VariableTracker):
    """A bound method of a tensor that is not called at once."""

    def __init__(self, owner: TensorVariable, name: str) -> None:
        super().__init__()
        self.owner = owner
        self.name = name

    def call(
        self, tx: Translator, args: list[VariableTracker], kwargs: dict[str, VariableTracker]
    ) -> VariableTracker:
        return self.owner.call_method(tx, self.name, args, kwargs)


def call_torch(
    tx: Translator,
    kind: CallKind,
    target: Callable[..., Any] | str,
    args: Sequence[VariableTracker],
    kwargs: Mapping[str, VariableTracker],
) -> VariableTracker:
    """Put one torch call into the graph and wrap what it gives.

    Raises:
        GraphBreak: an argument or the result cannot be in a graph, or the call needs data or raises.
    """
    args = realized(args)
    named = {name: realize(value) for name, value in kwargs.items()}
    append, result = tx.output.call(
        kind,
        target,
        tuple(arg.as_graph_arg() for arg in args),
        {name: value.as_graph_arg() for name, value in named.items()},
        tuple(arg.as_fake() for arg in args),
        {name: value.as_fake() for name, value in named.items()},
    )
    if isinstance(result, torch.Tensor):
        known = tx.output.tensors.get(id(result))
        if known is not None:
            append()  # in place, or the same object handed back: the call stays, the identity too
            return known  # type: ignore[no-any-return]  # the table holds variables of this module only
    elif result is None:
        append()  # called for its effect, as ``x[0] = y`` is
        return ConstantVariable(None)
    elif is_literal(result) or isinstance(result, torch.Size):
        return from_constant(result)
    return wrap_result(tx, append(), result)


def wrap_result(tx: Translator, node: Node, value: Any) -> VariableTracker:
    """The variable of what a node gives, by its fake value.

    Raises:
        GraphBreak: a result that is neither tensor, literal nor a tuple or list of them.
    """
    if isinstance(value, torch.Tensor):
        if not is_fake(value):
            raise GraphBreak("a call that gave a tensor with data at capture")
        known = tx.output.tensors.get(id(value))
        if known is not None:
            return known  # type: ignore[no-any-return]  # the table holds variables of this module only
        var = TensorVariable(node, value)
        tx.output.tensors[id(value)] = var
        return var
    if isinstance(value, SYMBOLS):
        return symbolic(tx, lambda: node, value)
    if is_literal(value) or isinstance(value, torch.Size):
        return from_constant(value)
    if isinstance(value, tuple | list):
        items = [wrap_item(tx, node, index, item) for index, item in enumerate(value)]
        if type(value) is tuple:
            return TupleVariable(items)
        if type(value) is list:
            return ListVariable(items)
        if hasattr(type(value), "n_sequence_fields"):
            return StructSequenceVariable(items, type(value))
    raise GraphBreak(f"a torch call that gives a {type(value).__name__}")


def wrap_item(tx: Translator, node: Node, index: int, value: Any) -> VariableTracker:
    """Item `index` of a node that gives a sequence."""
    import operator

    if is_literal(value):
        return ConstantVariable(value)
    item = tx.output.create_node("call_function", operator.getitem, (node, index), {})
    item.meta["example_value"] = value
    return wrap_result(tx, item, value)


@final
class StructSequenceVariable(TupleVariable):
    """A named result of torch, such as ``torch.return_types.max``."""

    def __init__(self, items: list[VariableTracker], kind: type) -> None:
        super().__init__(items)
        self.struct_kind = kind

    def python_type(self) -> type:
        return self.struct_kind

    def get_attr(self, tx: Translator, name: str) -> VariableTracker:
        fields = [each for each in dir(self.struct_kind) if not each.startswith("_")]
        if name in fields:
            position = _field_positions(self.struct_kind).get(name)
            if position is not None:
                return realize(self.items[position])
        return super().get_attr(tx, name)


def _field_positions(kind: type) -> dict[str, int]:
    """Field name → position of a struct sequence type, found by building one of distinct integers."""
    count = kind.n_sequence_fields  # type: ignore[attr-defined]  # every struct sequence type has it
    probe = kind(range(count))
    return {
        name: getattr(probe, name)
        for name in dir(kind)
        if not name.startswith("_") and isinstance(getattr(probe, name), int) and not name.startswith("n_")
    }
