"""The vectors that `pyimpl.attention` with a batch and heads runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, scale_of, vector_of, vectors

import pyimpl
from bridge.conformance.adapters.whole_batches import whole_batch


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    given = whole_batch(vector, str(dtype).removeprefix("torch."), "cpu")
    window = alignment = None
    mask = given.boolean
    if given.alibi is not None:
        alignment = "bottom-right" if given.alibi.shift else "top-left"
    elif given.window is not None:
        window, mask = given.window[:2], None
        alignment = "bottom-right" if given.window.shift else "top-left"
    if vector.packed is not None:
        packed = vector.packed
        by_token = (x[0].transpose(0, 1) for x in (given.query, given.key, given.value))
        out, lse = pyimpl.attention_varlen(
            *by_token,
            torch.tensor(packed.cu_seqlens_q),
            torch.tensor(packed.cu_seqlens_k),
            window=packed.bounds,
            causal_alignment=packed.alignment,
            scale=scale_of(vector),
            enable_gqa=vector.grouped,
            return_lse=True,
            backend="tiled",
        )
        out, lse = out.transpose(0, 1)[None], lse[None]
    else:
        out, lse = pyimpl.attention(
            given.query,
            given.key,
            given.value,
            attn_mask=mask,
            scale=scale_of(vector),
            window=window or (None, None),
            causal_alignment=alignment or "top-left",
            softcap=given.softcap,
            alibi_slopes=given.slopes(),
            bias=given.bias,
            **given.of_heads(),
            enable_gqa=vector.grouped,
            return_lse=True,
            backend="tiled",
            dropout_p=float(vector.dropout_p or 0),
            dropout_seed=None if vector.dropout_p is None else vector.dropout_seed,
        )
    rows = list(vector.rows)
    results = (
        (out[b : b + 1, h : h + 1, rows], lse[b : b + 1, h : h + 1, rows])
        for b in range(len(out))
        for h in range(vector.heads)
    )
    judge(vector, dtype, *results)


@vectors("past-tiles", 12)
@dtypes
def test_past_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attend`. Several tiles of 64 and of 128 in both directions and
    ragged ones, up to 2100 keys, head sizes up to 256 with every column in use, several sequences
    and heads in one call, masks that differ by head and by sequence, values of 24 bits: what is
    wrong from the second tile on shows.
    """
    check(vector_id, dtype)


@vectors("past-tiles-dropout", 4)
@dtypes
def test_past_tiles_dropout(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1, score transformations and factors Z, the tile loop
    that multiplies each weight where it meets its value, and leaves m and l as they are, computes
    (P ∘ Z) V.

    Theorem flash-dropout, `Spec.attend`. Dropout with several tiles of 64 and of 128 in both
    directions, with heads that share keys and several sequences: random numbers of another tile,
    head or sequence show.
    """
    check(vector_id, dtype)


@vectors("past-tiles-options", 9)
@dtypes
def test_past_tiles_options(vector_id: str, dtype: torch.dtype) -> None:
    """Attention computed with intervals, over inputs, a scale and a score transformation that
    contain the true ones, contains the true attention, whatever natural exponential it is taken
    with.

    Theorem enclosure-sound, `Spec.attend`. Softcap, ALiBi, bias and sinks, the default scale, and
    inputs of 24 bits, with several tiles of 64 and of 128 in both directions: an option that is
    left out from the second tile on, slopes or sinks of another head, or inputs that are rounded to
    16 bits show.
    """
    check(vector_id, dtype)


@vectors("past-tiles-packed", 4)
@dtypes
def test_past_tiles_packed(vector_id: str, dtype: torch.dtype) -> None:
    """Sequences of any lengths, empty ones too, packed one after another, with the keys of other
    sequences masked by the prefix sums of the lengths, get the outputs that each gets by itself,
    each with its own score transformation in its own positions.

    Theorem varlen, `Spec.attend`. Packed sequences with several heads, and heads that share keys,
    some longer than a tile of 64 or of 128, beside short and empty ones: keys of another sequence
    or head, or rows that are read at the strides of another number of heads, show.
    """
    check(vector_id, dtype)


@vectors("past-tiles-temperature", 5)
@dtypes
def test_past_tiles_temperature(vector_id: str, dtype: torch.dtype) -> None:
    """Attention computed with intervals, over inputs, a scale and a score transformation that
    contain the true ones, contains the true attention, whatever natural exponential it is taken
    with.

    Theorem enclosure-sound, `Spec.attend`. A temperature for each query head with several tiles of
    64 and of 128 in both directions, with heads that share keys and with other changes of the
    scores: that of the first head for all, or one that is left out from the second tile on, shows.
    """
    check(vector_id, dtype)
