"""Bounds of gradients as the Spec defines them, with 50 digits, beside those of the code."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from types import ModuleType

import numpy as np
import torch
from numpy.typing import NDArray
from tolerance_by_spec import (
    CLOSE,
    FEW,
    NATURAL,
    coarse_below,
    difference,
    digits,
    precision,
    score_formats,
)

from bridge.conformance.tolerances import gradient_tolerance
from bridge.conformance.tolerances.recomputed_weights import Softmax
from bridge.conformance.tolerances.rounding_model import FORMATS, Format, RoundingModel
from bridge.conformance.tolerances.tolerance import FACTOR_ROUNDINGS
from bridge.spec.gradient_store_tolerance import present_gradient_term
from bridge.spec.gradient_tolerance import (
    GradientCounts,
    GradientKey,
    GradientPrecision,
    GradientTerm,
    gradient_key,
    recomputed_error,
    score_gradient_error,
    score_gradient_term,
    weight_term,
)
from bridge.spec.score_change_tolerance import ScoreChange, score_change_apply, sink_error
from bridge.spec.score_tolerance import magnitude, score_error
from bridge.spec.softcap_tolerance import capped_change_error, capped_slope_error
from bridge.spec.tolerance import BoundedKey, Denominator
from bridge.spec.underflow_tolerance import (
    bounded_key_flushed,
    underflow_log_sum_exp_factor,
    underflow_log_sum_exp_tolerance,
)

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(4),
    # So coarse that few roundings more show.
    "coarse": replace(RoundingModel.float32(), accumulation_unit=2.0**-10),
    "flash": RoundingModel.flash("bfloat16", block_n=2),
    "tiles stored": replace(RoundingModel.flash("bfloat16", block_n=2), gradient_rows=2),
    "normalised, scores stored": RoundingModel.sdpa_math("bfloat16", reduced=True),
    "coarse accumulator": replace(RoundingModel.float32(4), accumulator=FORMATS["bfloat16"]),
    "few small numbers": replace(
        RoundingModel.flash("float16", block_n=2, denominator="rounded"),
        accumulator=FEW,
        weights=replace(FORMATS["float16"], smallest_normal=2.0**-6, smallest_subnormal=2.0**-9),
    ),
}


@dataclass(frozen=True)
class Problem:
    """Queries, keys, values and gradients by the output, a row each; gradients by the log-sum-exp;
    a mask and factors of dropout, `[q_len, kv_len]`; softcap and one sink, or None."""

    q: NDArray[np.float64]
    k: NDArray[np.float64]
    v: NDArray[np.float64]
    d_o: NDArray[np.float64]
    d_l: NDArray[np.float64]
    mask: NDArray[np.bool_]
    kept: NDArray[np.float64] | None
    scale: float
    softcap: float | None
    sink: float | None

    @classmethod
    def draw(cls, seed: int) -> Problem:
        rng = np.random.default_rng(seed)
        q_len, kv_len, d, d_v = (int(rng.integers(1, 6)) for _ in range(4))
        mask = rng.random((q_len, kv_len)) < 0.8
        mask[0, 0] = True
        kept = (rng.random((q_len, kv_len)) < 0.6) / 0.75 if rng.random() < 0.5 else None
        return cls(
            q=rng.normal(size=(q_len, d)),
            k=rng.normal(size=(kv_len, d)),
            v=rng.normal(size=(kv_len, d_v)),
            d_o=rng.normal(size=(q_len, d_v)),
            d_l=rng.normal(size=q_len),
            mask=mask,
            kept=kept,
            scale=float(rng.choice([0.5, -1.25])),
            softcap=2.5 if rng.random() < 0.5 else None,
            sink=0.75 if rng.random() < 0.5 else None,
        )


def exact(numbers: NDArray[np.float64]) -> list[Decimal]:
    return [Decimal(float(x)) for x in numbers]


def units(rounding: RoundingModel, kept: NDArray[np.float64] | None) -> GradientPrecision:
    """The roundings of the rounding model, in the Spec's terms."""
    unit, tiny = Decimal(rounding.accumulator.unit), Decimal(rounding.accumulator.smallest_normal)

    def underflow(form: Format | None) -> Decimal:
        return Decimal(0 if form is None else form.underflow(rounding.flush_to_zero))

    stored = Decimal(0 if rounding.weights is None else rounding.weights.unit)
    factors = Decimal(0)
    scores = Decimal(0 if rounding.scores is None else rounding.scores.unit)
    scores_tiny = underflow(rounding.scores)
    if kept is not None:
        z = max(Decimal(1), *exact(kept.flatten()))
        factors = (z + FACTOR_ROUNDINGS) * unit
        factors = factors / (1 - factors)
        # A function may leave the factor that it computes out of dP and of all that it makes of it.
        tiny *= 2 * z * (1 + factors)
        if rounding.scores is not None:
            # dP may be stored before a factor multiplies it, and after that.
            least = scores_tiny
            scores_tiny = (z * (1 + factors) * least + tiny) * (1 + scores) + least
            scores = (1 + scores) * (1 + scores) - 1
            scores_tiny += tiny * (1 + scores)
    return GradientPrecision(
        unit=unit,
        accumulation=Decimal(rounding.accumulation_unit),
        exponential=Decimal(rounding.exp_error) * unit,
        weights=stored if rounding.weights_normalized else Decimal(0),
        stored=stored,
        factors=factors,
        scores=scores,
        output=Decimal(rounding.output.unit),
        operands=Decimal(0 if rounding.operands is None else rounding.operands.unit),
        tiny=tiny,
        weights_tiny=underflow(rounding.weights if rounding.weights_normalized else None),
        stored_tiny=underflow(rounding.weights),
        scores_tiny=scores_tiny,
        output_tiny=underflow(rounding.output) + 6 * tiny,
        operands_tiny=underflow(rounding.operands),
        growth=Decimal(1),
    )


