"""Which weights dropout keeps: a second derivation, a round at a time over all counters at once.

Random123 writes a round as a product of 64 bits whose halves go to different words. Here the bytes
of that product are taken apart by NumPy, and nothing is shared with the Lean definitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from bridge.vectors.model.attention import Exact

# Salmon et al. 2011, section 3.3 and table 2; Random123, philox.h.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
_ROUNDS = 10
_KEYS_TO_A_CALL = 4

Words = npt.NDArray[np.uint32]


def _halves(factor: int, words: Words) -> tuple[Words, Words]:
    """The upper and the lower 32 bits of the products."""
    products = (np.uint64(factor) * words.astype(np.uint64)).astype("<u8")
    pairs = products.view("<u4").reshape(-1, 2).astype(np.uint32)
    return pairs[:, 1], pairs[:, 0]


def philox(key: Iterable[int], counters: npt.ArrayLike, rounds: int = _ROUNDS) -> Words:
    """The words of each counter: [n, 4], from `counters` [n, 4] and two words as key."""
    words = np.array(counters, dtype=np.uint32).reshape(-1, 4)
    low, high = (int(k) for k in key)
    for n in range(rounds):
        k0, k1 = ((k + n * w) % 2**32 for k, w in zip((low, high), _WEYL, strict=True))
        (high0, low0), (high2, low2) = (
            _halves(m, words[:, column]) for m, column in zip(_MULTIPLIERS, (0, 2), strict=True)
        )
        words = np.stack(
            [high2 ^ words[:, 1] ^ np.uint32(k0), low2, high0 ^ words[:, 3] ^ np.uint32(k1), low0],
            axis=1,
        )
    return words


def threshold(p: Exact) -> int:
    """How many of the 2^32 words keep a weight: Python rounds halves of a fraction to even."""
    return round((1 - Fraction(p)) * 2**32)


def keep(p: Exact, seed: int, h: int, rows: Sequence[int], kv_len: int) -> npt.NDArray[np.bool_]:
    """Which weights of these queries of head number `h` are kept: [rows, kv_len]."""
    calls = -(-kv_len // _KEYS_TO_A_CALL)
    counters = [[g, i, h, 0] for i in rows for g in range(calls)]
    words = philox((seed % 2**32, seed // 2**32), counters).reshape(len(rows), -1)[:, :kv_len]
    return np.asarray(words.astype(np.uint64) < np.uint64(threshold(p)))
