"""Other ways to call a generated function: with nested containers, or with a list that it empties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from torch.utils import _pytree as pytree

from fx.codegen.codegen import CodeGen
from fx.codegen.errors import SignatureError
from fx.codegen.names import free_name, is_plain
from fx.ir import Argument


class PyTreeInfo(NamedTuple):
    """How nested arguments and results are flattened; torch.fx keeps the same three fields.

    Attributes:
        orig_args: the parameters of the function, as texts.
        in_spec: structure of ``[*arguments]``, or of ``(args, kwargs)``.
        out_spec: structure of the result, or ``None``: as the output node has it.
    """

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


class PyTreeCodeGen(CodeGen):
    """The function takes and returns nested containers; the placeholders and the output are their leaves."""

    def __init__(self, pytree_info: PyTreeInfo) -> None:
        super().__init__()
        self.pytree_info = pytree_info

    def own_names(self) -> list[str]:
        """The parameters, and the module that puts the result together."""
        return ["pytree", *_bare(self.pytree_info.orig_args)]

    def process_inputs(self, *inputs: Any) -> Any:
        """The leaves of ``inputs``, in order."""
        return pytree.arg_tree_leaves(*inputs)

    def process_outputs(self, out: Any) -> Any:
        """The leaves ``out`` put back into the structure of the result."""
        if self.pytree_info.out_spec is None:
            return out
        return pytree.tree_unflatten(
            out if isinstance(out, (list, tuple)) else [out], self.pytree_info.out_spec
        )

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """``def forward(self, x, y):`` and the line that takes the leaves out of ``x`` and ``y``."""
        names = _bare(self.pytree_info.orig_args)
        for name in names:
            if not is_plain(name):
                raise SignatureError(f"{name!r} in PyTreeInfo.orig_args is no name of a parameter")
        takes_root = names[:1] == [self.root]  # then the structure has a place for the module itself
        head = super().gen_fn_def(list(self.pytree_info.orig_args[takes_root:]), maybe_return_annotation)
        leaves = [text for text in free_vars if text not in ("/", "*")]
        if not leaves:
            return head
        annotated = [text.partition(" = ")[0] for text in leaves if " : " in text]
        lines = [head, *[f"    {text}" for text in annotated]]
        flat = f"{self.root}._in_spec.flatten_up_to({self._nest(names)})"
        lines.append(f"    {', '.join([*names[:takes_root], *_bare(leaves)])}, = {flat}")
        return "\n".join(lines)

    def _nest(self, names: list[str]) -> str:
        """The parameters in the structure that ``in_spec`` describes."""
        spec = self.pytree_info.in_spec
        children = spec.children()
        if (
            spec.type is tuple
            and len(children) == 2
            and children[0].type is tuple
            and children[1].type is dict
        ):
            count = children[0].num_children
            keys = children[1].context
            args = ", ".join(names[:count]) + ("," if count == 1 else "")
            kwargs = ", ".join([f"{key!r}: {name}" for key, name in zip(keys, names[count:], strict=True)])
            return f"(({args}), {{{kwargs}}})"
        inside = ", ".join(names)
        return f"({inside}{',' if len(names) == 1 else ''})" if spec.type is tuple else f"[{inside}]"

    def generate_output(self, output_args: Argument, *, repr_fn: Callable[[object], str] = repr) -> str:
        """``return pytree.tree_unflatten(..., self._out_spec)``."""
        if self.pytree_info.out_spec is None:
            return super().generate_output(output_args, repr_fn=repr_fn)
        leaves = repr_fn(output_args)
        if not isinstance(output_args, (list, tuple)):
            leaves = f"[{leaves}]"
        return f"return pytree.tree_unflatten({leaves}, {self.root}._out_spec)"

    def module_attributes(self) -> dict[str, Any]:
        """What the module must hold for the function to find it."""
        return {"_in_spec": self.pytree_info.in_spec, "_out_spec": self.pytree_info.out_spec}


class BoxedCodeGen(CodeGen):
    """The function takes one list and empties it, so that inputs can be freed before it returns."""

    is_boxed: Final = True

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """``def forward(self, args_list):`` and the line that takes the values over."""
        names = _bare(free_vars)
        box = free_name("args_list", set(names))
        head = super().gen_fn_def([box], maybe_return_annotation)
        if not names:
            return head
        return f"{head}\n    {', '.join(names)}, = {box}\n    {box}.clear()"


def _bare(free_vars: Sequence[str]) -> list[str]:
    """The names alone, without markers, annotations and defaults."""
    texts = [text.partition(":")[0].partition("=")[0].strip() for text in free_vars]
    return [text.lstrip("*") for text in texts if text not in ("/", "*")]