@dataclass(frozen=True)
class Row:
    """A query as the Spec sees it: its keys that are not masked, and all that it sees."""

    by_key: dict[int, GradientKey]
    sink: GradientKey | None
    counts: GradientCounts

    @property
    def keys(self) -> list[GradientKey]:
        return [*self.by_key.values(), *([] if self.sink is None else [self.sink])]


def row_of(problem: Problem, i: int, rounding: RoundingModel) -> Row:
    """Query i, with the errors of weights and slopes that the Spec has."""
    forwards = precision(rounding)
    formats = score_formats(rounding, problem.scale, problem.q.shape[1], problem.softcap)
    if rounding.weights is not None and rounding.denominator != "unrounded":
        forwards = replace(forwards, denominator=Denominator.ROUNDED)
    unit, exponential = forwards.unit, forwards.exponential
    tiny = Decimal(rounding.accumulator.smallest_normal)
    zero, one, scale = Decimal(0), Decimal(1), Decimal(problem.scale)
    q, (d, d_v, kv_len) = exact(problem.q[i]), (len(problem.q[i]), *problem.v.shape[::-1])
    cap = None if problem.softcap is None else Decimal(problem.softcap)
    # A mask adds 0.
    change = ScoreChange(cap, zero)
    scores, errors, slopes = {}, {}, {}
    for j in np.flatnonzero(problem.mask[i]).tolist():
        k = exact(problem.k[j])
        s = scale * sum((a * b for a, b in zip(q, k, strict=True)), zero)
        size = magnitude(q, k, d=d, num=NATURAL)
        error = score_error(forwards, formats, d - 1, scale, size, zero, s, abs(s), num=NATURAL)
        # The code has more for the caller's own rounding of the scale.
        error += Decimal(2.0**-52) * abs(s) * (1 + formats.scores)
        scores[j] = score_change_apply(change, s, num=NATURAL)
        errors[j] = capped_change_error(forwards, formats, change, s, error, num=NATURAL)
        slopes[j] = one, zero
        if cap is not None:
            of_slope = capped_slope_error(unit, tiny, cap, s, error, num=NATURAL)
            slopes[j] = 1 - (scores[j] / cap) ** 2, of_slope
    sink = None if problem.sink is None else Decimal(problem.sink)
    seen = [(s, errors[j]) for j, s in scores.items()]
    if sink is not None:
        seen.append((sink, sink_error(forwards, formats, sink, num=NATURAL)))
    if not seen:
        return Row({}, None, GradientCounts(0, 0, 0))
    blocks = math.ceil(kv_len / (rounding.block_n or 1))
    total = sum((s.exp() for s, _ in seen), zero)
    lse, most = total.ln(), max(s for s, _ in seen)
    keys = [BoundedKey(s, error, zero) for s, error in seen]
    row = [bounded_key_flushed(tiny, blocks, key, num=NATURAL) for key in keys]
    factor = underflow_log_sum_exp_factor(
        forwards, tiny, len(seen) + 2 * blocks, blocks, row, num=NATURAL
    )
    of_lse = underflow_log_sum_exp_tolerance(
        *(forwards, tiny, factor.ln(), lse - most, most, max(key.error for key in row)),
        num=NATURAL,
    )

    def of_weight(s: Decimal, error: Decimal) -> Decimal:
        # Those of an output have differences that are flushed to 0.
        error = bounded_key_flushed(tiny, blocks, BoundedKey(s, error, zero), num=NATURAL).error
        return Decimal(
            recomputed_error(unit, tiny, exponential, s, lse, error, of_lse, num=NATURAL)
        )

    by_key = {
        j: gradient_key(
            s.exp() / total,
            of_weight(s, errors[j]),
            one if problem.kept is None else Decimal(float(problem.kept[i, j])),
            *slopes[j],
            exact(problem.d_o[i]),
            exact(problem.v[j]),
            d=d_v,
            num=NATURAL,
        )
        for j, s in scores.items()
    }
    of_sink = None
    if sink is not None:
        weight = sink.exp() / total
        of_sink = GradientKey(weight, of_weight(*seen[-1]), one, zero, zero, one, zero)
    counts = GradientCounts(
        products=d_v + 2, delta=len(seen) + 2 * blocks + d_v + 8, rescalings=blocks
    )
    return Row(by_key, of_sink, counts)


