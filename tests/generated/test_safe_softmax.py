"""`Attention.Spec.safeSoftmax` on its vectors, through `pyimpl.attention`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, options, scale_of, tensor, vector_of, vectors

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    out, lse = pyimpl.attention(
        tensor(vector.q, dtype)[None, None],
        tensor(vector.k, dtype)[None, None],
        tensor(vector.v, dtype)[None, None],
        scale=scale_of(vector),
        **options(vector, dtype),
        return_lse=True,
        backend="tiled",
    )
    judge(vector, dtype, (out, lse))


@vectors("softmax-weights", 16)
@dtypes
def test_softmax_weights(vector_id: str, dtype: torch.dtype) -> None:
    """Subtracting the row maximum before the exponential, as every kernel does, gives the same
    softmax.

    Theorem safe-softmax. The values are the unit vectors, so that the output is the row of softmax
    weights itself: a weight that is too large, or not 0 where its key is masked, shows alone.
    """
    check(vector_id, dtype)
