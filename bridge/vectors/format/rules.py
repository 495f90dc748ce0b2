"""Numbers that are drawn from a name, as `Attention/Vectors/Rule.lean` draws them: inputs that are
too large to be written down. `docs/vectors.md` says how, for readers of other languages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
# Multiplier and increment of Knuth's MMIX, modulo 2^64.
_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
_WORD = 1 << 64


def fnv1a(text: str) -> int:
    """The 64-bit FNV-1a hash of the bytes of a text in UTF-8 (Fowler, Noll and Vo)."""
    found = 0xCBF29CE484222325
    for byte in text.encode():
        found = (found ^ byte) * 0x100000001B3 % _WORD
    return found


@dataclass(frozen=True)
class Rule:
    """Numerators between −bound and bound, drawn from the hash of a name, about one in `one_in`
    of them; the others are 0. All are divided by `over`, a power of 2."""

    drawn_from: str
    bound: int
    one_in: int = 1
    over: int = 1

    def numerators(self, count: int) -> Integers:
        """The first so many: [count]."""
        # State n is a^n·s + c·(1 + a + … + a^(n − 1)), modulo 2^64 as these sums and products are.
        powers = np.full(count + 1, _MULTIPLIER, dtype=np.uint64)
        powers[0] = 1
        powers = np.cumprod(powers, dtype=np.uint64)
        sums = np.cumsum(powers[:-1], dtype=np.uint64)
        seed, increment = np.uint64(fnv1a(self.drawn_from)), np.uint64(_INCREMENT)
        states = powers[1:] * seed + sums * increment
        kinds = 2 * self.bound + 1
        drawn = (states >> np.uint64(33)).astype(np.int64) % (kinds * self.one_in)
        return np.where(drawn < kinds, drawn - self.bound, 0)

    def numbers(self, *shape: int) -> NDArray[Any]:
        """So many numbers, row by row: integers, or where they are divided float64, which holds
        them exactly."""
        found = self.numerators(int(np.prod(shape))).reshape(shape)
        return found if self.over == 1 else found / self.over
