"""Vectors with a batch and heads, as large as kernels are used, of which some rows are judged: of
attention, and of its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from bridge.vectors.model.attention import (
    Alibi,
    AttentionVector,
    Dropout,
    EnclosedRow,
    Exact,
    Mask,
    Matrix,
    Row,
    Scaled,
)
from bridge.vectors.model.by_intervals import integer_enclosed_rows
from bridge.vectors.model.by_spec import integer_rows
from bridge.vectors.model.gradients import Gradients, GradientVector, Slopes
from bridge.vectors.model.operations import ComesToAttention, problem
from bridge.vectors.model.philox import keep

# Integers, or float64 that hold numbers exactly.
Numbers = NDArray[Any]


def visible_pairs(mask: Mask, rows: tuple[int, ...], kv_len: int) -> NDArray[np.bool_]:
    """Which keys these queries may attend to: [rows, kv_len]."""
    window = mask.window
    if window is None:
        # Every query sees the same keys: no question for each pair.
        shape = (len(rows), kv_len)
        match mask.kind:
            case "none":
                return np.ones(shape, dtype=bool)
            case "key-length":
                return np.broadcast_to(np.arange(kv_len) < mask.length, shape).copy()
            case "key-padding":
                valid = np.array(mask.valid, dtype=bool)
                return np.broadcast_to(valid[:kv_len], shape).copy()
            case "document":
                queries, keys = np.array(mask.queries, dtype=int), np.array(mask.keys, dtype=int)
                return np.array(queries[list(rows), None] == keys[None, :kv_len])
        seen = np.array([mask.rows[i][:kv_len] for i in rows], dtype=bool)
        return seen.reshape(shape)
    before = np.array(rows)[:, None] + window.shift - np.arange(kv_len)
    seen = np.ones(before.shape, dtype=bool)
    if window.left is not None:
        seen &= before <= window.left
    if window.right is not None:
        seen &= -before <= window.right
    return seen


def draw_dropout(p: Exact, seed: int, h: int, rows: Sequence[int], kv_len: int) -> Dropout:
    """Dropout's decisions for the weights of these queries of the head with number h."""
    found = keep(p, seed, h, rows, kv_len)
    return Dropout(p, tuple(map(tuple, found.tolist())))


@dataclass(frozen=True)
class Packed:
    """Sequences that lie one after another in each head, none of which sees the keys of another.

    Sequence b has the queries cu_seqlens_q[b] to cu_seqlens_q[b + 1] − 1, and its keys by
    cu_seqlens_k in the same way.
    masks: one for each sequence, on its own positions, which are aligned top-left or
    bottom-right."""

    cu_seqlens_q: tuple[int, ...]
    cu_seqlens_k: tuple[int, ...]
    masks: tuple[Mask, ...]
    alignment: Literal["top-left", "bottom-right"]

    def lengths(self) -> tuple[tuple[int, int], ...]:
        """Queries and keys of each sequence."""
        sums = zip(pairwise(self.cu_seqlens_q), pairwise(self.cu_seqlens_k), strict=True)
        return tuple((q1 - q0, k1 - k0) for (q0, q1), (k0, k1) in sums)

    def whole(self) -> Mask:
        """The mask of all sequences together."""
        seen = np.zeros((self.cu_seqlens_q[-1], self.cu_seqlens_k[-1]), dtype=bool)
        starts = zip(self.cu_seqlens_q, self.cu_seqlens_k, strict=True)
        for (q, k), (q_len, kv_len), mask in zip(starts, self.lengths(), self.masks, strict=False):
            seen[q : q + q_len, k : k + kv_len] = visible_pairs(mask, tuple(range(q_len)), kv_len)
        return Mask("boolean", tuple(map(tuple, seen.tolist())))

    @property
    def bounds(self) -> tuple[int | None, int | None]:
        """How many keys before and after its own a query sees; None: all."""
        window = self.masks[0].window
        return (None, None) if window is None else (window.left, window.right)


class FloatMatrix(tuple[tuple[Exact, ...], ...]):
    """A matrix of exact numbers, with the float64 that they are: [rows, columns]."""

    floats: NDArray[np.float64]


