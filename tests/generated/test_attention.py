"""The vectors that `pyimpl.attention` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
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


@vectors("alibi", 13)
@dtypes
def test_alibi(vector_id: str, dtype: torch.dtype) -> None:
    """Linear biases (ALiBi) computed with intervals that contain the slope and the score contain
    the biased score.

    Theorem alibi-enclosed, `Spec.attention`. ALiBi: a score loses a slope for each step between
    query and key, on both sides of the query. With the wrong sign, the wrong alignment or one-sided
    distances it shows.
    """
    check(vector_id, dtype)


@vectors("bias", 15)
@dtypes
def test_bias(vector_id: str, dtype: torch.dtype) -> None:
    """An additive bias computed with intervals that contain its entries and the score contains the
    biased score, and masks the same pairs.

    Theorem bias-enclosed, `Spec.attention`. A number is added to each score: before the scale or
    twice, or with its rows and columns exchanged, it shows. Where it is null the pair is masked.
    """
    check(vector_id, dtype)


@vectors("block-mask", 11)
@dtypes
def test_block_mask(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1 and masks, the tile loop that leaves out tiles masked
    entirely, and takes tiles not masked at all without mask code, computes attention.

    Theorem tile-schedule, `Spec.flashSchedule`. Boolean masks of which whole tiles of 16 are
    masked, and whole tiles are not: skipped, and taken without mask code.
    """
    check(vector_id, dtype)


