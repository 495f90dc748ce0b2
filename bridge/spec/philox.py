"""Philox: a counter-based random number generator.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Philox.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass

from bridge.spec.core import div, mod


@dataclass(frozen=True)
class Words:
    """Four words, as numbers below 2 ^ 32.

    c0: word 0.

    c1: word 1.

    c2: word 2.

    c3: word 3.

    Lean: `Attention.Spec.Words`.
    """

    c0: int
    c1: int
    c2: int
    c3: int


@dataclass(frozen=True)
class PhiloxKey:
    """A key of two words, as numbers below 2 ^ 32.

    k0: word 0.

    k1: word 1.

    Lean: `Attention.Spec.PhiloxKey`.
    """

    k0: int
    k1: int


def philox_round(key: PhiloxKey, counter: Words) -> Words:
    """One round: the low halves of two products replace two words, and their high halves, with the
    other two words and the key, the others.

    Lean: `Attention.Spec.philoxRound`.
    """
    return Words(
        c0=div(3449720151 * counter.c2, 2**32) ^ counter.c1 ^ key.k0,
        c1=mod(3449720151 * counter.c2, 2**32),
        c2=div(3528531795 * counter.c0, 2**32) ^ counter.c3 ^ key.k1,
        c3=mod(3528531795 * counter.c0, 2**32),
    )


def next_key(key: PhiloxKey) -> PhiloxKey:
    """The key of the next round: a Weyl sequence.

    Lean: `Attention.Spec.nextKey`.
    """
    return PhiloxKey(k0=mod(key.k0 + 2654435769, 2**32), k1=mod(key.k1 + 3144134277, 2**32))


def philox(rounds: int, key: PhiloxKey, counter: Words) -> Words:
    """Some rounds of Philox4x32; 10 are usual.

    Lean: `Attention.Spec.philox`.
    """
    if rounds == 0:
        return counter
    return philox(rounds - 1, next_key(key), philox_round(key, counter))
