"""The vectors that `pyimpl.attention` with `dropout_p` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dropped, dtypes, judge, scale_of, tensor, vector_of, vectors, visible
from torch import Tensor

import pyimpl
from bridge.vectors.model.attention import Matrix


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)

    def heads(matrices: tuple[Matrix, ...]) -> Tensor:
        stacked = torch.stack([tensor(rows, dtype) for rows in matrices])
        return stacked.unflatten(0, (vector.batch, -1))

    out, lse = pyimpl.attention(
        heads(vector.q),
        heads(vector.k),
        heads(vector.v),
        scale=scale_of(vector),
        attn_mask=visible(vector),
        enable_gqa=True,
        return_lse=True,
        backend="tiled",
        **dropped(vector),
    )
    places = [(b, slice(h, h + 1)) for b in range(vector.batch) for h in range(vector.num_heads)]
    judge(vector, dtype, *((out[b : b + 1, h], lse[b : b + 1, h]) for b, h in places))


@vectors("dropout", 23)
@dtypes
def test_dropout(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1, score transformations and factors Z, the tile loop
    that multiplies each weight where it meets its value, and leaves m and l as they are, computes
    (P ∘ Z) V.

    Theorem flash-dropout, `Spec.attentionDropout`. Dropped weights: the kept ones are divided by 1
    − p, the softmax and its log-sum-exp are those of all keys, and every sequence, head, query and
    key has a random number of its own.
    """
    check(vector_id, dtype)


@vectors("dropout-past-tiles", 2)
@dtypes
def test_dropout_past_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1, score transformations and factors Z, the tile loop
    that multiplies each weight where it meets its value, and leaves m and l as they are, computes
    (P ∘ Z) V.

    Theorem flash-dropout, `Spec.attentionDropout`. Dropout with several tiles of queries, and of
    keys: numbers that are counted from the start of a tile show.
    """
    check(vector_id, dtype)


@vectors("dropout-replay", 10)
@dtypes
def test_dropout_replay(vector_id: str, dtype: torch.dtype) -> None:
    """For all tile sizes of at least 1, the tile loop in which each pair of tiles draws for itself
    the weights that it keeps computes attention with dropout by the mask of seed and head, which
    does not depend on the tiles.

    Theorem dropout-replay, `Spec.flashDrawn`. The mask is drawn tile by tile and does not depend on
    the tiles: columns counted from the start of a tile, or tiles that start within a group of four
    keys, show.
    """
    check(vector_id, dtype)


@vectors("dropout-tiles", 10)
@dtypes
def test_dropout_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1, score transformations and factors Z, the tile loop
    that multiplies each weight where it meets its value, and leaves m and l as they are, computes
    (P ∘ Z) V.

    Theorem flash-dropout, `Spec.flashDropout`. The tile loop with dropout: weights that are dropped
    from the denominator too, or before the maximum, show.
    """
    check(vector_id, dtype)
