"""Attention for PyTorch whose parts mirror, one to one, a machine-checked Lean specification."""

from pyimpl.attention import attention
from pyimpl.cascade import attention_cascade
from pyimpl.decode import attention_decode
from pyimpl.internal.implements import implements
from pyimpl.merge import merge_states
from pyimpl.ring import ring_attention
from pyimpl.varlen import attention_varlen

__all__ = [
    "attention",
    "attention_cascade",
    "attention_decode",
    "attention_varlen",
    "implements",
    "merge_states",
    "ring_attention",
]
