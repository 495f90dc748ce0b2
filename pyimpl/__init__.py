"""Attention for PyTorch whose parts mirror, one to one, a machine-checked Lean specification."""

from pyimpl._implements import implements
from pyimpl.attention import attention

__all__ = ["attention", "implements"]
