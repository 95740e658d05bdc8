"""``CodeGen``: a graph becomes the source of one function.  Subclasses change how it is called and what it returns.

The parts that users override keep torch.fx's names and meanings: ``gen_fn_def``, ``generate_output``,
``process_inputs``, ``process_outputs``, ``additional_globals``.

Source: torch.fx reference, ``Graph.python_code``, ``Graph.set_codegen``, ``Graph.on_generate_code``.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Final

import torch
from torch.utils import _pytree

from fx.codegen.comments import location_comment
from fx.codegen.emit import EMIT
from fx.codegen.emit.nesting import SHORTEST, in_several_statements, nests_too_deep
from fx.codegen.emit.writer import Writer
from fx.codegen.liveness import last_uses
from fx.codegen.names import assign_names
from fx.codegen.signature import parameters
from fx.codegen.source import PythonCode
from fx.ir import Argument, Graph, Node

STANDARD_GLOBALS: Final[dict[str, Any]] = {
    "inf": math.inf,
    "nan": math.nan,
    "NoneType": type(None),
    "torch": torch,
    "device": torch.device,
    "pytree": _pytree,
}
"""What text that users write (overridden methods, body transformers) may refer to without declaring it."""

_WORD: Final = re.compile(r"[^\W\d]\w*")


class CodeGen:
    """The default way from a graph to a function: one parameter per placeholder, the output as it is.

    Attributes:
        root: the parameter that holds the root module, in the text that is being generated.
        body_transformer: applied to the lines of the body; set by :meth:`fx.ir.Graph.on_generate_code`.
    """

    function_name: ClassVar[str] = "forward"

    def __init__(self) -> None:
        self.root = "self"
        self.body_transformer: Callable[[list[str]], list[str]] | None = None

    # -- what users override --------------------------------------------------------------------------------------

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str) -> str:
        """The head of the function, without indentation; further lines, if any, open the body.

        Args:
            free_vars: the texts of the parameters (``x``, ``y : int = 3``, ``*args``) without the root's, which is
                ``self.root``.
            maybe_return_annotation: ``" -> T"``, or nothing.
        """
        return f"def {self.function_name}({', '.join([self.root, *free_vars])}){maybe_return_annotation}:"

    def generate_output(self, output_args: Argument, *, repr_fn: Callable[[object], str] = repr) -> str:
        """The statement that returns, without indentation; ``repr_fn`` writes an argument as an expression."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The caller's arguments as the values of the placeholders.

        Such that ``graph.process_outputs(run(*graph.process_inputs(*inputs))) == f(*inputs)``, where ``run`` executes
        the nodes and ``f`` is the generated function.
        """
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The value of the output node as the caller gets it; see :meth:`process_inputs`."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """(name, object) for what the texts of overridden methods refer to."""
        return []

    def own_names(self) -> list[str]:
        """The names that the texts of overridden methods use; globals of the graph are called otherwise."""
        return [name for name, _ in self.additional_globals()]

    # -- generation -----------------------------------------------------------------------------------------------

    def python_code(
        self, graph: Graph, root_module: str = "self", *, verbose: bool = False, **options: Any
    ) -> PythonCode:
        """The source of ``graph`` as a function, and its globals.

        Args:
            root_module: the parameter that holds the module in which targets are found.
            verbose: write, above each group of nodes, where in the user's program it comes from; and shapes, where
                ``node.meta`` knows them, as annotations.
            options: ``include_stride``, ``include_device``: for the annotations of ``verbose``.

        Raises:
            SignatureError: the placeholders are the parameters of no Python function.
            CodegenError: a node cannot be written.
        """
        nodes = list(graph.nodes)
        names = assign_names(nodes, root_module)
        to = Writer(names, describe_with=options if verbose else None)
        self.root = to.root
        to.globals.reserve(self.own_names())
        head_parameters = parameters(names.placeholders, to)
        body, owners, returns = self._body(nodes, to, verbose)
        head = self.gen_fn_def(head_parameters, returns)
        text = self._assemble(head, body)
        values = to.globals.values
        self._add_globals(values, text)
        return PythonCode(text, values, self.function_name, body, owners)

    def _body(self, nodes: Sequence[Node], to: Writer, verbose: bool) -> tuple[list[str], list[str], str]:
        """The lines of the body (each ends in a newline), the nodes they compute, the return annotation."""
        dying = last_uses(nodes)
        names = to.names
        body: list[str] = []
        owners: list[str] = []
        comment = ""
        for node in nodes:
            op = node.op
            if op == "output":
                try:
                    statement = self._output(node, to)
                except RecursionError:
                    statement = in_several_statements(self._output, node, to)
                if len(statement) > SHORTEST and nests_too_deep(statement):
                    statement = in_several_statements(self._output, node, to)
                body.append(statement + "\n")
                owners.append(node.name)
                return body, owners, "" if node.type is None else f" -> {to.annotation(node.type)}"
            try:
                statement = EMIT[op](node, to)
            except RecursionError:
                statement = in_several_statements(EMIT[op], node, to)
            if len(statement) > SHORTEST and nests_too_deep(statement):
                statement = in_several_statements(EMIT[op], node, to)
            last = dying.get(node)
            if last is not None:
                released = names[last[0]] if len(last) == 1 else " = ".join([names[value] for value in last])
                statement = f"{statement};  {released} = None\n"
            elif statement:
                statement += "\n"
            else:
                continue
            if verbose:
                text = location_comment(node)
                if text and text != comment:
                    comment = text
                    body.append(text)
            body.append(statement)
            owners.append(node.name)
        return body or ["pass\n"], owners, ""

    def _output(self, node: Node, to: Writer) -> str:
        if type(self).generate_output is CodeGen.generate_output:
            return f"return {to.value(node.args[0])}"
        if "repr_fn" in inspect.signature(self.generate_output).parameters:
            return self.generate_output(node.args[0], repr_fn=to.value)
        return self.generate_output(node.args[0])

    def _assemble(self, head: str, body: list[str]) -> str:
        if self.body_transformer is None:
            return head.lstrip("\n") + "\n    " + "    ".join(body)
        lines = "".join(self.body_transformer(body)).strip("\n").split("\n")
        return head.lstrip("\n") + "\n" + "".join([f"    {line}\n" if line else "\n" for line in lines])

    def _add_globals(self, values: dict[str, Any], text: str) -> None:
        for name, value in self.additional_globals():
            values[name] = value
        plain = (
            type(self).gen_fn_def is CodeGen.gen_fn_def
            and type(self).generate_output is CodeGen.generate_output
        )
        if self.body_transformer is not None or not plain:
            words = set(_WORD.findall(text))
            for name, value in STANDARD_GLOBALS.items():
                if name in words:
                    values.setdefault(name, value)