@vectors("causal", 18)
@dtypes
def test_causal(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. The causal mask: query i sees the keys up to its
    own. Off by one, the diagonal shows it.
    """
    check(vector_id, dtype)


@vectors("causal-bottom-right", 12)
@dtypes
def test_causal_bottom_right(vector_id: str, dtype: torch.dtype) -> None:
    """Under the causal mask aligned bottom-right, query i sees key j if and only if j + q_len ≤ i +
    kv_len; the last query sees every key.

    Theorem causal-bottom-right, `Spec.attention`. Causal with the last query at the last key, as
    flash-attention aligns it: with more queries than keys the first see none. A top-left mask shows
    wherever the lengths differ.
    """
    check(vector_id, dtype)


@vectors("default-scale", 19)
@dtypes
def test_default_scale(vector_id: str, dtype: torch.dtype) -> None:
    """Attention computed with intervals, over inputs, a scale and a score transformation that
    contain the true ones, contains the true attention, whatever natural exponential it is taken
    with.

    Theorem enclosure-sound, `Spec.attention`. The natural exponential with the scale 1/√head_dim,
    which the exact model cannot hold.
    """
    check(vector_id, dtype)


@vectors("document", 11)
@dtypes
def test_document(vector_id: str, dtype: torch.dtype) -> None:
    """Under the document mask query i sees key j if and only if they are of the same document.

    Theorem document-mask, `Spec.attention`. Several documents packed into one sequence: a query
    sees the keys of its own only.
    """
    check(vector_id, dtype)


@vectors("drawn", 171)
@dtypes
def test_drawn(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Sizes, scale and mask drawn at random, every kind
    of mask in turn: what is right case by case and wrong in some combination shows.
    """
    check(vector_id, dtype)


@vectors("drawn-natural", 99)
@dtypes
def test_drawn_natural(vector_id: str, dtype: torch.dtype) -> None:
    """Attention computed with intervals, over inputs, a scale and a score transformation that
    contain the true ones, contains the true attention, whatever natural exponential it is taken
    with.

    Theorem enclosure-sound, `Spec.attention`. Softcap, ALiBi, bias, sink, mask, scale and sizes
    drawn at random: what is right alone and wrong together shows.
    """
    check(vector_id, dtype)


@vectors("equal-scores", 14)
@dtypes
def test_equal_scores(vector_id: str, dtype: torch.dtype) -> None:
    """The softmax weights of a row with an unmasked key sum to 1; those of a fully masked row are
    all 0.

    Theorem softmax-sum-one, `Spec.attention`. Equal scores: the output is the mean of the values,
    and the denominator is their number.
    """
    check(vector_id, dtype)


@vectors("fully-masked", 18)
@dtypes
def test_fully_masked(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Queries that may attend to no key: output 0, no
    NaN, no mean of the values; log-sum-exp −∞.
    """
    check(vector_id, dtype)


@vectors("hidden-scores", 30)
@dtypes
def test_hidden_scores(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Scores that the mask hides are 111, 1065 or 11357
    above those that are seen, in base e: where masking takes a finite number from them, such as
    10,000, or is done after the exponential, they show.
    """
    check(vector_id, dtype)


@vectors("key-length", 10)
@dtypes
def test_key_length(vector_id: str, dtype: torch.dtype) -> None:
    """When all keys after the first n are masked as padding, attention is that of the first n keys
    and values alone, whatever the padding holds.

    Theorem key-padding, `Spec.attention`. Keys beyond a length are padding: they must have no
    influence, whatever they hold.
    """
    check(vector_id, dtype)


@vectors("key-padding", 10)
@dtypes
def test_key_padding(vector_id: str, dtype: torch.dtype) -> None:
    """When all keys after the first n are masked as padding, attention is that of the first n keys
    and values alone, whatever the padding holds.

    Theorem key-padding, `Spec.attention`. Keys that are padding, anywhere in the sequence and alike
    for all queries: they have no influence.
    """
    check(vector_id, dtype)


@vectors("large-spread", 20)
@dtypes
def test_large_spread(vector_id: str, dtype: torch.dtype) -> None:
    """Adding one number to every unmasked score of a row leaves its softmax unchanged.

    Theorem softmax-shift-invariant, `Spec.attention`. Scores far apart or far from 0: exp overflows
    without the maximum subtracted, and small weights underflow.
    """
    check(vector_id, dtype)


@vectors("log-sum-exp", 16)
@dtypes
def test_log_sum_exp(vector_id: str, dtype: torch.dtype) -> None:
    """After any blocks, L is the number that a kernel writes as m + ln l (exp(L − m) = l; −∞
    without a maximum) if and only if L is the log-sum-exp of the scores.

    Theorem lse-spec, `Spec.attention`. Denominators that are powers of two, so that the log-sum-exp
    is an integer times ln 2: in the wrong base, without the maximum, or of a masked row, it shows.
    """
    check(vector_id, dtype)


@vectors("long-keys", 26)
@dtypes
def test_long_keys(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Rows of 200 to 1100 keys, around multiples of the
    tiles that kernels use, with and without masks: many tiles, many rescalings, many splits.
    """
    check(vector_id, dtype)


@vectors("masked-holes", 19)
@dtypes
def test_masked_holes(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Boolean masks with holes; every query sees at
    least one key. A masked key has no weight, and a masked tile changes nothing.
    """
    check(vector_id, dtype)


@vectors("maximum-moves", 20)
@dtypes
def test_maximum_moves(vector_id: str, dtype: torch.dtype) -> None:
    """Online softmax over any partition of a row into consecutive blocks, of any sizes and empty
    ones too, ends in the attention of the whole row.

    Theorem online-any-blocks, `Spec.attention`. The maximum rises from tile to tile, comes last or
    comes first: the state must be rescaled, in l and o alike.
    """
    check(vector_id, dtype)


@vectors("natural-scores", 15)
@dtypes
def test_natural_scores(vector_id: str, dtype: torch.dtype) -> None:
    """Attention computed with intervals, over inputs, a scale and a score transformation that
    contain the true ones, contains the true attention, whatever natural exponential it is taken
    with.

    Theorem enclosure-sound, `Spec.attention`. The natural exponential with given scales of both
    signs, and scores from -100 to 100.
    """
    check(vector_id, dtype)


@vectors("one-key", 12)
@dtypes
def test_one_key(vector_id: str, dtype: torch.dtype) -> None:
    """The softmax weights of a row with an unmasked key sum to 1; those of a fully masked row are
    all 0.

    Theorem softmax-sum-one, `Spec.attention`. A single key has weight 1, so the output is its
    value, whatever the score.
    """
    check(vector_id, dtype)


@vectors("padding", 11)
@dtypes
def test_padding(vector_id: str, dtype: torch.dtype) -> None:
    """The tile loop over queries, keys and values padded by any rows, with its output cut to the
    queries that were asked for, computes attention of the unpadded queries, keys and values.

    Theorem pad-tiles, `Spec.attentionPadded`. Rows, keys and columns that a kernel adds to fill its
    tiles: whatever they hold, they have no influence.
    """
    check(vector_id, dtype)


@vectors("ragged-tiles", 32)
@dtypes
def test_ragged_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Sizes around multiples of 16: a kernel that drops
    the last tile or lets its padding in fails.
    """
    check(vector_id, dtype)


@vectors("scales", 20)
@dtypes
def test_scales(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Scales other than 1: omitted, applied twice, or
    replaced by 1/√head_dim, a scale shows.
    """
    check(vector_id, dtype)


@vectors("score-mods", 10)
@dtypes
def test_score_mods(vector_id: str, dtype: torch.dtype) -> None:
    """Attention computed with intervals, over inputs, a scale and a score transformation that
    contain the true ones, contains the true attention, whatever natural exponential it is taken
    with.

    Theorem enclosure-sound, `Spec.attentionSink`. Softcap, ALiBi, bias, mask and sink together, in
    this order: in another order they show.
    """
    check(vector_id, dtype)


@vectors("sink", 14)
@dtypes
def test_sink(vector_id: str, dtype: torch.dtype) -> None:
    """Attention with a sink, computed with intervals that contain inputs, scale and sink and with a
    score transformation that contains the true one, contains the true attention with the sink.

    Theorem sink-enclosed, `Spec.attentionSink`. A sink takes part in every softmax without a value:
    the weights of the keys sum to less than 1, and a query that may attend to no key has the sink
    for its log-sum-exp.
    """
    check(vector_id, dtype)


@vectors("sink-tiles", 14)
@dtypes
def test_sink_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, tile sizes of at least 1 and score transformations, the tile loop that starts
    each row from (sink, 1, 0) computes attention with the sink.

    Theorem flash-sink, `Spec.flashSink`. A sink with score 0, from which the tile loop starts the
    rows of each tile: counted for some of them only, or with a value other than 0, it shows.
    """
    check(vector_id, dtype)


@vectors("small-random", 36)
@dtypes
def test_small_random(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Small sizes and values, drawn at random: any gross
    fault shows here first.
    """
    check(vector_id, dtype)


@vectors("softcap", 16)
@dtypes
def test_softcap(vector_id: str, dtype: torch.dtype) -> None:
    """Softcap computed with intervals that contain the cap and the score contains the softcapped
    score.

    Theorem softcap-enclosed, `Spec.attention`. Scores squeezed into (-cap, cap) by cap·tanh(score /
    cap), before masks: left out, applied after the mask, or before the scale, it shows.
    """
    check(vector_id, dtype)


@vectors("softmax-weights", 16)
@dtypes
def test_softmax_weights(vector_id: str, dtype: torch.dtype) -> None:
    """Subtracting the row maximum before the exponential, as every kernel does, gives the same
    softmax.

    Theorem safe-softmax, `Spec.safeSoftmax`. The values are the unit vectors, so that the output is
    the row of softmax weights itself: a weight that is too large, or not 0 where its key is masked,
    shows alone.
    """
    check(vector_id, dtype)


@vectors("tile-loop", 10)
@dtypes
def test_tile_loop(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.flash`. The tile loop with tiles from one query and one key to
    more than there are: the result is the same.
    """
    check(vector_id, dtype)


@vectors("unequal-lengths", 22)
@dtypes
def test_unequal_lengths(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. q_len differs from kv_len, with and without the
    causal mask (aligned top-left: query i sees keys 0 to i).
    """
    check(vector_id, dtype)


@vectors("wide-heads", 26)
@dtypes
def test_wide_heads(vector_id: str, dtype: torch.dtype) -> None:
    """For all sizes, all tile sizes of at least 1 (ragged last tiles included) and every mask or
    score transformation, the tile loop of FlashAttention-2 computes attention.

    Theorem flash-eq-attention, `Spec.attention`. Head sizes from 48 to 256, multiples of 16 and
    others, and values wider or narrower than the keys: a size that is padded, cut or read as
    another shows.
    """
    check(vector_id, dtype)


@vectors("wide-tiles", 16)
@dtypes
def test_wide_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """Online softmax over any partition of a row into consecutive blocks, of any sizes and empty
    ones too, ends in the attention of the whole row.

    Theorem online-any-blocks, `Spec.attention`. Rows that cross the edges of tiles of 64, 128, 256
    and 512 keys: there, too, the state must be rescaled, masks must hold and the last tile must
    count.
    """
    check(vector_id, dtype)


@vectors("window", 14)
@dtypes
def test_window(vector_id: str, dtype: torch.dtype) -> None:
    """Under a sliding window query i sees key j if and only if i + shift − left ≤ j ≤ i + shift +
    right, both bounds inclusive and each optional; shift is 0 aligned top-left, kv_len − q_len
    aligned bottom-right.

    Theorem window, `Spec.attention`. Sliding windows with inclusive bounds, in both alignments: a
    bound that is off by one on either side shows, and so does the wrong alignment.
    """
    check(vector_id, dtype)


@vectors("window-tiles", 14)
@dtypes
def test_window_tiles(vector_id: str, dtype: torch.dtype) -> None:
    """The tile loop that visits these key tiles only, and those seen in whole without mask code,
    computes attention under the window.

    Theorem tile-bounds-loop, `Spec.flashWindow`. Windows over several tiles of 16, in both
    alignments: a bound of the tile loop that is off by one drops a tile, or lets one in that its
    mask code must silence.
    """
    check(vector_id, dtype)
