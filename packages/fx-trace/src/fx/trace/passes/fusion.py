"""Fold batch normalisation into the convolution or linear layer in front of it (inference only)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

from fx.codegen import GraphModule
from fx.ir import Node
from fx.trace.passes.base import PassResult

__all__ = ["fuse_conv_bn"]

_FUSE: Final[dict[tuple[type, type], Any]] = {
    (nn.Conv1d, nn.BatchNorm1d): fuse_conv_bn_eval,
    (nn.Conv2d, nn.BatchNorm2d): fuse_conv_bn_eval,
    (nn.Conv3d, nn.BatchNorm3d): fuse_conv_bn_eval,
    (nn.Linear, nn.BatchNorm1d): fuse_linear_bn_eval,
}


def fuse_conv_bn(gm: GraphModule) -> PassResult:
    """Fuse every pair whose intermediate value is used nowhere else; edits ``gm``, not the modules it came from.

    Modules that are called more than once, are training, or keep no running statistics are left alone, and so are those whose
    parameters the graph reads itself, and those inside a module that the graph calls as a whole.

    Source: seed 003, "Conv/Batch Norm fusion".
    """
    modules = dict(gm.named_modules(remove_duplicate=False))
    called = [str(node.target) for node in gm.graph.find_nodes(op="call_module")]
    calls = Counter(id(module) for path in called for module in modules[path].modules())
    read = {id(value) for value in _attributes_read(gm)}
    changes: list[str] = []
    for node in gm.graph.find_nodes(op="call_module"):
        before = node.args[0] if node.args else None
        if not (isinstance(before, Node) and before.op == "call_module" and len(before.users) == 1):
            continue
        layer, norm = modules[str(before.target)], modules[str(node.target)]
        fuse = _FUSE.get((type(layer), type(norm)))
        if fuse is None or calls[id(layer)] > 1 or not _is_fusable(layer, norm):
            continue
        if any(id(value) in read for value in (layer, *layer.parameters())):
            continue
        fused = fuse(layer, norm)
        _install(gm, str(before.target), fused)
        modules[str(before.target)] = fused
        calls[id(fused)] = 1
        node.replace_all_uses_with(before)
        gm.graph.erase_node(node)
        changes.append(f"fused {node.target} into {before.target}")
    if changes:
        gm.delete_all_unused_submodules()
        gm.recompile()
    return PassResult(gm, tuple(changes))


def _is_fusable(layer: nn.Module, norm: nn.Module) -> bool:
    kinds = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    hooks = [getattr(module, kind) for module in (layer, norm) for kind in kinds]
    weight = getattr(layer, "weight", None)
    if isinstance(layer, nn.Linear) and not isinstance(weight, torch.Tensor):
        return False
    keeps_statistics = getattr(norm, "running_mean", None) is not None
    return not (layer.training or norm.training or any(hooks)) and keeps_statistics


def _attributes_read(gm: GraphModule) -> Iterator[object]:
    for node in gm.graph.find_nodes(op="get_attr"):
        value: object = gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        yield value
        if isinstance(value, nn.Module):
            yield from value.modules()


def _install(gm: GraphModule, path: str, module: nn.Module) -> None:
    """Put ``module`` at ``path``, whose parents are ``gm``'s own unless the graph calls or reads one of them as a whole."""
    parent, _, name = path.rpartition(".")
    gm.get_submodule(parent).add_module(name, module)
