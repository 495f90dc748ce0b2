"""`torch.utils.flop_counter` told of the operators of `pyimpl.attention`, forward and backward: the
products of matrices, counted as those of PyTorch's SDPA are, masks and dropout left out of account.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils.flop_counter import flop_registry, register_flop_formula


def register() -> None:
    """Have `FlopCounterMode` count `pyimpl.attention` from now on; a second call changes nothing.

    `attention_varlen` and `attention_decode` are not counted, nor are the computations of
    `pyimpl.distributed` outside of the operators.
    """
    operators = (
        (torch.ops.pyimpl.attention, _forward),
        (torch.ops.pyimpl.attention_backward, _backward),
    )
    for packet, formula in operators:
        if packet not in flop_registry:
            register_flop_formula(packet)(formula)


def _forward(query: Any, key: Any, value: Any, *rest: Any, **named: Any) -> int:
    """Q Kᵀ and P V, of shapes."""
    batch, heads, q_len, head_dim = query
    pairs: int = batch * heads * q_len * key[2]
    width: int = head_dim + value[3]
    return 2 * pairs * width


def _backward(
    grad_out: Any, grad_lse: Any, query: Any, key: Any, value: Any, *rest: Any, **named: Any
) -> int:
    """Q Kᵀ once more, dO Vᵀ, Pᵀ dO, dS K and dSᵀ Q, of shapes."""
    batch, heads, q_len, head_dim = query
    pairs: int = batch * heads * q_len * key[2]
    width: int = 3 * head_dim + 2 * value[3]
    return 2 * pairs * width
