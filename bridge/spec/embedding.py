"""Embeddings and positional encodings.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Embedding.lean`.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.spec.core import Arithmetic, Value
from bridge.spec.linear import Linear
from bridge.spec.vector import vec_add, vec_zero


def embed(table: list[list[Value]], tokens: list[int]) -> list[list[Value]]:
    """The embeddings of a sequence of tokens: for each the row of the table that it names.

    Lean: `Attention.Spec.embed`.
    """
    return [table[token] for token in tokens]


def add_positions(
    position: Callable[[int], list[Value]], X: list[list[Value]], *, n: int
) -> list[list[Value]]:
    """The encoding of each place added to the row that stands there.

    Lean: `Attention.Spec.addPositions`.
    """
    return [vec_add(X[i], position(i)) for i in range(n)]


def sinusoids(
    sin: Callable[[Value], Value],
    cos: Callable[[Value], Value],
    angle: Callable[[int, int], Value],
    p: int,
    *,
    half: int,
) -> list[Value]:
    """The encoding of a place by sines and cosines: the sines of all its angles, then their
    cosines. `angle p i` is p / 10000 ^ (2i / d), where d = 2 · half.

    Lean: `Attention.Spec.sinusoids`.
    """
    return [sin(angle(p, i)) for i in range(half)] + [cos(angle(p, i)) for i in range(half)]


def tied_output(table: list[list[Value]], *, vocab: int, num: Arithmetic) -> Linear:
    """The linear layer of the logits whose matrix is the table of embeddings itself: tied
    embeddings, without bias.

    Lean: `Attention.Spec.tiedOutput`.
    """
    return Linear(weight=table, bias=vec_zero(d=vocab, zero=num.value(0)))
