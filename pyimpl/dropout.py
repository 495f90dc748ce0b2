"""Which weights dropout keeps, from a counter-based generator: a function of seed, head, query and
key, so that the backward pass, another backend and other tiles find the same ones.

The generator is Philox4x32-10: Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3",
section 4.3. The weight of query row i and key column j in head h = batch · heads + head (of packed
sequences: h = head, i and j rows of the packed totals) is kept if and only if word j mod 4 of
`philox4x32` at counter (j // 4, i, h, 0) and key (seed mod 2³², seed // 2³²) is below
round((1 − p) · 2³²), ties to even. Kept weights are divided by 1 − p.
"""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import torch
from torch import Tensor

from pyimpl.internal import arguments as check
from pyimpl.internal.implements import implements

WORD = 0xFFFFFFFF
# The multipliers of a round, and the numbers by which each round raises the key.
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_RAISE = (0x9E3779B9, 0xBB67AE85)
ROUNDS = 10

Four = tuple[Tensor, Tensor, Tensor, Tensor]


@implements("Attention.Spec.philox")
def philox4x32(counter: Four, key: tuple[Tensor, Tensor]) -> Four:
    """The four words of Philox4x32-10 at each counter: int64 tensors of any shapes that broadcast,
    of numbers from 0 to 2³² − 1, as the words returned are.

    Exact: an int64 product wraps modulo 2⁶⁴, so its bits are those of the unsigned one.
    """
    c0, c1, c2, c3 = counter
    k0, k1 = key
    for _ in range(ROUNDS):
        a, b = (c * m for c, m in zip((c0, c2), _MULTIPLIERS, strict=True))
        c0, c2 = (b >> 32) & WORD ^ c1 ^ k0, (a >> 32) & WORD ^ c3 ^ k1
        c1, c3 = b & WORD, a & WORD
        k0, k1 = (k + r & WORD for k, r in zip((k0, k1), _RAISE, strict=True))
    return c0, c1, c2, c3


