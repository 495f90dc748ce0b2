"""Which weights dropout keeps.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/KeepMask.lean`.
"""

from __future__ import annotations

from bridge.spec.attention import Mask
from bridge.spec.core import div, get_or, mod
from bridge.spec.philox import PhiloxKey, Words, philox


def seed_key(seed: int) -> PhiloxKey:
    """The key of the generator for a seed below 2 ^ 64: its lower and its upper 32 bits.

    Lean: `Attention.Spec.seedKey`.
    """
    return PhiloxKey(k0=mod(seed, 2**32), k1=div(seed, 2**32))


def dropout_words(seed: int, head: int, i: int, g: int) -> list[int]:
    """The four random words of the keys 4g, 4g + 1, 4g + 2 and 4g + 3, for query `i` of a head.

    Lean: `Attention.Spec.dropoutWords`.
    """
    words = philox(10, seed_key(seed), Words(c0=g, c1=i, c2=head, c3=0))
    return [words.c0, words.c1, words.c2, words.c3]


def round_half_even(num_1: int, den: int) -> int:
    """A fraction rounded to the nearest integer, halves to the even one.

    Lean: `Attention.Spec.roundHalfEven`.
    """
    below = div(num_1, den)
    rest = mod(num_1, den)
    if 2 * rest < den:
        return below
    return below + 1 if den < 2 * rest else below + below % 2


def keep_threshold(num_1: int, den: int) -> int:
    """How many of the 2 ^ 32 words keep a weight, where p = num / den: (1 − p) · 2 ^ 32, rounded.

    Lean: `Attention.Spec.keepThreshold`.
    """
    return round_half_even(max(den - num_1, 0) * 2**32, den)


def keeps(threshold: int, seed: int, head: int, i: int, j: int) -> bool:
    """Whether query `i` keeps the weight of key `j`.

    Lean: `Attention.Spec.keeps`.
    """
    return get_or(dropout_words(seed, head, i, j // 4), j % 4, 0) < threshold


def keep_mask(threshold: int, seed: int, head: int) -> Mask:
    """Which weights are kept, as a matrix.

    Lean: `Attention.Spec.keepMask`.
    """
    return lambda i, j: keeps(threshold, seed, head, i, j)


def keeps_from(threshold: int, seed: int, head: int, i: int, start: int, count: int) -> list[bool]:
    """Whether query `i` keeps the weights of the `count` keys from `start` on, as a tile draws it:
    all words of the groups of four that these keys lie in, without those of other keys.

    Lean: `Attention.Spec.keepsFrom`.
    """
    groups = list(range(start // 4, start // 4 + (start % 4 + count + 3) // 4))
    words = [x for g in groups for x in dropout_words(seed, head, i, g)]
    return [word < threshold for word in words[start % 4 :][:count]]
