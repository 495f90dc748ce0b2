"""Parameters from `torch.nn.MultiheadAttention` to `MultiHeadAttention` and back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from pyimpl.modules.multi_head_attention import MultiHeadAttention

    Ours = TypeVar("Ours", bound=MultiHeadAttention)


def from_torch(kind: type[Ours], module: nn.MultiheadAttention) -> Ours:
    """`MultiHeadAttention.from_torch` of the class `kind`."""
    if not isinstance(module, nn.MultiheadAttention):
        raise TypeError(
            f"module must be a torch.nn.MultiheadAttention, not {type(module).__name__}"
        )
    weight = module.out_proj.weight
    # Made on meta first, where no random numbers are drawn.
    ours = kind(
        module.embed_dim, module.num_heads, key_dim=module.kdim, value_dim=module.vdim,
        bias=module.in_proj_bias is not None, add_bias_kv=module.bias_k is not None,
        add_zero_attn=module.add_zero_attn, dropout=module.dropout, batch_first=module.batch_first,
        device="meta", dtype=weight.dtype,
    ).to_empty(device=weight.device)  # fmt: skip
    with torch.no_grad():
        for mine, theirs, rows in _counterparts(ours, module):
            mine.copy_(theirs[rows]).requires_grad_(theirs.requires_grad)
    return ours.train(module.training)


def to_torch(module: MultiHeadAttention) -> nn.MultiheadAttention:
    """`MultiHeadAttention.to_torch` of `module`."""
    limits = {
        "output_dim": (module.output_dim, "query_dim", module.query_dim),
        "num_kv_heads": (module.num_kv_heads, "num_heads", module.num_heads),
        "value_head_dim": (module.value_head_dim, "head_dim", module.head_dim),
        "head_dim": (module.head_dim, "query_dim / num_heads", module.query_dim / module.num_heads),
    }
    for name, (given, meaning, wanted) in limits.items():
        if given != wanted:
            raise ValueError(
                f"{name} must be {meaning}, {wanted:g}, not {given}, for "
                "torch.nn.MultiheadAttention to hold the module"
            )
    if module.scale is not None:
        raise ValueError(
            f"scale must be None, not {module.scale:g}, for torch.nn.MultiheadAttention to hold "
            "the module"
        )
    weight = module.q_proj.weight
    theirs = nn.MultiheadAttention(
        module.query_dim, module.num_heads, module.dropout, bias=module.q_proj.bias is not None,
        add_bias_kv=module.bias_k is not None, add_zero_attn=module.add_zero_attn,
        kdim=module.key_dim, vdim=module.value_dim, batch_first=module.batch_first, device="meta",
        dtype=weight.dtype,
    ).to_empty(device=weight.device).requires_grad_(False)  # fmt: skip
    with torch.no_grad():
        for mine, parameter, rows in _counterparts(module, theirs):
            parameter[rows].copy_(mine)
            parameter.requires_grad_(parameter.requires_grad or mine.requires_grad)
    return theirs.train(module.training)


def _counterparts(
    ours: MultiHeadAttention, theirs: nn.MultiheadAttention
) -> Iterator[tuple[Tensor, Tensor, slice]]:
    """Each parameter of ours, that of theirs which holds the same numbers, and the rows in it:
    theirs holds the three biases in one, and the three weights if their widths are the same."""
    whole = slice(None)
    for i, letter in enumerate("qkv"):
        rows = slice(i * ours.query_dim, (i + 1) * ours.query_dim)
        linear: nn.Linear = getattr(ours, f"{letter}_proj")
        if theirs.in_proj_weight is not None:
            yield linear.weight, theirs.in_proj_weight, rows
        else:
            yield linear.weight, getattr(theirs, f"{letter}_proj_weight"), whole
        if linear.bias is not None:
            yield linear.bias, theirs.in_proj_bias, rows
    yield ours.out_proj.weight, theirs.out_proj.weight, whole
    if ours.out_proj.bias is not None:
        yield ours.out_proj.bias, theirs.out_proj.bias, whole
    for name in ("bias_k", "bias_v"):
        mine = getattr(ours, name)
        if mine is not None:
            yield mine, getattr(theirs, name), whole