def row_of_code(problem: Problem, i: int, rounding: RoundingModel, found: Softmax) -> Row:
    """Query i, with the weights, slopes and errors of both that the code has."""

    def number(x: torch.Tensor, j: int) -> Decimal:
        return Decimal(float(x[0, 0, i, j]))

    one, zero, (kv_len, d_v) = Decimal(1), Decimal(0), problem.v.shape
    keys = {
        j: gradient_key(
            number(found.p, j),
            number(found.error, j),
            one if problem.kept is None else Decimal(float(problem.kept[i, j])),
            number(found.slope, j),
            number(found.slope_error, j),
            exact(problem.d_o[i]),
            exact(problem.v[j]),
            d=d_v,
            num=NATURAL,
        )
        for j in np.flatnonzero(problem.mask[i]).tolist()
    }
    sink = None
    if found.sink is not None:
        weights = number(found.sink, 0), number(found.sink_error, 0)
        sink = GradientKey(*weights, one, zero, zero, one, zero)
    seen, blocks = len(keys) + (sink is not None), math.ceil(kv_len / (rounding.block_n or 1))
    counts = GradientCounts(products=d_v + 2, delta=seen + 2 * blocks + d_v + 8, rescalings=blocks)
    return Row(keys, sink, counts)


def wrong_gradients(
    problem: Problem,
    rounding: RoundingModel,
    code: ModuleType = gradient_tolerance,
    *,
    below: bool = False,
) -> Iterator[str]:
    """Which bounds are not as the Spec has them. below: for formats in which much is below the
    normal numbers, of the code's own weights and slopes."""
    rounding = coarse_below(rounding) if below else rounding
    p, one, scale = units(rounding, problem.kept), Decimal(1), Decimal(problem.scale)
    # A function may store P and dS without dropout's factor, and dS with the scale.
    most = one
    if problem.kept is not None:
        most = max(one, *exact(problem.kept.flatten())) * (1 + p.factors)
    of_values, of_scores = (replace(p, growth=most * x) for x in (one, max(one, 1 / abs(scale))))
    q, k, v, d_o, d_l = (
        torch.tensor(x)[None, None]
        for x in (problem.q, problem.k, problem.v, problem.d_o, problem.d_l)
    )
    hidden = torch.where(torch.tensor(problem.mask), 0.0, -torch.inf).double()
    scored = code.Scored(
        problem.scale,
        problem.softcap,
        (hidden,),
        None if problem.sink is None else torch.tensor([problem.sink]).double(),
        None if problem.kept is None else torch.tensor(problem.kept)[None, None],
    )
    bounds = code.gradient_bounds(q, k, v, d_o, d_l, scored, rounding)
    q_len, kv_len, stores = len(problem.q), len(problem.k), 0
    if rounding.operands is not None:
        stores = rounding.operand_roundings + 1

    def compare(name: str, place: tuple[int, ...], one: torch.Tensor, whole: Decimal) -> str | None:
        error = float(one[(0, 0, *place)])
        if abs(difference(error, whole)) <= CLOSE * float(whole) + 1e-300:
            return None
        return f"{name} at {place}: {error} for {float(whole)}"

    with localcontext(digits()):
        if below:
            found = code.softmax_bounds(q, k, scored, rounding)
            rows = [row_of_code(problem, i, rounding, found) for i in range(q_len)]
        else:
            rows = [row_of(problem, i, rounding) for i in range(q_len)]
        reaches = [sum((abs(x) for x in exact(row)), Decimal(0)) for row in problem.d_o]
        d_ls = exact(problem.d_l)

        def error_of(i: int, key: GradientKey) -> Decimal:
            row = rows[i]
            arguments = p, row.counts, reaches[i], d_ls[i], row.keys, key
            return Decimal(score_gradient_error(*arguments, num=NATURAL))

        def term(i: int, j: int, other: float) -> GradientTerm:
            row, key = rows[i], rows[i].by_key[j]
            if problem.softcap is not None:
                # The slope may be multiplied by the scale first (`scaled_slope`).
                once_more = p.unit * (1 + key.slope_error) + of_scores.growth * p.tiny
                key = replace(key, slope_error=key.slope_error + once_more)
            keys = row.keys, key
            arguments = of_scores, row.counts, reaches[i], d_ls[i], *keys, Decimal(float(other))
            return score_gradient_term(*arguments, num=NATURAL)

        def sum_of(
            count: int, factor: Decimal, terms: list[GradientTerm], rows: int | None
        ) -> Decimal:
            """rows: how many terms a tile has."""
            tiles = 0
            if rounding.gradient_rows is not None:
                tiles = math.ceil(count / (rows or 1))
            reach = most * max(one, abs(factor))
            arguments = p, count + 3, stores, tiles, factor, reach, terms
            return Decimal(present_gradient_term(*arguments, num=NATURAL).error)

        pairs = [(i, j) for i in range(q_len) for j in rows[i].by_key]
        checks: list[tuple[str, tuple[int, ...], torch.Tensor, Decimal]] = [
            ("dS", (i, j), bounds.scores.error, error_of(i, rows[i].by_key[j])) for i, j in pairs
        ]
        checks += [
            ("sink", (i,), bounds.sinks.error, error_of(i, row.sink))
            for i, row in enumerate(rows)
            if bounds.sinks is not None and row.sink is not None
        ]
        t, d_os = problem.q.shape[1] - 1, exact(problem.d_o[:, 0])
        for i in range(q_len):
            terms = [term(i, j, problem.k[j, t]) for j in rows[i].by_key]
            whole = sum_of(kv_len, scale, terms, rounding.block_n)
            checks.append(("dQ", (i, t), bounds.query.error, whole))
        for j in range(kv_len):
            by_query = [i for i in range(q_len) if j in rows[i].by_key]
            terms = [term(i, j, problem.q[i, t]) for i in by_query]
            whole = sum_of(q_len, scale, terms, rounding.gradient_rows)
            checks.append(("dK", (j, t), bounds.key.error, whole))
            terms = [
                weight_term(of_values, rows[i].by_key[j], d_os[i], num=NATURAL) for i in by_query
            ]
            whole = sum_of(q_len, one, terms, rounding.gradient_rows)
            checks.append(("dV", (j, 0), bounds.value.error, whole))
        yield from (wrong for check in checks if (wrong := compare(*check)) is not None)