def matrix(numbers: Numbers) -> Matrix:
    """A matrix of exact numbers."""
    rows = numbers.tolist()
    if not np.issubdtype(numbers.dtype, np.integer):
        rows = [map(_exact, row) for row in rows]
    found = FloatMatrix(map(tuple, rows))
    found.floats = numbers.astype(np.float64)
    return found


# The same few numbers come again and again, and making a fraction of one takes microseconds.
@lru_cache(maxsize=1 << 14)
def _exact(x: float) -> Exact:
    return int(x) if x.is_integer() else Fraction(x)


@dataclass(frozen=True, eq=False)
class SampledVector(Scaled, ComesToAttention):
    """Several heads of several entries of a batch in one call.

    q: [batch, num_heads, q_len, head_dim]; k: [batch, num_kv_heads, kv_len, head_dim]; v: as k,
    with value_dim; query head h uses head h // group, group = num_heads / num_kv_heads. masks: one
    for all heads of all entries, or one for each: head h of entry b has the number
    b·num_heads + h. rows: the queries of each head that are judged. A scale of None is 1/√head_dim,
    in the natural model. Scores are changed as in `AttentionVector`, by slopes and sinks of each
    head, and a bias [num_heads, q_len, kv_len], and before all that by the temperature of the head,
    [num_heads], by which they are multiplied. dropout_p: the probability to drop a weight, drawn
    from the seed; None: there is none. packed: of sequences that lie in each head, in a batch of
    one; masks is then theirs together. given: for each head, by its number, the results of the
    rows; None: they are computed, from integers, without temperature and dropout.
    """

    operation: ClassVar[str] = "sampled"
    scale: Exact | None
    q: Numbers
    k: Numbers
    v: Numbers
    masks: tuple[Mask, ...]
    rows: tuple[int, ...]
    softcap: Exact | None = None
    alibi: Slopes | None = None
    bias: Numbers | None = None
    sinks: tuple[Exact, ...] | None = None
    temperature: tuple[Exact, ...] | None = None
    dropout_p: Exact | None = None
    dropout_seed: int = 0
    packed: Packed | None = None
    given: tuple[tuple[Row | EnclosedRow, ...], ...] | None = None

    @property
    def own_options(self) -> frozenset[str]:
        """Which of temperature and dropout are given, which plain problems have no place for."""
        given = {"temperature": self.temperature, "dropout": self.dropout_p}
        return frozenset(name for name, value in given.items() if value is not None)

    @property
    def heads(self) -> int:
        """Query heads of an entry."""
        return int(self.q.shape[1])

    @property
    def head_dim(self) -> int:
        """Columns of queries and keys."""
        return int(self.q.shape[3])

    @property
    def grouped(self) -> bool:
        """Whether query heads share heads of keys and values."""
        return self.heads != int(self.k.shape[1])

    def mask_of(self, number: int) -> Mask:
        """The mask of the head with this number."""
        return self.masks[0 if len(self.masks) == 1 else number]

    def visible_keys(self, number: int) -> NDArray[np.bool_]:
        """Which keys the judged queries of the head with this number may attend to."""
        return visible_pairs(self.mask_of(number), self.rows, self.k.shape[2])

    def _results(
        self, h: int, q: Numbers, k: Numbers, v: Numbers, seen: NDArray[np.bool_]
    ) -> tuple[Row | EnclosedRow, ...]:
        if self.scale is None:
            return integer_enclosed_rows(
                q,
                k,
                v,
                seen,
                softcap=self.softcap,
                added=self._additions(h),
                sink=None if self.sinks is None else self.sinks[h],
            )
        return integer_rows(q, k, v, int(self.scale), seen)

    def _additions(self, h: int) -> tuple[tuple[Exact | None, ...], ...] | None:
        """The numbers added to the scores of the judged rows of head h: bias, less the distances
        times the slope. The plain problem does not know the places of the rows."""
        if self.alibi is None and self.bias is None:
            return None
        slope, shift = (0, 0) if self.alibi is None else (self.alibi.slopes[h], self.alibi.shift)
        columns = range(self.k.shape[2])
        bias = None if self.bias is None else matrix(self.bias[h, list(self.rows)])
        return tuple(
            tuple((0 if bias is None else bias[r][j]) - slope * abs(i + shift - j) for j in columns)
            for r, i in enumerate(self.rows)
        )

    @cached_property
    def _attentions(self) -> tuple[AttentionVector, ...]:
        batch, heads, _, head_dim = self.q.shape
        kv_len, value_dim = self.v.shape[2:]
        group = heads // self.k.shape[1]
        keys = {
            (b, c): (matrix(self.k[b, c]), matrix(self.v[b, c]))
            for b, c in np.ndindex(batch, self.k.shape[1])
        }
        found = []
        for n, (b, h) in enumerate(np.ndindex(batch, heads)):
            q, k, v = self.q[b, h, list(self.rows)], self.k[b, h // group], self.v[b, h // group]
            if self.temperature is not None:
                # Queries that are multiplied by it are as good as scores.
                t = self.temperature[h]
                q = q * (int(t) if t.denominator == 1 else float(t))
            seen = self.visible_keys(n)
            found.append(
                problem(
                    self,
                    f"{self.id}[{b}, {h}]",
                    q_len=len(self.rows),
                    kv_len=int(kv_len),
                    head_dim=int(head_dim),
                    value_dim=int(value_dim),
                    scale=self.scale,
                    q=matrix(q),
                    k=keys[b, h // group][0],
                    v=keys[b, h // group][1],
                    mask=Mask("boolean", tuple(map(tuple, seen.tolist()))),
                    expected=self._results(h, q, k, v, seen)
                    if self.given is None
                    else self.given[n],
                    softcap=self.softcap,
                    bias=self._additions(h),
                    sink=None if self.sinks is None else self.sinks[h],
                    dropout=None
                    if self.dropout_p is None
                    else draw_dropout(self.dropout_p, self.dropout_seed, n, self.rows, int(kv_len)),
                )
            )
        return tuple(found)

    def attentions(self) -> tuple[AttentionVector, ...]:
        """The plain problems: one for each entry of the batch and head, of the judged rows."""
        return self._attentions

    def problems(self) -> tuple[AttentionVector, ...]:
        """The plain problems with the mask, the slopes and the number of queries that the function
        is given. Masks that differ are given as booleans."""
        q_len, kv_len = int(self.q.shape[2]), int(self.k.shape[2])
        found = []
        for n, each in enumerate(self._attentions):
            h, mask = n % self.heads, self.mask_of(n)
            if len(self.masks) > 1:
                seen = visible_pairs(mask, tuple(range(q_len)), kv_len)
                mask = Mask("boolean", tuple(map(tuple, seen.tolist())))
            alibi = None
            if self.alibi is not None:
                alibi = Alibi(self.alibi.slopes[h], self.alibi.shift)
            bias = None if self.bias is None else matrix(self.bias[h])
            found.append(replace(each, q_len=q_len, mask=mask, alibi=alibi, bias=bias))
        return tuple(found)


# Inputs by which a gradient is judged in some rows: the names of these rows' places, by dimension.
_PLACES = {"q": ("rows",), "k": ("keys",), "v": ("keys",), "bias": ("rows", "keys")}


@dataclass(frozen=True)
class SampledGradientVector(GradientVector):
    """Gradients of which those by some queries and keys of each head are judged: `expected` and
    `bounds` have those alone, and by a bias, which each head has of its own, those of both. rows,
    keys: their places. packed: of sequences that lie in each head; masks is then theirs
    together."""

    operation: ClassVar[str] = "sampled-gradient"
    rows: tuple[int, ...] = ()
    keys: tuple[int, ...] = ()
    packed: Packed | None = None

    def judged_part(self, name: str, whole: NDArray[Any]) -> NDArray[Any]:
        """The judged part of an array of the shape of the input of this name."""
        for axis, places in enumerate(_PLACES.get(name, ()), start=1):
            whole = np.take(whole, getattr(self, places), axis=axis)
        return whole

    def judged_gradients(self, whole: Gradients) -> Gradients:
        def pick(parts: Any, *places: tuple[int, ...]) -> Any:
            if not places:
                return parts
            here, *others = places
            return tuple(pick(parts[n], *others) for n in here)

        picked = {
            name: tuple(
                pick(head, *(getattr(self, each) for each in places))
                for head in getattr(whole, name)
            )
            for name, places in _PLACES.items()
        }
        return replace(whole, **picked)
