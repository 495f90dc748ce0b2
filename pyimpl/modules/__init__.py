"""Modules for PyTorch that are built on `pyimpl.attention`."""

from pyimpl.modules.multi_head_attention import MultiHeadAttention

__all__ = ["MultiHeadAttention"]
