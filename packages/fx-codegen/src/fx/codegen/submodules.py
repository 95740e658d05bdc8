"""Adding and deleting submodules by path."""

from __future__ import annotations

from torch import nn

from fx.ir import Graph


def install_submodule(root: nn.Module, path: str, module: nn.Module) -> bool:
    """See :meth:`fx.codegen.GraphModule.add_submodule`."""
    *steps, last = path.split(".")
    place: nn.Module = root
    missing = len(steps)
    for index, step in enumerate(steps):
        found = getattr(place, step, None)
        if found is None:
            missing = index
            break
        if not isinstance(found, nn.Module):
            return False
        place = found
    if missing == len(steps) and last not in place._modules and getattr(place, last, None) is not None:
        return False
    for step in steps[missing:]:
        new = nn.Module()
        place.add_module(step, new)
        place = new
    place.add_module(last, module)
    return True


def delete_submodule(root: nn.Module, path: str) -> bool:
    """See :meth:`fx.codegen.GraphModule.delete_submodule`."""
    *steps, last = path.split(".")
    place: nn.Module = root
    for step in steps:
        found = getattr(place, step, None)
        if not isinstance(found, nn.Module):
            return False
        place = found
    if place._modules.get(last) is None:
        return False
    del place._modules[last]
    return True


def delete_unused_submodules(root: nn.Module, graph: Graph) -> None:
    """See :meth:`fx.codegen.GraphModule.delete_all_unused_submodules`."""
    used: set[str] = set()
    whole: list[str] = []
    for node in graph.nodes:
        if node.op in ("call_module", "get_attr"):
            path = str(node.target)
            steps = path.split(".")
            used.update(".".join(steps[:end]) for end in range(1, len(steps) + 1))
            whole.append(path)
    for path in whole:
        module: object = root
        for step in path.split("."):
            module = getattr(module, step, None)
        if isinstance(module, nn.Module):  # all of a module that is called, or read as a value, is in use
            used.update(f"{path}.{name}" for name, _ in module.named_modules() if name)
    names = [name for name, _ in root.named_modules(remove_duplicate=False) if name]
    for name in names:
        if name not in used:
            delete_submodule(root, name)
