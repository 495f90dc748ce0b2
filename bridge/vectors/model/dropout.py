"""The vectors of attention with dropout, and of the generator that chooses weights to drop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bridge.vectors.model.attention import (
    AttentionVector,
    Dropout,
    Exact,
    Mask,
    Matrix,
    Row,
    Vector,
)
from bridge.vectors.model.operations import LaidOutVector

Words = tuple[int, ...]


@dataclass(frozen=True)
class DropoutVector(LaidOutVector):
    """Attention with dropout, for a batch of sequences with grouped heads.

    Query head `head` of sequence b has the number h = b·num_heads + head, by which it draws the
    weights to drop, and which is its place in q, dropout and expected; heads of keys and values
    have theirs in the same way.
    q: [batch·num_heads][q_len][head_dim]; k: [batch·num_kv_heads][kv_len][head_dim]; v: as k, with
    value_dim; dropout: [batch·num_heads], drawn from the seed; expected:
    [batch·num_heads][q_len], maximum and denominator those without dropout.
    """

    operation: ClassVar[str] = "dropout"
    batch: int
    num_heads: int
    num_kv_heads: int
    q_len: int
    kv_len: int
    q: tuple[Matrix, ...]
    k: tuple[Matrix, ...]
    v: tuple[Matrix, ...]
    mask: Mask
    dropout: tuple[Dropout, ...]
    dropout_seed: int
    expected: tuple[tuple[Row, ...], ...]

    @property
    def dropout_p(self) -> Exact:
        """The probability to drop a weight, the same in all heads."""
        return self.dropout[0].p

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: one for each query head of each sequence."""
        group = self.num_heads // self.num_kv_heads
        return tuple(
            self._attention(
                h, q, self.k[h // group], self.v[h // group], self.mask, rows, dropout
            )
            for h, (q, dropout, rows) in enumerate(
                zip(self.q, self.dropout, self.expected, strict=True)
            )
        )  # fmt: skip


@dataclass(frozen=True)
class PhiloxVector(Vector):
    """Random words of the generator Philox4x32 with so many rounds.

    key: [2]; counters: […][4]; expected: for each counter, [4]; all are words, from 0 to 2^32 − 1.
    """

    operation: ClassVar[str] = "philox"
    rounds: int
    key: Words
    counters: tuple[Words, ...]
    expected: tuple[Words, ...]
