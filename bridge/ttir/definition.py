"""Attention by its definition, `bridge.spec`, over the numbers of a domain.

The functions of `bridge.spec` take any numbers that can be added and multiplied. Here one number is
a tile: the scores of one key with all queries, or all elements of a value vector, so that they run
over matrices of real size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.spec.attention import attention
from bridge.spec.backward import Gradients, vjp
from bridge.spec.backward_heads import group_gradients
from bridge.spec.core import Arithmetic
from bridge.spec.log_sum_exp import is_log_sum_exp
from bridge.spec.softmax import denominator
from bridge.ttir.domain import Array, Domain, Numbers


@dataclass(frozen=True, eq=False)
class Number:
    """A tile as a number of `bridge.spec`; tiles of one formula have shapes that broadcast."""

    domain: Domain
    tile: Numbers

    def __add__(self, other: Number) -> Number:
        return Number(self.domain, self.domain.add(self.tile, other.tile))

    def __sub__(self, other: Number) -> Number:
        return Number(self.domain, self.domain.subtract(self.tile, other.tile))

    def __mul__(self, other: Number) -> Number:
        return Number(self.domain, self.domain.multiply(self.tile, other.tile))

    def __truediv__(self, other: Number) -> Number:
        return Number(self.domain, self.domain.divide(self.tile, other.tile))

    def __eq__(self, other: object) -> Any:
        """Which elements are equal, a tile of truth values."""
        if not isinstance(other, Number):
            return NotImplemented
        return self.domain.equal(self.tile, other.tile)


class Queries(Number):
    """Vectors, a matrix `[rows, d]`: times a vector, `[1, d]`, or one for each row, they are their
    inner products with it, `[rows, 1]`. To `bridge.spec` they are vectors of one element."""

    def __mul__(self, other: Number) -> Number:
        domain = self.domain
        if len(_parts(other.tile)) > 1:
            products = domain.sum(domain.multiply(self.tile, other.tile), 1)
            return Number(domain, domain.each(lambda x: x[:, None], products))
        column = domain.each(np.transpose, other.tile)
        zero = domain.constant(0.0)
        rows = len(_parts(self.tile))
        zeros = domain.each(lambda x: np.broadcast_to(x, (rows, 1)), zero)
        return Number(domain, domain.dot(self.tile, column, zeros))


def _parts(tile: Numbers) -> Array:
    """An array of a tile's shape."""
    return np.asarray(tile if isinstance(tile, np.ndarray) else tile[0])


def arithmetic(domain: Domain) -> Arithmetic:
    """The domain's numbers for `bridge.spec`, with the natural exponential."""

    def number(n: int) -> Number:
        return Number(domain, domain.integers(np.array(n)))

    return Arithmetic(lambda x: Number(domain, domain.exp(x.tile)), number, number)


@dataclass(frozen=True, eq=False)
class Head:
    """One head of one sequence: queries `[rows, d]`, keys `[cols, d]`, values `[cols, value_dim]`,
    a mask of the keys that each query sees, `[rows, cols]`, and a bias of the scores of the same
    shape, None: no bias."""

    q: Numbers
    k: Numbers
    v: Numbers
    visible: Array
    added: Numbers | None = None


@dataclass(frozen=True)
class Rows:
    """The results for the queries of one head.

    out: `[rows, value_dim]`; denominators: Σ e^score, `[rows, 1]`, 0 for a row without a key.
    """

    domain: Domain
    out: Numbers
    denominators: Numbers

    def has_log_sum_exp(self, lse: Numbers) -> Array:
        """Whether numbers `[rows]` are the rows' log-sum-exps (`bridge.spec.log_sum_exp`)."""
        column = Number(self.domain, self.domain.each(lambda x: x[:, None], lse))
        # The row of one score that weighs as much as all.
        all_of_them = Arithmetic(
            lambda x: x if x is total else arithmetic(self.domain).exp(x),
            arithmetic(self.domain).score,
            arithmetic(self.domain).value,
        )
        total = Number(self.domain, self.denominators)
        return np.asarray(is_log_sum_exp(column, [total], num=all_of_them))[:, 0]


def attend(domain: Domain, head: Head, scale: Numbers) -> Rows:
    """`bridge.spec.attention.attention`. Rows without a key count on their own, since a masked
    score is none there and −∞ elsewhere."""
    num = arithmetic(domain)
    q, k, v, visible, added = head.q, head.k, head.v, head.visible, head.added
    rows, columns = visible.shape
    some = visible.any(1)
    minus_infinity = domain.constant(-float("inf"))

    def modify(i: int, j: int, score: Number) -> Number | None:
        seen = visible[some, j][:, None]
        tile = score.tile
        if added is not None:
            tile = domain.add(tile, domain.each(lambda x: x[some, j][:, None], added))
        return Number(domain, domain.each(lambda x, y: np.where(seen, x, y), tile, minus_infinity))

    queries = Queries(domain, domain.each(lambda x: x[some], q))
    keys = [[Number(domain, domain.each(lambda x, j=j: x[j : j + 1], k))] for j in range(columns)]
    values = [[Number(domain, domain.each(lambda x, j=j: x[j : j + 1], v))] for j in range(columns)]
    zero = domain.constant(0.0)
    width = _parts(v).shape[1]
    out = domain.each(lambda x: np.array(np.broadcast_to(x, (rows, width))), zero)
    sums = domain.each(lambda x: np.array(np.broadcast_to(x, (rows, 1))), zero)
    if some.any():
        factor = Number(domain, scale)
        found = attention(
            factor, modify, [[queries]], keys, values,
            q_len=1, kv_len=columns, d=1, d_v=1, num=num,
        )[0][0]  # fmt: skip
        scores = [modify(0, j, factor * (queries * key[0])) for j, key in enumerate(keys)]
        total = denominator(scores, num=num)

        def put(whole: Array, part: Array) -> Array:
            whole[some] = part
            return whole

        out = domain.each(put, out, found.tile)
        sums = domain.each(put, sums, total.tile)
    return Rows(domain, out, sums)


