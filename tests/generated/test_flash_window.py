"""`Attention.Spec.flashWindow` on its vectors, through `pyimpl.attention`.

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


@vectors("window-tiles", 14)
@dtypes
def test_window_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """The tile loop that visits these key tiles only, and those seen in whole without mask code,
    computes attention under the window.

    Theorem tile-bounds-loop. Windows over several tiles of 16, in both alignments: a bound of the
    tile loop that is off by one drops a tile, or lets one in that its mask code must silence.
    """
    check(vector_id, dtype)
