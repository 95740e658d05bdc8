"""``print_readable``: a module's code, and that of the modules generated inside it, as nested classes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fx.codegen.module import GraphModule


def module_text(module: GraphModule, generated: type[GraphModule], name: str, **options: Any) -> str:
    """The text of a class ``name`` with the verbose code of ``module``, then its children's of class ``generated``."""
    code = module.graph.python_code("self", verbose=True, **options)
    parts = [f"class {name}(torch.nn.Module):", _indented(code.src.rstrip())]
    for child_name, child in module.named_children():
        if isinstance(child, generated):
            parts += ["", _indented(module_text(child, generated, child_name, **options))]
    return "\n".join(parts)


def _indented(text: str) -> str:
    return "\n".join([f"    {line}" if line else "" for line in text.split("\n")])
