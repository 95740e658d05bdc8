"""Symbolic tracing: run a program once with traced values, keep what it does as a graph.

``Tracer`` adds to ``TracerBase`` what a program made of modules needs: it calls leaf modules by name, goes through all
others, turns parameters and constant tensors into ``get_attr`` nodes, and makes placeholders from the signature. While a
trace runs, ``nn.Module.__call__`` and ``__getattr__`` and the wrapped names are replaced (:mod:`fx.trace.patching`); names of
parameters and modules are looked up in indexes that are built once per trace.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import FunctionType, ModuleType
from typing import Any, Final, cast

import torch
import torch.utils._pytree as pytree

from fx.codegen import GraphModule
from fx.ir import Argument, Graph
from fx.trace.active import activated, patch_modules
from fx.trace.attributes import AttributeNames
from fx.trace.concrete import PHWithMeta, specialise
from fx.trace.errors import ModulePathError, RootError
from fx.trace.leaf import is_library_module
from fx.trace.location import location_of_user
from fx.trace.patching import Patches
from fx.trace.proxy import ParameterProxy, Proxy, TracerBase
from fx.trace.pytrees import install_pytree_codegen
from fx.trace.signature import Parameters, parameters_of, plain_function, positional_call, undecorated
from fx.trace.wrap import original, patch_autowrapped, patch_homes, patch_wrapped_names

__all__ = ["Tracer", "symbolic_trace"]

_NO_DEFAULT: Final[tuple[Any, ...]] = ()
_NO_STACK: Final[dict[str, tuple[str, type]]] = {}


class Tracer(TracerBase):
    """Traces a module or a function into a graph; override its methods to trace otherwise.

    Args:
        autowrap_modules: modules whose public functions are leaves wherever traced code uses them.
        autowrap_functions: further functions that are leaves.
        param_shapes_constant: let traced parameters answer ``shape``, ``size()`` and so on with numbers.

    Attributes:
        root: the module that the graph's names refer to; for a function an empty module that collects constants.

    Source: seed 003, ``Tracer``.
    """

    root: torch.nn.Module
    _parameter_proxies: dict[str, Proxy]
    _patches: Patches | None
    _scanned: dict[int, tuple[dict[str, Any], int]]
    _names: AttributeNames | None

    def __init__(
        self,
        autowrap_modules: tuple[ModuleType, ...] = (math,),
        autowrap_functions: tuple[Callable[..., Any], ...] = (),
        param_shapes_constant: bool = False,
    ) -> None:
        self._autowrapped: dict[int, Callable[..., Any]] = {
            id(value): value
            for module in autowrap_modules
            for name, value in vars(module).items()
            if not name.startswith("_") and callable(value)
        }
        self._autowrap_functions = tuple([original(function) for function in autowrap_functions])
        self._autowrapped.update((id(function), function) for function in self._autowrap_functions)
        self._autowrap_search: list[ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[torch.nn.Module, str] | None = None
        self.root_module_name = ""
        self.num_calls: dict[str, int] = {}

    def __new__(cls, *args: object, **kwargs: object) -> Tracer:
        self = cast("Tracer", super().__new__(cls))
        self._parameter_proxies = {}
        self._patches = self._names = None
        self._scanned = {}
        return self

    @property
    def tensor_attrs(self) -> dict[Any, str]:
        """Tensors that are plain attributes of modules of the root, with their qualified names."""
        return self._attribute_names().plain

    def _attribute_names(self) -> AttributeNames:
        if self._names is None or self._names.root is not self.root:
            self._names = AttributeNames(self.root)
        return self._names

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name that starts with ``prefix`` and that the root does not have yet."""
        return self._attribute_names().fresh(prefix)

    def create_arg(self, a: Any) -> Argument:
        """Lower one argument; parameters, tensors and modules become ``get_attr`` nodes.

        A tensor that no module of the root holds is stored in the root under a new name (``_tensor_constant0`` ...). A literal
        named tuple becomes a call of its class. All else is lowered as :meth:`TracerBase.create_arg` does.
        """
        if isinstance(a, (torch.Tensor, torch.nn.Module, torch.ScriptObject, pytree.TreeSpec)):
            return self.create_node("get_attr", self._attribute_names().name_of(a), (), {})
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            args = tuple([self.create_arg(element) for element in a])
            return self.create_node("call_function", type(a), args, {})
        return super().create_arg(a)

    create_arg.lowers_plainly = True  # type: ignore[attr-defined]  # read by TracerBase.__init_subclass__

    def is_leaf_module(self, m: torch.nn.Module, module_qualified_name: str) -> bool:
        """Whether a call of ``m`` is kept as one ``call_module`` node; by default torch's own modules are, but ``Sequential``."""
        return is_library_module(m)

    def path_of_module(self, mod: torch.nn.Module) -> str:
        """Qualified name of ``mod`` below the root.

        Raises:
            ModulePathError: the root does not contain ``mod``.
        """
        paths = self.submodule_paths
        if paths is None:
            paths = {module: name for name, module in self.root.named_modules()}
        path = paths.get(mod)
        if path is None:
            raise ModulePathError(
                f"module is not installed as a submodule: a {type(mod).__name__} is called that the traced root does not hold. "
                "Assign it to an attribute of the root (or of one of its modules) before tracing.",
                location_of_user(),
            )
        return path

    def call_module(
        self, m: torch.nn.Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Called for each call of a module. Records a leaf module, runs any other one.

        Args:
            m: the module.
            forward: what the call does without a trace, hooks included.
            args: positional arguments.
            kwargs: keyword arguments.

        Returns:
            What the traced program gets from the call.
        """
        path = self.path_of_module(m)
        calls = self.num_calls.get(path, 0)
        key = f"{path}@{calls}" if calls else path
        self.num_calls[path] = calls + 1
        entry = self.module_stack[key] = (path, type(m))
        scope = self.scope
        before = scope.module_path, scope.module_type
        scope.module_path, scope.module_type = entry
        self._stack_snapshot = _NO_STACK
        try:
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)
        finally:
            scope.module_path, scope.module_type = before
            self.module_stack.pop(key, None)

    def module_called(
        self, module: torch.nn.Module, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Reached by every call of a module while this tracer runs; hands over to :meth:`call_module`."""

        def forward(*args: Any, **kwargs: Any) -> Any:
            self._autowrap_globals_of(module)
            return call(module, *args, **kwargs)

        return self.call_module(module, forward, args, kwargs)

    def module_attribute_read(self, name: str, value: Any) -> Any:
        """Reached by every read of a parameter, buffer or submodule; hands over to :meth:`getattr`."""
        return self.getattr(name, value, self._parameter_proxies)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Proxy]) -> Any:
        """Called when the traced program reads a parameter, buffer or submodule; gives what the program sees.

        By default parameters (and buffers, if ``proxy_buffer_attributes``) become traced values, one for each name.
        """
        if isinstance(
            attr_val, torch.nn.Module
        ):  # asked first: the commonest, and cheap beside the question for Parameter
            return attr_val
        if isinstance(attr_val, torch.nn.Parameter):
            name = self._attribute_names().parameter(attr_val)
        elif self.proxy_buffer_attributes and isinstance(attr_val, torch.Tensor):
            name = self._attribute_names().buffer(attr_val)
        else:
            return attr_val
        if name is None:
            return attr_val
        proxy = parameter_proxy_cache.get(name)
        if proxy is None:
            proxy = self._attribute_proxy(name, attr_val)
            parameter_proxy_cache[name] = proxy
        return proxy

    def _attribute_proxy(self, name: str, value: torch.Tensor) -> Proxy:
        proxy = self.create_proxy("get_attr", name, (), {})
        if self.param_shapes_constant and isinstance(value, torch.nn.Parameter):
            return ParameterProxy(self, proxy.node, name, value)
        return proxy

    def create_args_for_root(
        self,
        root_fn: Callable[..., Any],
        is_module: bool,
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Make placeholders for the parameters of ``root_fn``.

        Args:
            root_fn: the function to be called; for a module its class's ``forward``.
            is_module: the first parameter is the root itself.
            concrete_args: values for some parameters, by name, or for all, by position.

        Returns:
            A function and the positional arguments to call it with.

        Raises:
            RootError: ``concrete_args`` does not fit the signature, or the first parameter cannot be the root.
        """
        return self._placeholders(root_fn, (self.root,) if is_module else (), {}, concrete_args)

    def _placeholders(
        self,
        root_fn: Callable[..., Any],
        bound: tuple[Any, ...],
        keywords: Mapping[str, Any],
        concrete_args: dict[str, Any] | tuple[Any, ...] | None,
    ) -> tuple[Callable[..., Any], list[Any]]:
        analysed = undecorated(root_fn)
        parameters = parameters_of(analysed)
        if len(bound) > len(parameters.positional):
            raise RootError("``self`` argument cannot be part of *args expansion! Name it in the signature.")
        values = dict(zip(parameters.positional, bound, strict=False)) | dict(keywords)
        open_names = [name for name in parameters.in_call_order if name not in values]
        if isinstance(concrete_args, tuple) and not isinstance(concrete_args, dict):
            flat = self._flat_variadic(parameters, concrete_args, values)
            if flat is not None:
                return root_fn, [*bound, *flat]
            concrete_args = _by_name([n for n in open_names if n[0] != "*"], concrete_args)
        concrete = _checked(concrete_args or {}, open_names)
        for name in parameters.in_signature_order:
            if name not in values:
                values[name] = self._parameter(name, parameters, concrete)
        return install_pytree_codegen(
            self.graph,
            positional_call(root_fn, analysed, parameters),
            values,
            parameters.in_call_order,
            [name for name in parameters.in_signature_order if name in open_names],
            parameters.defaults,
        )

    def _flat_variadic(
        self, parameters: Parameters, concrete_args: tuple[Any, ...], values: Mapping[str, Any]
    ) -> list[Any] | None:
        """Placeholders ``input_0`` ... when a flat tuple is given for a function of ``*args`` alone."""
        only_variadic = len(parameters.positional) == len(values) and parameters.var_positional is not None
        if not concrete_args or not only_variadic or parameters.keyword_only:
            return None
        made = []
        for index, value in enumerate(concrete_args):
            proxy = self.create_proxy("placeholder", f"input_{index}", (), {})
            if isinstance(value, PHWithMeta):
                proxy.node.meta.update(vars(value))
            made.append(proxy)
        return made

    def _parameter(self, name: str, parameters: Parameters, concrete: Mapping[str, Any]) -> Any:
        default = (parameters.defaults[name],) if name in parameters.defaults else _NO_DEFAULT
        if name in concrete:
            return specialise(
                name,
                concrete[name],
                lambda leaf_name: self._placeholder(leaf_name, default, None),
                lambda function, args: self.create_proxy("call_function", function, args, {}),
            )
        proxy = self._placeholder(name, default, parameters.annotations.get(name))
        kind = parameters.kind_of(name)
        if kind is not None:
            proxy.node.meta["parameter_kind"] = kind
        return proxy

    def _placeholder(self, name: str, default: tuple[Any, ...], annotation: Any) -> Proxy:
        """A placeholder; its default is part of the signature and is never lowered to nodes."""
        return self.proxy(self.create_node("placeholder", name, default, {}, None, annotation))

    def trace(
        self,
        root: torch.nn.Module | Callable[..., Any],
        concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
    ) -> Graph:
        """Run ``root`` with traced values and return the graph of what it did.

        After the call ``self.root`` is the module to which names in the graph refer. Nothing outside the root is changed, also
        when tracing fails; then constants stored in the root are taken out again.

        Args:
            root: a module, or any Python callable: function, bound method, partial, object with ``__call__``.
            concrete_args: parameters whose value or structure is fixed; see :func:`symbolic_trace`.

        Raises:
            TraceError: the program does something that cannot be recorded.
            RootError: ``root`` or ``concrete_args`` cannot be used.
        """
        function, bound, keywords = self._prepare(root)
        self.graph = Graph(tracer_cls=type(self))
        try:
            call, args = (
                self.create_args_for_root(function, bool(bound) and bound[0] is self.root, concrete_args)
                if len(bound) <= 1 and not keywords and (not bound or bound[0] is self.root)
                else self._placeholders(function, bound, keywords, concrete_args)
            )
            with Patches() as patches, activated(self):
                self._patches, self._scanned = patches, {}
                patch_modules(patches)
                patch_wrapped_names(patches)
                patch_homes(patches, self._autowrap_functions)
                self._autowrap(function.__globals__)
                for module in self._autowrap_search:
                    self._autowrap(vars(module))
                result = self.create_arg(call(*args))
                annotation = parameters_of(undecorated(function)).annotations.get("return")
                self.create_node("output", "output", (result,), {}, None, annotation)
        except BaseException:
            self._attribute_names().forget_stored()
            raise
        finally:
            self._patches = None
            self.submodule_paths = None
            self._parameter_proxies = {}
        return self.graph

    def _prepare(
        self, root: torch.nn.Module | Callable[..., Any]
    ) -> tuple[FunctionType, tuple[Any, ...], dict[str, Any]]:
        self.num_calls = {}
        self.module_stack.clear()
        self.node_name_to_scope = {}
        self._parameter_proxies = {}
        if isinstance(root, torch.nn.Module):
            function = getattr(type(root), self.traced_func_name, None)
            if function is None:
                raise RootError(f"{type(root).__name__} has no method {self.traced_func_name!r} to trace.")
            prepared = plain_function(function)
            self.root, bound, keywords = root, (root, *prepared[1]), prepared[2]
            function = prepared[0]
        else:
            function, bound, keywords = plain_function(root)
            owner = bound[0] if bound else None
            self.root = owner if isinstance(owner, torch.nn.Module) else torch.nn.Module()
        self.root_module_name = type(self.root).__name__
        self._names = AttributeNames(self.root)
        self.submodule_paths = {module: name for name, module in self.root.named_modules()}
        return function, bound, keywords

    def _autowrap_globals_of(self, module: torch.nn.Module) -> None:
        namespace = getattr(getattr(module, "forward", module), "__globals__", None)
        if namespace is not None:
            self._autowrap(namespace)

    def _autowrap(self, namespace: dict[str, Any]) -> None:
        """Once for each namespace, and again when it has more names than before."""
        patches, seen = self._patches, self._scanned.get(id(namespace))
        if patches is not None and (seen is None or seen[1] != len(namespace)):
            self._scanned[id(namespace)] = (namespace, len(namespace))
            patch_autowrapped(patches, namespace, self._autowrapped)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        """A tracer of the same settings; the state of a trace is not copied."""
        new = type(self).__new__(type(self))
        new.__dict__.update(self.__dict__)
        new._autowrapped = dict(self._autowrapped)
        new._autowrap_search = list(self._autowrap_search)
        return new


def _by_name(names: list[str], values: tuple[Any, ...]) -> dict[str, Any]:
    if len(names) != len(values):
        raise RootError(f"Tracing expected {len(names)} arguments but got {len(values)} concrete arguments")
    return dict(zip(names, values, strict=True))


def _checked(concrete: dict[str, Any], names: list[str]) -> dict[str, Any]:
    unknown = [name for name in concrete if name not in names]
    if unknown:
        raise RootError(
            f"concrete_args names {', '.join(map(repr, unknown))}, but the traced function has the parameters "
            f"{', '.join(map(repr, names))}."
        )
    return concrete


def symbolic_trace(
    root: torch.nn.Module | Callable[..., Any],
    concrete_args: dict[str, Any] | tuple[Any, ...] | None = None,
) -> GraphModule:
    """Trace ``root`` and make a module of the graph.

    Args:
        root: module or function.
        concrete_args: parameters to fix, by name: a value (control flow on it can then be traced; the result asserts that it is
            given the same), or a structure with :data:`~fx.trace.PH` in the places that stay inputs.

    Raises:
        TraceError: the program does something that cannot be recorded.

    Source: seed 003, ``symbolic_trace``.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = type(root).__name__ if isinstance(root, torch.nn.Module) else getattr(root, "__name__", "")
    return GraphModule(tracer.root, graph, name if name.isidentifier() else "GraphModule")
