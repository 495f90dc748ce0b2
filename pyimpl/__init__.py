"""Attention for PyTorch whose parts mirror, one to one, a machine-checked Lean specification."""

from pyimpl._implements import implements
from pyimpl.attention import attention
from pyimpl.decode import attention_decode
from pyimpl.merge import merge_states
from pyimpl.varlen import attention_varlen

__all__ = ["attention", "attention_decode", "attention_varlen", "implements", "merge_states"]