def gradients(
    domain: Domain,
    heads: Sequence[Head],
    by: Sequence[tuple[Numbers, Numbers]],
    scale: Numbers,
    *,
    kv_heads: int,
) -> dict[str, list[Numbers]]:
    """`bridge.spec.backward.vjp` of each query head of a sequence, element by element, and
    `bridge.spec.backward_heads.group_gradients`; `by`: the gradients by each head's output and
    log-sum-exp. Tiles of each head, of queries or of keys, by the names "query", "key", "value" and
    "bias"."""
    num = arithmetic(domain)
    q_len, kv_len = heads[0].visible.shape
    d, d_v = _parts(heads[0].q).shape[1], _parts(heads[0].v).shape[1]
    sizes = {"kv_len": kv_len, "d": d, "d_v": d_v}
    found = group_gradients(
        [
            _vjp(domain, head, grad_out, grad_lse, scale, q_len=q_len, **sizes)
            for head, (grad_out, grad_lse) in zip(heads, by, strict=True)
        ],
        num_kv_heads=kv_heads, group=len(heads) // kv_heads, num=num, **sizes,
    )  # fmt: skip

    def tile(rows: list[list[Number]], width: int) -> Numbers:
        if not rows or not width:
            return domain.each(lambda x: np.broadcast_to(x, (len(rows), width)), num.value(0).tile)
        flat = [x.tile for row in rows for x in row]
        shape = (len(rows), width)
        return domain.each(lambda *parts: np.stack(parts).reshape(shape), *flat)

    return {
        "query": [tile(rows, d) for rows in found.dQ],
        "key": [tile(rows, d) for rows in found.dK],
        "value": [tile(rows, d_v) for rows in found.dV],
        "bias": [tile(rows, kv_len) for rows in found.dBias],
    }


def tile_gradients(
    domain: Domain, head: Head, grad_out: Numbers, scale: Numbers
) -> tuple[Numbers, Numbers, Numbers]:
    """`bridge.spec.backward.vjp` of one head with all of its queries as one: the gradients by
    queries, keys and values, as tiles. The sum over queries, of which `bridge.spec` sees one, is
    taken here; rows without a key count nothing. Without biases."""
    num = arithmetic(domain)
    rows, columns = head.visible.shape
    some = head.visible.any(1)
    zero = domain.constant(0.0)

    def zeros(height: int, tile: Numbers) -> Numbers:
        shape = (height, _parts(tile).shape[1])
        return domain.each(lambda x: np.array(np.broadcast_to(x, shape)), zero)

    by_q, by_k, by_v = zeros(rows, head.q), zeros(columns, head.k), zeros(columns, head.v)
    if not some.any():
        return by_q, by_k, by_v
    minus_infinity = domain.constant(-float("inf"))

    def modify(i: int, j: int, score: Number) -> Number:
        seen = head.visible[some, j][:, None]
        hidden = domain.each(lambda x, y: np.where(seen, x, y), score.tile, minus_infinity)
        return Number(domain, hidden)

    def vectors(tile: Numbers) -> list[list[Number]]:
        return [
            [Number(domain, domain.each(lambda x, j=j: x[j : j + 1], tile))] for j in range(columns)
        ]

    def choose(tile: Numbers) -> list[list[Number]]:
        return [[Queries(domain, domain.each(lambda x: x[some], tile))]]

    found = vjp(
        Number(domain, scale), modify, lambda i, j, s: num.value(1),
        choose(head.q), vectors(head.k), vectors(head.v), lambda x: x, choose(grad_out),
        [num.value(0)], q_len=1, kv_len=columns, d=1, d_v=1, num=num,
    )  # fmt: skip

    def put(whole: Array, part: Array) -> Array:
        whole[some] = part
        return whole

    def sum_tiles(by_key: list[list[Number]]) -> Numbers:
        tiles = [domain.sum(one.tile, 0) for (one,) in by_key]
        return domain.each(lambda *parts: np.stack(parts), *tiles)

    return domain.each(put, by_q, found.dQ[0][0].tile), sum_tiles(found.dK), sum_tiles(found.dV)


def _vjp(
    domain: Domain,
    head: Head,
    grad_out: Numbers,
    grad_lse: Numbers,
    scale: Numbers,
    **sizes: int,
) -> Gradients:
    num = arithmetic(domain)

    def matrix(tile: Numbers) -> list[list[Number]]:
        rows, columns = _parts(tile).shape

        def at(i: int, j: int) -> Number:
            return Number(domain, domain.each(lambda x: x[i, j, ...], tile))

        return [[at(i, j) for j in range(columns)] for i in range(rows)]

    added = None if head.added is None else matrix(head.added)

    def modify(i: int, j: int, score: Number) -> Number | None:
        if not head.visible[i, j]:
            return None
        return score if added is None else score + added[i][j]

    return vjp(
        Number(domain, scale),
        modify,
        lambda i, j, s: num.value(1),
        matrix(head.q),
        matrix(head.k),
        matrix(head.v),
        lambda x: x,
        matrix(grad_out),
        [row[0] for row in matrix(domain.each(lambda x: x[:, None], grad_lse))],
        num=num,
        **sizes,
    )
