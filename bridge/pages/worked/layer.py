"""One layer of a transformer in exact fractions.

The layers take an exponential and a root of one type of numbers, of which there is no exact model.
Here are two tokens and weights for which every score is a whole number and every variance a square:
on them the definitions can be run exactly, with exp k = 2^k. Anything else raises SourceError.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from bridge.pages.worked.inputs import same
from bridge.pages.worked.shown import Cells, show_all
from bridge.source.excerpt import SourceError
from bridge.spec.attention import Mask, mask_to_score_mod, probabilities
from bridge.spec.core import Arithmetic
from bridge.spec.feed_forward import FeedForward, feed_forward_rows, relu
from bridge.spec.layer_norm import LayerNorm, layer_norm_rows
from bridge.spec.linear import Linear, add_rows, linear_rows
from bridge.spec.masks import Alignment, mask_causal
from bridge.spec.multi_head import MultiHead, multi_head_rows, split_heads
from bridge.spec.transformer_layer import EncoderLayer, encoder_layer_pre_norm

Rows = list[list[Fraction]]
TOKENS, D_MODEL, NUM_HEADS, HEAD_DIM, D_FF = 2, 4, 2, 2, 2


def rows(*given: str) -> Rows:
    """Rows of fractions, each written as its numbers with spaces between."""
    return [[Fraction(x) for x in row.split()] for row in given]


def power(k: Fraction) -> Fraction:
    """2^k of a whole number."""
    if k.denominator != 1:
        raise SourceError(f"the score {k} of the worked layer is no whole number")
    return Fraction(2) ** int(k)


def root(x: Fraction) -> Fraction:
    """The root of a square."""
    found = Fraction(math.isqrt(x.numerator), math.isqrt(x.denominator))
    if found * found != x:
        raise SourceError(f"the variance {x} of the worked layer is no square")
    return found


NUMBERS = Arithmetic(power, Fraction, Fraction)
INPUT = rows("1 5 1 5", "2 6 6 2")
_NORM = LayerNorm([Fraction(1)] * D_MODEL, [Fraction(0)] * D_MODEL)


def _linear(bias: str, *weight: str) -> Linear:
    return Linear(rows(*weight), rows(bias)[0])


# The first two rows of a projection are those of head 0.
LAYER = EncoderLayer(
    attention=MultiHead(
        query=_linear("0 0 0 0", "0 0 1 0", "1 1 0 0", "0 1 0 0", "0 0 0 1"),
        key=_linear("0 0 0 0", "0 0 1 0", "0 1 0 0", "0 0 0 1", "0 1 0 0"),
        value=_linear("0 0 0 0", "0 0 5/2 0", "1 0 0 1", "0 1 0 0", "0 0 0 1"),
        output=_linear("0 0 0 0", "-1 0 0 1", "1 0 0 1", "-1 0 0 1", "1 0 0 1"),
    ),
    attention_norm=_NORM,
    feed_forward=FeedForward(
        hidden=_linear("0 0", "1 0 1 0", "0 1 0 1"),
        output=_linear("0 0 0 1", "1 0", "0 1", "1 1", "0 0"),
    ),
    feed_forward_norm=_NORM,
)


def _mask() -> Mask:
    return mask_causal(Alignment.TOP_LEFT, q_len=TOKENS, kv_len=TOKENS)


def output(given: Rows = INPUT) -> Rows:
    """The layer under a causal mask, by the definition of the whole layer."""
    found: Rows = encoder_layer_pre_norm(
        root,
        Fraction(0),
        Fraction(1),
        _mask(),
        LAYER,
        given,
        n=TOKENS,
        d_model=D_MODEL,
        num_heads=NUM_HEADS,
        d=HEAD_DIM,
        d_ff=D_FF,
        num=NUMBERS,
    )
    return found


def steps() -> Cells:
    """By step of the layer, each token's numbers after it. Raises SourceError unless the last step
    is the row of the whole layer."""
    num = NUMBERS
    wide: dict[str, Any] = {"d": D_MODEL, "num": NUMBERS}
    cells: Cells = []

    def add(name: str, found: Rows) -> Rows:
        cells.append([name, *map(show_all, found)])
        return found

    x = add("x", INPUT)
    a = add("a = LN(x)", layer_norm_rows(root, Fraction(0), LAYER.attention_norm, x, **wide))
    for h, weights in enumerate(_weights(a)):
        add(f"weights of head {h}", weights)
    attended = multi_head_rows(
        Fraction(1),
        _mask(),
        LAYER.attention,
        a,
        a,
        a,
        q_len=TOKENS,
        kv_len=TOKENS,
        num_heads=NUM_HEADS,
        d=HEAD_DIM,
        d_model=D_MODEL,
        num=num,
    )
    add("attention of a", attended)
    y = add("y = x + attention", add_rows(x, attended, m=TOKENS))
    n = add("LN(y)", layer_norm_rows(root, Fraction(0), LAYER.feed_forward_norm, y, **wide))
    hidden = linear_rows(LAYER.feed_forward.hidden, n, d_in=D_MODEL, d_out=D_FF, num=num)
    add("max(0, W₁ LN(y) + b₁)", [[relu(c, num=num) for c in row] for row in hidden])
    forward = feed_forward_rows(LAYER.feed_forward, n, d=D_MODEL, d_ff=D_FF, num=num)
    add("feed-forward", forward)
    same(add("y + feed-forward", add_rows(y, forward, m=TOKENS)), output(), "the worked layer")
    return cells


def _weights(a: Rows) -> list[Rows]:
    """By head, the weights of all tokens."""
    of = LAYER.attention
    wide: dict[str, Any] = {"d_in": D_MODEL, "d_out": NUM_HEADS * HEAD_DIM, "num": NUMBERS}
    heads: dict[str, Any] = {"n": TOKENS, "num_heads": NUM_HEADS, "d": HEAD_DIM}
    queries = split_heads(linear_rows(of.query, a, **wide), **heads)
    keys = split_heads(linear_rows(of.key, a, **wide), **heads)
    size: dict[str, Any] = {"q_len": TOKENS, "kv_len": TOKENS, "d": HEAD_DIM, "num": NUMBERS}
    modify = mask_to_score_mod(_mask())
    return [
        probabilities(Fraction(1), modify, q, k, **size) for q, k in zip(queries, keys, strict=True)
    ]