@dataclass(frozen=True)
class Dropout:
    """Dropout of the weights with probability p, 0 < p ≤ 1.

    seed: of no dimension, int64, of which all 64 bits count: a negative one stands for itself
    + 2⁶⁴. first_head, first_query, first_key: the numbers of the first head of the first batch, of
    query 0 and of key 0. heads: how many heads a batch has to count, None: those that there are.
    query_numbers, key_numbers: in the place of 0, 1, …, `[q_len]` and `[kv_len]`, int64; both or
    none.
    """

    p: float
    seed: Tensor
    first_head: int = 0
    heads: int | None = None
    first_query: int = 0
    first_key: int = 0
    query_numbers: Tensor | None = None
    key_numbers: Tensor | None = None

    @property
    def threshold(self) -> int:
        """A word below this keeps its weight; from 0, none, to 2³², all."""
        return round((1 - Fraction(self.p)) * 2**32)

    @property
    def scale(self) -> float:
        """The factor on the weights that are kept: 1 / (1 − p); 0 where none is."""
        return 1.0 / (1.0 - self.p) if self.threshold else 0.0

    @property
    def place(self) -> list[int] | None:
        """`first_head`, `heads`, `first_query` and `first_key`; None: heads, queries and keys have
        their own places for numbers."""
        if self.heads is None and not (self.first_head or self.first_query or self.first_key):
            return None
        heads = -1 if self.heads is None else self.heads
        return [self.first_head, heads, self.first_query, self.first_key]

    @classmethod
    def at_place(cls, p: float, seed: Tensor, place: Sequence[int] | None) -> Dropout:
        """That of which `place` is this."""
        if place is None:
            return cls(p, seed)
        first_head, heads, first_query, first_key = place
        return cls(p, seed, first_head, None if heads == -1 else heads, first_query, first_key)

    def from_head(self, heads: int, batch: int, head: int) -> Dropout:
        """That of the batches and heads from these on, of a call of so many heads."""
        each = heads if self.heads is None else self.heads
        return replace(self, first_head=self.first_head + batch * each + head, heads=each)

    def from_row(self, query: int, key: int) -> Dropout:
        """That of the queries and keys from these on: of a packed sequence that begins with these
        rows of the packed tensors, or of a part of a sequence."""
        return replace(self, first_query=self.first_query + query, first_key=self.first_key + key)

    def at(self, queries: Tensor, keys: Tensor) -> Dropout:
        """That of the queries and keys with these numbers."""
        return replace(self, query_numbers=queries, key_numbers=keys)

    def numbers(self, batch: int, heads: int) -> Tensor:
        """The number h of each head, `[batch, heads]`, int64."""
        each = heads if self.heads is None else self.heads
        batches, some = (torch.arange(n, device=self.seed.device) for n in (batch, heads))
        return self.first_head + batches[:, None] * each + some

    def kept_weights(self, batch: int, heads: int, rows: range, columns: range) -> Tensor:
        """Whether each weight is kept, `[batch, heads, rows, columns]`, boolean, for the queries
        `rows` and the keys `columns`, numbers in a row."""
        numbers = self.numbers(batch, heads)[..., None, None]
        if self.query_numbers is not None and self.key_numbers is not None:
            i = self.query_numbers[rows.start : rows.stop] + self.first_query
            j = self.key_numbers[columns.start : columns.stop] + self.first_key
            return self._gather_weights(numbers, i, j)
        i = torch.arange(len(rows), device=numbers.device) + (rows.start + self.first_query)
        start, stop = columns.start + self.first_key, columns.stop + self.first_key
        # Four columns share a call; the first and the last may need only some of its words.
        calls = torch.arange(start // 4, -(-stop // 4), device=numbers.device)
        below = torch.stack(self._below(numbers, i, calls), dim=-1).flatten(-2)
        return below[..., start % 4 : start % 4 + len(columns)]

    def kept_numbers(self, batch: int, places: Tensor, width: int) -> Tensor:
        """Whether each number of vectors `[batch, length, width]` at these places `[length]` of
        their sequences is kept, boolean: as the weight of query `place` and of key 0, … in the one
        head of each batch."""
        calls = torch.arange(-(-width // 4), device=places.device)
        heads = self.numbers(batch, 1)[..., None, None]
        below = torch.stack(self._below(heads, places, calls), dim=-1).flatten(-2)
        return below[:, 0, :, :width]

    def _below(self, heads: Tensor, rows: Tensor, calls: Tensor) -> list[Tensor]:
        """Whether each of the four words of each call keeps its weight, `[batch, heads, rows,
        calls]`, for the numbers of heads `[batch, heads, 1, 1]`, rows and calls."""
        key = (self.seed & WORD, (self.seed >> 32) & WORD)
        words = philox4x32((calls, rows[:, None], heads, torch.zeros_like(heads)), key)
        return [word < self.threshold for word in words]

    def _gather_weights(self, heads: Tensor, rows: Tensor, columns: Tensor) -> Tensor:
        """`kept_weights` of columns with any numbers: a call for each."""
        below = torch.stack(self._below(heads, rows, columns // 4))
        word = (columns % 4).expand(1, *below.shape[1:])
        return below.gather(0, word).squeeze(0)


def checked_p(name: str, given: object) -> float:
    """A probability as a float; raises TypeError or ValueError for anything else."""
    if isinstance(given, bool) or not isinstance(given, numbers.Real):
        raise TypeError(f"{name} must be a number, not {check.describe(given)}")
    p = check._as_float(name, given)
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"{name} must be from 0 to 1, not {check.describe(given)}")
    return p


def checked_dropout(dropout_p: object, seed: object, query: Tensor) -> Dropout | None:
    """Dropout as a public function was asked for it, on the device of `query`; None for p = 0.

    Without a seed one is drawn from PyTorch's default generator of that device. Raises TypeError or
    ValueError unless `dropout_p` is a probability and `seed` None, a whole number from 0 to
    2⁶³ − 1, or an int64 tensor of no dimension on that device.
    """
    p = checked_p("dropout_p", dropout_p)
    checked = checked_seed(seed, "query", query)
    if p == 0.0:
        return None
    if checked is None:
        checked = torch.randint(2**63 - 1, (), dtype=torch.int64, device=query.device)
    return Dropout(p, checked)


def checked_seed(seed: object, name: str, like: Tensor) -> Tensor | None:
    """A `dropout_seed` on the device of the tensor `like`, of this name; None for none. Raises as
    `checked_dropout` does."""
    if seed is None:
        return None
    if isinstance(seed, Tensor):
        if seed.dtype != torch.int64 or seed.dim() != 0:
            raise ValueError(
                "dropout_seed must be a number or an int64 tensor of no dimension, not "
                f"{seed.dtype} of shape {check.shape(seed)}"
            )
        if seed.device != like.device:
            raise ValueError(
                f"dropout_seed must be on the device of {name}, {like.device}, not on {seed.device}"
            )
        return seed
    if not check.is_whole(seed):
        raise TypeError(
            "dropout_seed must be a whole number, a torch.Tensor or None, not "
            f"{check.describe(seed)}"
        )
    number: Any = seed
    if not 0 <= number < 2**63:
        raise ValueError(
            f"dropout_seed must be at least 0 and below 2⁶³, not {check.describe(seed)}"
        )
    return torch.full((), check.whole(seed), dtype=torch.int64, device=like.device)


def seed_of(seed: Tensor, number: int) -> Tensor:
    """The seed of dropout at one of several places in a model, from 0 on, by one seed for all: the
    lower 63 bits of words 0 and 1 of Philox at counter (number, 0, 0, 1), which no weight has."""
    zero = torch.zeros_like(seed)
    counter = (zero + number, zero, zero, zero + 1)
    low, high, _, _ = philox4x32(counter, (seed & WORD, (seed >> 32) & WORD))
    return low | (high & 0x7FFFFFFF) << 32
