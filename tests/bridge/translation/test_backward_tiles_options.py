"""The tile loops of the backward pass with slopes and a sink, as translated, give the gradients of
attention with one more key: `flash-backward-sinks`, with 50 digits."""

from __future__ import annotations

import random
from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import Any

import pytest

from bridge.spec import attention as plain
from bridge.spec import (
    backward,
    backward_dropout,
    backward_options,
    backward_tiles,
    backward_tiles_options,
    dropout,
    flash,
    score_mods,
    sink,
    slopes,
)
from bridge.spec.core import Arithmetic
from bridge.spec.masks import Alignment
from bridge.spec.schedule import TileKind, TileRange

NATURAL = Arithmetic(Decimal.exp, Decimal, Decimal)
CLOSE = Decimal(10) ** -40


@dataclass(frozen=True)
class Results:
    """The rows of dQ, dK and dV, and the gradients by the slope and by the sink."""

    rows: tuple[Any, Any, Any]
    slope: Decimal
    sink: Decimal

    def is_close(self, other: Results) -> bool:
        return all(abs(a - b) < CLOSE for a, b in zip(self.numbers(), other.numbers(), strict=True))

    def numbers(self) -> list[Decimal]:
        return [x for rows in self.rows for row in rows for x in row] + [self.slope, self.sink]


def both(seed: int, *, share: Decimal = Decimal(1)) -> tuple[Results, Results]:
    """What the tile loops give, and the whole matrices. share: of the exponential of the sink, in
    the log-sum-exps that the loops get."""
    rng = random.Random(seed)
    q_len, kv_len, d, d_v = (rng.randint(1, 4) for _ in range(4))

    def matrix(m: int, n: int) -> list[list[Decimal]]:
        return [[Decimal(rng.randint(-8, 8)) / 4 for _ in range(n)] for _ in range(m)]

    q, k, v, d_o = matrix(q_len, d), matrix(kv_len, d), matrix(kv_len, d_v), matrix(q_len, d_v)
    d_lse, kept = matrix(1, q_len)[0], matrix(q_len, kv_len)
    scale, of_sink = Decimal(rng.choice([1, -2])) / 2, Decimal(rng.randint(-4, 4)) / 4
    seen = [[rng.random() < 0.8 for _ in range(kv_len)] for _ in range(q_len)]
    alignment = rng.choice(list(Alignment))
    sizes: dict[str, Any] = {"q_len": q_len, "kv_len": kv_len, "d": d, "d_v": d_v, "num": NATURAL}

    def mask(i: int, j: int) -> bool:
        return seen[i][j]

    def factor(i: int, j: int) -> Decimal:
        return abs(kept[i][j])

    def identity(x: Decimal) -> Decimal:
        return x

    modify = score_mods.score_mod_softcap(Decimal(3), num=NATURAL)
    slope = slopes.score_slope_softcap(Decimal(3), num=NATURAL)
    forward = score_mods.score_mod_and_then(modify, plain.mask_to_score_mod(mask))
    out = [
        sink.attention_sink(
            scale, forward, of_sink, q, k, dropout.dropped_values(v, factor, i, kv_len=kv_len),
            **sizes,
        )[i]
        for i in range(q_len)
    ]  # fmt: skip

    def log_sum_exp(i: int) -> Decimal:
        scores = [plain.score(scale, forward, q, k, i, j, d=d, num=NATURAL) for j in range(kv_len)]
        terms = [s.exp() for s in scores if s is not None]
        return (share * of_sink.exp() + sum(terms, Decimal(0))).ln()

    def loop(terms: int) -> backward_tiles.TileLoop:
        inner = rng.randint(1, 3)
        every = TileRange(0, flash.num_tiles(terms, inner))
        kind = TileKind.MASKED
        return backward_tiles.TileLoop(rng.randint(1, 3), inner, lambda t: every, lambda t, u: kind)

    lses = [log_sum_exp(i) for i in range(q_len)]
    keys, queries = loop(q_len), loop(kv_len)
    d_q, (d_k, d_values) = backward_tiles.flash_backward(
        identity, scale, modify, mask, slope, q, k, v, factor, lses, d_o, keys, queries, out,
        d_lse, **sizes,
    )  # fmt: skip
    delta = backward.row_delta(out, d_o, d_lse, q_len=q_len, d_v=d_v, num=NATURAL)
    by_tiles = Results(
        (d_q, d_k, d_values),
        backward_tiles_options.backward_slope(
            scale, modify, mask, q, k, v, factor, lses, d_o, delta, alignment, queries, **sizes
        ),
        backward_tiles_options.sink_gradient(lses, delta, of_sink, q_len=q_len, num=NATURAL),
    )

    def behind(rows: list[list[Decimal]], width: int) -> list[list[Decimal]]:
        return backward_options.rows_behind_sink(rows, kv_len=kv_len, d=width, num=NATURAL)

    whole = backward_dropout.vjp_dropout(
        scale,
        backward_options.score_mod_behind_sink(of_sink, forward),
        backward_options.score_slope_behind_sink(slope, num=NATURAL),
        q, behind(k, d), behind(v, d_v),
        lambda i, j: backward_options.sink_first(Decimal(1), lambda key: factor(i, key), j),
        identity, d_o, d_lse, **{**sizes, "kv_len": kv_len + 1},
    )  # fmt: skip
    of_keys = [row[1:] for row in whole.dBias]
    return by_tiles, Results(
        (whole.dQ, whole.dK[1:], whole.dV[1:]),
        backward_options.slope_gradient(
            alignment, of_keys, q_len=q_len, kv_len=kv_len, num=NATURAL
        ),
        sum((row[0] for row in whole.dBias), Decimal(0)),
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_loops_compute_the_gradients(seed: int) -> None:
    with localcontext(prec=50):
        found, exact = both(seed)
        assert found.is_close(exact)


def test_half_of_the_sink_in_the_log_sum_exp_gives_others() -> None:
    with localcontext(prec=50):
        results = [both(seed, share=Decimal("0.5")) for seed in range(12)]
        assert not any(found.is_close(exact) for found, exact in results)
