"""How outputs lie in memory."""

from __future__ import annotations

import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from pyimpl.internal.arguments import empty_output, is_laid_out

SIZES = st.integers(0, 3)


@given(SIZES, SIZES, SIZES, SIZES, st.permutations(range(4)), st.integers(0, 3))
def test_an_output_is_known_by_its_strides(
    batch: int, heads: int, length: int, dim: int, order: list[int], value_dim: int
) -> None:
    """It is for those that `empty_output` makes, and no others of the shape."""
    shape = (batch, heads, length, dim)
    query = torch.empty([shape[axis] for axis in order]).permute([order.index(a) for a in range(4)])
    out = empty_output(query, value_dim)
    assert is_laid_out(out, query)
    for other in itertools.permutations(range(4)):
        lying = torch.empty([out.shape[axis] for axis in other])
        again = lying.permute([other.index(axis) for axis in range(4)])
        assert is_laid_out(again, query) == (again.stride() == out.stride())
