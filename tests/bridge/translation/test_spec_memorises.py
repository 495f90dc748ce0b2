"""`transformer-memorises` and `transformer-causal-functions` as numbers: the transformer that the
proof builds, run over fractions, returns the function that it was built for, without any error."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import pytest
from memorising import (
    Best,
    Construction,
    Memory,
    Sizes,
    Tokens,
    memory_units,
    memory_width,
    sequences,
)

from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic
from bridge.spec.embedding import add_positions, embed
from bridge.spec.linear import linear_rows
from bridge.spec.masks import Alignment, mask_causal, mask_full
from bridge.spec.transformer import argmax, decode_post_norm, encode_post_norm


def exponential(x: Fraction) -> Fraction:
    """Of 0 alone: the proof needs no other."""
    assert x == 0
    return Fraction(3, 7)


NUM = Arithmetic(exponential, Fraction, Fraction)
SCALE = Fraction(5, 3)


def root(x: Fraction) -> Fraction:
    """√x rounded up to hundredths: no square root, but positive."""
    return Fraction(math.isqrt(int(x * 10**4)) + 1, 100)


def construction(
    s: int, t: int, vocab: int, num_heads: int = 1, spare: int = 0, eps: Fraction = Fraction(0)
) -> Construction:
    width = memory_width(s, t, vocab, vocab) + spare
    units = memory_units(s, t, vocab, vocab) + spare
    d = -(-width // num_heads)
    return Construction(Sizes(s, t, vocab, vocab, width, num_heads, d, units), root, eps, NUM)


def causal(z: Sizes) -> Mask:
    return mask_causal(Alignment.TOP_LEFT, q_len=z.t, kv_len=z.t)


def source_mask(i: int, j: int) -> bool:
    return (i + j) % 2 == 0


def forward(
    made: Construction, memory: Memory, target_mask: Mask, cross_mask: Mask
) -> Callable[[Tokens, Tokens], list[int | None]]:
    """Lean: `Attention.Claims.forward`."""
    z, net = made.sizes, memory.parameters
    sizes: dict[str, Any] = {
        "d_model": z.d_model,
        "num_heads": z.num_heads,
        "d": z.d,
        "d_ff": z.d_ff,
        "num": NUM,
    }
    first = made.sqrt, made.eps, SCALE

    def run(source: Tokens, target: Tokens) -> list[int | None]:
        X = add_positions(memory.position, embed(net.source, list(source)), n=z.s)
        Y = add_positions(memory.position, embed(net.target, list(target)), n=z.t)
        C = encode_post_norm(*first, source_mask, net.encoder, memory.norm, X, n=z.s, **sizes)
        masks = target_mask, cross_mask
        rows = decode_post_norm(
            *first, *masks, net.decoder, memory.norm, C, Y, s=z.s, t=z.t, **sizes
        )
        logits = linear_rows(net.output, rows, d_in=z.d_model, d_out=z.t_vocab, num=NUM)
        return [argmax(row, n=z.t_vocab) for row in logits]

    return run


def wrong(made: Construction, target_mask: Mask, cross_mask: Mask, best: Best) -> int:
    """For how many pairs of sequences Forward does not return `best`."""
    z = made.sizes
    run = forward(made, made.memory(target_mask, cross_mask, best), target_mask, cross_mask)
    pairs = product(sequences(z.s_vocab, z.s), sequences(z.t_vocab, z.t))
    return sum(run(source, target) != list(best(source, target)) for source, target in pairs)


def draw_best(z: Sizes, seed: int, sees: Callable[[Tokens, Tokens, int], object]) -> Best:
    """A function drawn at random, of the part of both sequences and a place that `sees` gives."""
    rng, table = random.Random(seed), dict[object, int]()

    def token(seen: object) -> int:
        if seen not in table:
            table[seen] = rng.randrange(z.t_vocab)
        return table[seen]

    return lambda source, target: tuple(token((p, sees(source, target, p))) for p in range(z.t))


@pytest.mark.parametrize(
    ("s", "t", "vocab", "num_heads", "spare", "eps"),
    [
        (1, 1, 2, 1, 0, Fraction(0)),
        (1, 2, 2, 2, 0, Fraction(1, 100)),
        (2, 1, 2, 3, 5, Fraction(0)),
        (2, 2, 2, 1, 0, Fraction(1)),
        (0, 2, 3, 1, 0, Fraction(0)),
    ],
)
def test_any_function_without_masks(
    s: int, t: int, vocab: int, num_heads: int, spare: int, eps: Fraction
) -> None:
    made = construction(s, t, vocab, num_heads, spare, eps)
    best = draw_best(made.sizes, 0, lambda source, target, p: (source, target))
    assert wrong(made, mask_full(), mask_full(), best) == 0


@pytest.mark.parametrize("seed", range(2))
def test_causal_functions_under_the_causal_mask(seed: int) -> None:
    made = construction(1, 3, 2)
    best = draw_best(made.sizes, seed, lambda source, target, p: (source, target[: p + 1]))
    assert wrong(made, causal(made.sizes), mask_full(), best) == 0


def test_any_masks() -> None:
    """A place that sees other tokens, and not itself; one that sees nothing."""
    made = construction(2, 2, 2)

    def target_mask(i: int, j: int) -> bool:
        return i == 0 and j == 1

    def cross_mask(i: int, j: int) -> bool:
        return i == j == 1

    best = draw_best(
        made.sizes,
        0,
        lambda source, target, p: (target, None) if p == 0 else (target[1], source[1]),
    )
    assert wrong(made, target_mask, cross_mask, best) == 0


def test_what_the_mask_hides_is_not_memorised() -> None:
    """`forward_swap_refuted`: two of the four targets differ in a token that place 0 cannot see."""
    made = construction(1, 2, 2)

    def swap(source: Tokens, target: Tokens) -> Tokens:
        return target[1], target[0]

    assert wrong(made, mask_full(), mask_full(), swap) == 0
    assert wrong(made, causal(made.sizes), mask_full(), swap) > 0
