"""The vectors that `pyimpl.attention_varlen` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from generated_checks import dtypes, judge, scale_of, tensor, vector_of, vectors

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    window = vector.masks[0].window
    out, lse = pyimpl.attention_varlen(
        tensor(vector.q, dtype, vector.head_dim)[:, None],
        tensor(vector.k, dtype, vector.head_dim)[:, None],
        tensor(vector.v, dtype, vector.value_dim)[:, None],
        torch.tensor(vector.cu_seqlens_q, dtype=torch.int32),
        torch.tensor(vector.cu_seqlens_k, dtype=torch.int32),
        window=(None, None) if window is None else (window.left, window.right),
        causal_alignment=vector.alignment,
        scale=scale_of(vector),
        return_lse=True,
        backend="tiled",
    )
    sequences = [slice(*ends) for ends in pairwise(vector.cu_seqlens_q)]
    judge(vector, dtype, *((out[None, None, rows, 0], lse[None, :, rows]) for rows in sequences))


@vectors("varlen", 12)
@dtypes
def test_varlen(vector_id: str, dtype: torch.dtype) -> None:
    """Sequences of any lengths, empty ones too, packed one after another, with the keys of other
    sequences masked by the prefix sums of the lengths, get the outputs that each gets by itself,
    each with its own score transformation in its own positions.

    Theorem varlen, `Spec.attentionVarlen`. Sequences of different lengths, packed one after
    another: a query sees the keys of its own sequence, and masks start anew with each.
    """
    check(vector_id, dtype)


@vectors("varlen-drawn", 20)
@dtypes
def test_varlen_drawn(vector_id: str, dtype: torch.dtype) -> None:
    """Sequences of any lengths, empty ones too, packed one after another, with the keys of other
    sequences masked by the prefix sums of the lengths, get the outputs that each gets by itself,
    each with its own score transformation in its own positions.

    Theorem varlen, `Spec.attentionVarlen`. Numbers of sequences, their lengths and masks drawn at
    random, empty sequences among them.
    """
    check(vector_id, dtype)


@vectors("varlen-past-tiles", 3)
@dtypes
def test_varlen_past_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """Sequences of any lengths, empty ones too, packed one after another, with the keys of other
    sequences masked by the prefix sums of the lengths, get the outputs that each gets by itself,
    each with its own score transformation in its own positions.

    Theorem varlen, `Spec.attentionVarlen`. Packed sequences of which some are longer than a tile of
    64 or of 128, beside short and empty ones: keys past the first tile that are left out, or taken
    from the next sequence, show.
    """
    check(vector_id, dtype)


@vectors("varlen-sliced", 11)
@dtypes
def test_varlen_sliced(vector_id: str, dtype: torch.dtype) -> None:
    """Packed sequences get the same outputs when attention is computed for each slice between two
    prefix sums.

    Theorem varlen-sliced, `Spec.attentionSliced`. Packed sequences, one attention for each slice
    between cumulative lengths: a length that is off by one lets a neighbour in.
    """
    check(vector_id, dtype)


@vectors("varlen-wide-heads", 3)
@dtypes
def test_varlen_wide_heads(vector_id: str, dtype: torch.dtype) -> None:
    """Sequences of any lengths, empty ones too, packed one after another, with the keys of other
    sequences masked by the prefix sums of the lengths, get the outputs that each gets by itself,
    each with its own score transformation in its own positions.

    Theorem varlen, `Spec.attentionVarlen`. Packed sequences with heads of 64, 128 and 256 columns,
    all of them in use, and more keys than a tile: columns past a tile that are left out, or rows
    that are read at the strides of narrower heads, show.
    """
    check(vector_id, dtype)
