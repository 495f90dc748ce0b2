"""Fresh vectors of decoding."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from bridge.vectors.model.attention import EnclosedRow, Matrix, Row
from bridge.vectors.model.by_intervals import integer_enclosed_rows
from bridge.vectors.model.by_spec import Integers, integer_rows
from bridge.vectors.model.decode import DecodeVector, Sequence

FAMILY = "fresh-decode"
# Tokens before the first step: among them those about the sizes of tiles and pages.
_PREFIXES = (0, 1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65)


def draw(chance: random.Random, id: str) -> DecodeVector:
    """Draw one to three streams of one to three sequences, decoded in a drawn order."""
    kv_heads = chance.randint(1, 2)
    heads = kv_heads * chance.choice((1, 1, 2, 3))
    head_dim = value_dim = chance.choice((chance.randint(1, 12), 8, 16, 64))
    if chance.randrange(4) == 0:
        value_dim = chance.randint(1, 12)
    scale = chance.choice((None, None, 1, 2, -1))
    chunk = chance.choice((1, 1, 1, 2, 3))
    pages = chance.random() < 0.5
    sequences: list[Sequence] = []
    streams: list[tuple[int, ...]] = []
    order: list[int] = []
    for stream in range(chance.randint(1, 3)):
        tokens, together = chance.randint(2, 4), chance.randint(1, 3)
        first = len(sequences)
        for _ in range(together):
            kv_len = chance.choice(_PREFIXES) + tokens
            sizes = heads, kv_heads, tokens, kv_len, head_dim, value_dim
            sequences.append(sequence(chance, *sizes, scale))
        streams.append(tuple(range(first, len(sequences))))
        order += [stream] * -(-tokens // chunk)
    chance.shuffle(order)
    lengths = ", ".join(str(one.kv_len) for one in sequences)
    reason = (
        f"drawn for this run: {len(streams)} streams, {heads} heads over {kv_heads}, {chunk} "
        f"tokens in a call, sequences that end with {lengths} keys"
    )
    return DecodeVector(
        id, FAMILY, "Attention.Spec.attention", "causal-lengths", reason,
        "natural" if scale is None else "exact", head_dim=head_dim, value_dim=value_dim,
        scale=scale, sequences=tuple(sequences), streams=tuple(streams), order=tuple(order),
        chunk=chunk, pages=pages,
    )  # fmt: skip


def sequence(
    chance: random.Random,
    heads: int,
    kv_heads: int,
    tokens: int,
    kv_len: int,
    head_dim: int,
    value_dim: int,
    scale: int | None,
) -> Sequence:
    """Draw one sequence of so many keys, with its rows; none where it has no key."""
    q = _integers(chance, 2, heads, tokens, head_dim)
    k = _integers(chance, 2, kv_heads, kv_len, head_dim)
    v = _integers(chance, 64, kv_heads, kv_len, value_dim)
    if scale is not None:
        # If scores are too far apart, one key has all of the weight.
        q = q * (np.arange(head_dim) < 4)
    seen = np.arange(kv_len)[None] <= np.arange(kv_len - tokens, kv_len)[:, None]
    expected: list[Any] = []
    for h in range(heads):
        of = h // (heads // kv_heads)
        rows: tuple[Row | EnclosedRow, ...] = (
            integer_enclosed_rows(q[h], k[of], v[of], seen)
            if scale is None
            else integer_rows(q[h], k[of], v[of], scale, seen)
        )
        expected.append(rows)
    queries, keys, values = (tuple(map(_matrix, x)) for x in (q, k, v))
    return Sequence(queries, keys, values, tuple(expected))


def _integers(chance: random.Random, bound: int, *shape: int) -> Integers:
    drawn = np.frombuffer(chance.randbytes(int(np.prod(shape))), np.uint8)
    return (drawn.astype(np.int64) % (2 * bound + 1) - bound).reshape(shape)


def _matrix(rows: Integers) -> Matrix:
    return tuple(map(tuple, rows.tolist()))
