"""``GraphModule``: an ``nn.Module`` whose ``forward`` is generated from a graph.

Every instance has a class of its own, a subclass of the class that was called, which holds its ``forward``: so
``type(gm).forward`` is a plain function, as TorchScript, ``inspect`` and ``DataParallel`` want it, and calling costs
what calling a hand-written module costs.  Generation is eager (later edits of the graph do not show until
:meth:`GraphModule.recompile`), compilation is lazy (on the first look at ``forward``), and the same text is compiled
once in a process.

Source: torch.fx reference, ``GraphModule``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

from torch import nn

from fx.codegen import pickling, readable
from fx.codegen.attributes import collect
from fx.codegen.folder import write_folder
from fx.codegen.loader import load
from fx.codegen.source import PythonCode
from fx.codegen.submodules import delete_submodule, delete_unused_submodules, install_submodule
from fx.codegen.tracebacks import explain
from fx.ir import Graph


class _Forward:
    """Stands for ``forward`` until it is looked at: then compiles, and leaves its place to the function."""

    __slots__ = ("_code", "_owner")

    def __init__(self, code: PythonCode, owner: type) -> None:
        self._code = code
        self._owner = owner

    def __get__(self, instance: object | None, owner: type | None = None) -> Any:
        function = load(self._code)
        if vars(self._owner).get("forward") is self:
            setattr(self._owner, "forward", function)  # noqa: B010 - mypy refuses assigning to a method
        return function if instance is None else function.__get__(instance, owner)


class GraphModule(nn.Module):
    """A module generated from a graph: ``graph``, the ``code`` made from it, and ``forward``, which runs that.

    Assigning ``graph`` generates anew.  After editing the graph in place, call :meth:`recompile`.

    Args:
        root: a module or a dict from paths to objects.  What the nodes of ``graph`` refer to is taken from there, and
            nothing else.
        graph: the graph; it becomes this module's own, not copied.
        class_name: the name of the instance's class, for messages.

    Raises:
        MissingAttributeError: a node refers to something that ``root`` does not have.
        TypeError: ``root`` is neither a module nor a dict, or ``graph`` is no graph.
        CodegenError: the graph is no function.

    >>> import operator, torch
    >>> from fx.ir import Graph
    >>> graph = Graph()
    >>> x = graph.placeholder("x")
    >>> _ = graph.output(graph.call_function(operator.mul, (x, 2)))
    >>> gm = GraphModule({}, graph)
    >>> gm(torch.tensor(21))
    tensor(42)
    """

    __jit_unused_properties__ = ("graph", "code", "_boxed_call")  # TorchScript would compile properties

    if TYPE_CHECKING:  # annotations that exist at run time would be read by TorchScript
        _graph: Graph
        _python_code: PythonCode
        meta: dict[str, Any]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """An instance of a new subclass of ``cls``, which will hold its ``forward``."""
        base: Any = pickling.written_class(cls)
        make: Any = type(base)
        own: type[Self] = make(
            base.__name__, (base,), {"__module__": base.__module__, pickling.IMPLEMENTS: base}
        )
        made: Self = super().__new__(own)
        return made

    def __init__(
        self, root: nn.Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"
    ) -> None:
        super().__init__()
        type(self).__name__ = class_name
        if isinstance(root, nn.Module):
            self.training = root.training
        collect(root, graph, self)
        self.meta = {}
        self.graph = graph

    # -- graph and code -------------------------------------------------------------------------------------------

    @property
    def graph(self) -> Graph:
        """The graph that ``code`` and ``forward`` are generated from; assigning one generates them."""
        return self._graph

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise TypeError(
                f"graph must be a fx.ir.Graph, not {type(graph).__name__}; see fx.codegen.interop"
            )
        before = self.__dict__.get("_graph")
        self._graph = graph
        try:
            self.recompile()
        except BaseException:
            self.__dict__.pop("_graph") if before is None else self.__dict__.update(_graph=before)
            raise
        graph.owning_module = self

    @property
    def code(self) -> str:
        """The source of ``forward``."""
        return self._python_code.src

    def recompile(self) -> PythonCode:
        """Generate ``code`` and ``forward`` from ``graph``, after it was edited; nested GraphModules too.

        Raises:
            CodegenError: the graph is no function; the module keeps the code it had.
        """
        code = self._generate()
        for child in self.children():
            if isinstance(child, GraphModule):
                child.recompile()
        return code

    def _generate(self) -> PythonCode:
        """:meth:`recompile` of this module alone."""
        code: PythonCode = self._graph.python_code("self")
        attributes = getattr(self._graph.codegen, "module_attributes", None)
        if attributes is not None:
            self.__dict__.update(attributes())
        self._install(code)
        return code

    def _install(self, code: PythonCode) -> None:
        """Make ``code`` this module's ``forward``."""
        self.__dict__["_python_code"] = code
        own = type(self)
        setattr(own, "forward", _Forward(code, own))  # noqa: B010 - mypy refuses assigning to a method

    @property
    def _boxed_call(self) -> bool:
        """Does ``forward`` take one list that it empties?  Backends ask."""
        return bool(getattr(self._graph.codegen, "is_boxed", False))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run ``forward`` with the hooks of the module; an error tells which node it comes from."""
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            explain(error, self._graph, self._python_code, type(self).__name__)
            raise

    # -- showing --------------------------------------------------------------------------------------------------

    def print_readable(
        self, print_output: bool = True, include_stride: bool = False, include_device: bool = False
    ) -> str:
        """The code of this module and of the GraphModules in it as nested classes, with places and shapes.

        Args:
            print_output: print the text as well.
            include_stride, include_device: add these to the shapes that ``node.meta`` knows.
        """
        text = readable.module_text(
            self,
            GraphModule,
            type(self).__name__,
            include_stride=include_stride,
            include_device=include_device,
        )
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return f"{super().__str__()}\n\n{self.code}"

    def to_folder(self, folder: str | os.PathLike[str], module_name: str = "FxModule") -> None:
        """Write a package ``folder`` whose ``module_name`` is this module as plain Python, without this library.

        Raises:
            ValueError: ``module_name`` is no name of a class.
        """
        write_folder(self, folder, module_name)

    # -- submodules -----------------------------------------------------------------------------------------------

    def add_submodule(self, target: str, m: nn.Module) -> bool:
        """Put ``m`` at the path ``target``, with empty modules where the path has none.

        Returns:
            ``False``, and nothing is changed, if something on the path is no module.
        """
        return install_submodule(self, target, m)

    def delete_submodule(self, target: str) -> bool:
        """Delete the submodule at the path ``target``; ``False`` if there is none."""
        return delete_submodule(self, target)

    def delete_all_unused_submodules(self) -> None:
        """Delete the submodules that no node calls or reads from, and that hold none that is."""
        delete_unused_submodules(self, self._graph)

    # -- copies ---------------------------------------------------------------------------------------------------

    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]:
        return pickling.reduce(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        pickling.restore(self, state, super().__setstate__)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return pickling.deep_copy(self, memo)

    def __copy__(self) -> Self:
        return pickling.shallow_copy(self)

    def _replicate_for_data_parallel(self) -> Self:
        """A replica for another device: shares class, graph and code; ``DataParallel`` puts the parameters in."""
        replica: Self = object.__new__(type(self))
        replica.__dict__ = self.__dict__.copy()
        replica._parameters = {}
        replica._buffers = self._buffers.copy()
        replica._modules = self._modules.copy()
        object.__setattr__(replica, "_is_replica", True)
        return replica
