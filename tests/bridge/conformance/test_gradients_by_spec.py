"""The code's bounds of gradients are those that are proved: the Spec's, with 50 digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tolerance_by_spec import (
    CLOSE,
    NATURAL,
    change_code,
    difference,
    digits,
    endless,
    precision,
    score_formats,
)

from bridge.conformance.tolerances import gradient_tolerance
from bridge.conformance.tolerances.gradient_tolerance import Softmax
from bridge.conformance.tolerances.rounding_model import FORMATS, Format, RoundingModel
from bridge.conformance.tolerances.tolerance import FACTOR_ROUNDINGS
from bridge.spec.gradient_tolerance import (
    GradientCounts,
    GradientKey,
    GradientPrecision,
    GradientTerm,
    gradient_error,
    gradient_key,
    recomputed_error,
    score_gradient_error,
    score_gradient_term,
    softcap_slope_error,
    total_error,
    weight_term,
)
from bridge.spec.log_sum_exp_tolerance import log_sum_exp_factor, log_sum_exp_tolerance
from bridge.spec.score_change_tolerance import ScoreChange, score_change_apply, sink_error
from bridge.spec.score_tolerance import magnitude, score_error
from bridge.spec.softcap_tolerance import capped_change_error, capped_slope_error
from bridge.spec.stored_gradient_tolerance import tiled_gradient_error
from bridge.spec.tolerance import BoundedKey, Denominator, gamma

ROUNDING_MODELS = {
    "float32": RoundingModel.float32(4),
    # So coarse that few roundings more show.
    "coarse": replace(RoundingModel.float32(), accumulation_unit=2.0**-10),
    "flash": RoundingModel.flash("bfloat16", block_n=2),
    "tiles stored": replace(RoundingModel.flash("bfloat16", block_n=2), gradient_rows=2),
    "normalised, scores stored": RoundingModel.sdpa_math("bfloat16", reduced=True),
    "coarse accumulator": replace(RoundingModel.float32(4), accumulator=FORMATS["bfloat16"]),
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
    if kept is not None:
        factors = (Decimal(float(kept.max())) + FACTOR_ROUNDINGS) * unit
        factors = factors / (1 - factors)
    return GradientPrecision(
        unit=unit,
        accumulation=Decimal(rounding.accumulation_unit),
        exponential=Decimal(rounding.exp_error) * unit,
        weights=stored if rounding.weights_normalized else Decimal(0),
        stored=stored,
        factors=factors,
        scores=Decimal(0 if rounding.scores is None else rounding.scores.unit),
        output=Decimal(rounding.output.unit),
        operands=Decimal(0 if rounding.operands is None else rounding.operands.unit),
        tiny=tiny,
        weights_tiny=underflow(rounding.weights if rounding.weights_normalized else None),
        stored_tiny=underflow(rounding.weights),
        scores_tiny=underflow(rounding.scores),
        output_tiny=underflow(rounding.output) + 6 * tiny,
        operands_tiny=underflow(rounding.operands),
    )


def coarse_below(rounding: RoundingModel) -> RoundingModel:
    """The rounding model with formats whose smallest normal numbers are so large that each error
    below them shows, and no two are alike."""
    names = "accumulator", "output", "weights", "scores", "operands"

    def coarse(form: Format | None, number: int) -> Format | None:
        least = 2.0 ** -(9 + number)
        return form and replace(form, smallest_normal=4 * least, smallest_subnormal=least)

    formats: dict[str, Any] = {
        name: coarse(getattr(rounding, name), i) for i, name in enumerate(names)
    }
    return replace(rounding, **formats)


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
    formats = score_formats(rounding, problem.scale, problem.q.shape[1])
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
        seen.append((sink, sink_error(forwards, sink, num=NATURAL)))
    if not seen:
        return Row({}, None, GradientCounts(0, 0, 0))
    blocks = math.ceil(kv_len / (rounding.block_n or 1))
    total = sum((s.exp() for s, _ in seen), zero)
    lse, most = total.ln(), max(s for s, _ in seen)
    row = [BoundedKey(s, error, zero) for s, error in seen]
    factor = log_sum_exp_factor(forwards, len(seen) + 2 * blocks, blocks, row, num=NATURAL)
    of_lse = log_sum_exp_tolerance(
        *(forwards, factor.ln(), lse - most, most, max(error for _, error in seen)), num=NATURAL
    )

    def of_weight(s: Decimal, error: Decimal) -> Decimal:
        return Decimal(recomputed_error(unit, exponential, s, lse, error, of_lse, num=NATURAL))

    keys = {
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
    return Row(keys, of_sink, counts)


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
    """Which bounds are not as the Spec has them, for formats without a smallest number. below: for
    formats in which much is below the normal numbers, of the code's own weights and slopes."""
    rounding = coarse_below(rounding) if below else endless(rounding, weights=True)
    p = units(rounding, problem.kept)
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
            row = rows[i]
            keys = row.keys, row.by_key[j]
            arguments = p, row.counts, reaches[i], d_ls[i], *keys, Decimal(float(other))
            return score_gradient_term(*arguments, num=NATURAL)

        def sum_of(
            count: int, scale: float, terms: list[GradientTerm], rows: int | None
        ) -> Decimal:
            """rows: how many terms a tile has."""
            factor = Decimal(scale)
            arguments = factor, max(Decimal(1), abs(factor)), terms
            if rounding.gradient_rows is None:
                return Decimal(gradient_error(p, count + 3, stores, *arguments, num=NATURAL))
            tiles = math.ceil(count / (rows or 1))
            return Decimal(
                tiled_gradient_error(p, count + 3, stores, tiles, *arguments, num=NATURAL)
            )

        pairs = [(i, j) for i in range(q_len) for j in rows[i].by_key]
        checks: list[tuple[str, tuple[int, ...], torch.Tensor, Decimal]] = [
            ("dS", (i, j), bounds.scores.error, error_of(i, rows[i].by_key[j])) for i, j in pairs
        ]
        checks += [
            ("sink", (i,), bounds.sinks.error, error_of(i, row.sink))
            for i, row in enumerate(rows)
            if bounds.sinks is not None and row.sink is not None
        ]
        t = problem.q.shape[1] - 1
        for i in range(q_len):
            terms = [term(i, j, problem.k[j, t]) for j in rows[i].by_key]
            whole = sum_of(kv_len, problem.scale, terms, rounding.block_n)
            checks.append(("dQ", (i, t), bounds.query.error, whole))
        for j in range(kv_len):
            by_query = [i for i in range(q_len) if j in rows[i].by_key]
            terms = [term(i, j, problem.q[i, t]) for i in by_query]
            whole = sum_of(q_len, problem.scale, terms, rounding.gradient_rows)
            checks.append(("dK", (j, t), bounds.key.error, whole))
            terms = [
                weight_term(p, rows[i].by_key[j], Decimal(float(problem.d_o[i, 0])), num=NATURAL)
                for i in by_query
            ]
            whole = sum_of(q_len, 1.0, terms, rounding.gradient_rows)
            checks.append(("dV", (j, 0), bounds.value.error, whole))
        yield from (wrong for check in checks if (wrong := compare(*check)) is not None)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_gradients(seed: int, name: str) -> None:
    assert list(wrong_gradients(Problem.draw(seed), ROUNDING_MODELS[name])) == []


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(sorted(ROUNDING_MODELS)))
def test_drawn_gradients_below_the_normal_numbers(seed: int, name: str) -> None:
    rounding = ROUNDING_MODELS[name]
    assert list(wrong_gradients(Problem.draw(seed), rounding, below=True)) == []


def wrong_weights(seed: int, code: ModuleType = gradient_tolerance) -> Iterator[str]:
    """Which errors of weights that are computed again are not as the Spec has them."""
    rng = np.random.default_rng(seed)
    unit, exponential = 2.0 ** -rng.integers(5, 25), 2.0 ** -rng.integers(5, 25)
    s, lse, of_score, of_lse = rng.normal(size=2).tolist() + (rng.random(2) / 4).tolist()
    numbers = (torch.tensor(x, dtype=torch.float64) for x in (s, lse, of_score, of_lse))
    found = float(code._recomputed_error(unit, exponential, *numbers))
    with localcontext(digits()):
        arguments = (Decimal(float(x)) for x in (unit, exponential, s, lse, of_score, of_lse))
        whole = recomputed_error(*arguments, num=NATURAL)
    if abs(difference(found, whole)) > CLOSE * float(whole):
        yield f"{found} for {float(whole)}"


def wrong_slopes(seed: int, code: ModuleType = gradient_tolerance) -> Iterator[str]:
    """Which errors of softcap's slope are not as the Spec has them."""
    rng = np.random.default_rng(seed)
    unit, tiny = (2.0 ** -rng.integers(5, 25) for _ in range(2))
    tanh, of_tanh = rng.uniform(-1, 1), rng.uniform(0, 2)
    numbers = (torch.tensor(x, dtype=torch.float64) for x in (tanh, of_tanh))
    found = float(code._slope_error(unit, tiny, *numbers))
    with localcontext(digits()):
        arguments = (Decimal(float(x)) for x in (unit, tiny, tanh, of_tanh))
        whole = Decimal(softcap_slope_error(*arguments, num=NATURAL))
    if abs(difference(found, whole)) > CLOSE * float(whole):
        yield f"{found} for {float(whole)}"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_slopes(seed: int) -> None:
    assert list(wrong_slopes(seed)) == []


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_weights(seed: int) -> None:
    assert list(wrong_weights(seed)) == []


def wrong_totals(seed: int, code: ModuleType = gradient_tolerance) -> Iterator[str]:
    """Which sums of gradients, of a bias that queries share and of heads that share a key, are not
    as the Spec has them."""
    rng = np.random.default_rng(seed)
    q_len, kv_len, group = (int(rng.integers(1, 5)) for _ in range(3))
    rounding = coarse_below(RoundingModel.flash("bfloat16"))
    tiny, output_tiny = (
        Decimal(x) for x in (rounding.accumulator.smallest_normal, rounding.output.underflow(False))
    )
    accumulation, output = Decimal(rounding.accumulation_unit), Decimal(rounding.output.unit)
    q, d_o = (torch.tensor(rng.normal(size=(1, group, q_len, 3))) for _ in range(2))
    k, v = (torch.tensor(rng.normal(size=(1, 1, kv_len, 3))) for _ in range(2))
    scored = code.Scored(0.5)
    bounds = code.gradient_bounds(q, k, v, d_o, None, scored, rounding)
    numbers = torch.tensor(rng.normal(size=q_len)).view(-1, 1)
    summed = bounds.scores.sum(numbers, [2], rounding)
    heads = [
        code.gradient_bounds(
            *(q[:, [h]], k, v, d_o[:, [h]], None, scored, rounding), q_len=group * q_len
        )
        for h in range(group)
    ]

    def total(
        errors: torch.Tensor,
        sizes: torch.Tensor,
        others: torch.Tensor,
        count: int,
        stored: Decimal,
        tiny: Decimal,
        stored_tiny: Decimal,
    ) -> Decimal:
        columns = (exact(x.flatten().numpy()) for x in (sizes, errors, others))
        terms = [GradientTerm(*term) for term in zip(*columns, strict=True)]
        formats = accumulation, stored, tiny, stored_tiny
        return Decimal(total_error(*formats, count, terms, num=NATURAL))

    with localcontext(digits()):
        scores, zero = bounds.scores, Decimal(0)
        sums = scores.error[0, 0, :, 0], scores.size[0, 0, :, 0], numbers
        whole = total(*sums, q_len + 3, zero, tiny, zero)
        checks = [(summed.error[0, 0, 0, 0], whole)]
        if group > 1:
            errors, sizes = (
                torch.stack([getattr(head.key, name)[0, 0, 0, 0] for head in heads])
                for name in ("error", "size")
            )
            ones = torch.ones(group).double()
            # The numbers are added as they are.
            whole = total(errors, sizes, ones, group, output, zero, output_tiny)
            checks.append((bounds.key.error[0, 0, 0, 0], whole))
    for found, whole in checks:
        if abs(difference(float(found), whole)) > CLOSE * float(whole):
            yield f"{float(found)} for {float(whole)}"


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1))
def test_drawn_totals(seed: int) -> None:
    assert list(wrong_totals(seed)) == []


def test_roundings_in_a_row() -> None:
    for count, unit in ((1, 2.0**-24), (300, 2.0**-10), (2**23, 2.0**-24)):
        with localcontext(digits()):
            whole = gamma(count, Decimal(unit), num=NATURAL)
        found = gradient_tolerance._gamma(float(count), unit)
        assert abs(difference(found, whole)) <= CLOSE * float(whole)
        assert gradient_tolerance._gamma(torch.tensor(float(count)).double(), unit) == found
    assert gradient_tolerance._gamma(2.0**24, 2.0**-24) > 1e20


# A line of the code, and the line that a mistake would make of it.
MUTANTS = {
    "products that are added exactly": (
        "_gamma(q.shape[-1] + 1.0, rounding.accumulation_unit)",
        "_gamma(1.0, rounding.accumulation_unit)",
    ),
    "a scale that is exact": ("_SCALE_ROUNDINGS = 3", "_SCALE_ROUNDINGS = 0"),
    "scores that are not stored": ("off = off + stored * (s.abs() + off)", "off = off + 0 * (off)"),
    "scores of operands that are not stored": (
        "relative = _compose(relative, operands)",
        "relative = _compose(relative, 0.0)",
    ),
    "softcap that is exact": ("_SOFTCAP_ROUNDINGS = 8", "_SOFTCAP_ROUNDINGS = 0"),
    "a slope of an exact tanh": (
        "(2 * tanh.abs() + of_tanh) * of_tanh + 2 * unit",
        "2 * unit + 0 * of_tanh",
    ),
    "a sum that is not rounded": ("_SUM_ROUNDINGS = 2", "_SUM_ROUNDINGS = 1"),
    "a sink that is exact": ("_power(_SCORE_ROUNDINGS, u) * finite", "0.0 * finite"),
    "exact differences in the log-sum-exp": (
        "errors + u * (below + errors + largest)",
        "errors",
    ),
    "a log-sum-exp that is not rescaled": ("- (1 + blocks) * math.log1p", "- math.log1p"),
    "a log-sum-exp that is added exactly": (
        "_gamma(keys + 2 * blocks + 1, u)",
        "_gamma(0 * keys, u)",
    ),
    "a log-sum-exp of weights that are not stored": (
        "added_up = added_up + rounding.weights.unit\n",
        "",
    ),
    "an exact logarithm": ("_LSE_ROUNDINGS = 4", "_LSE_ROUNDINGS = 0"),
    "a weight from one rounding": ("_gamma(3, unit) * sizes", "_gamma(1, unit) * sizes"),
    "an exponential that is exact": (
        "return _compose(_expm1(exponent), exponential)",
        "return _expm1(exponent)",
    ),
    "an exact log-sum-exp": (
        "exponent = of_score + of_lse + _gamma",
        "exponent = of_score + _gamma",
    ),
    "a mean of exact weights": (
        "_compose(off, weight_unit, sums)",
        "_compose(0 * off, weight_unit, sums)",
    ),
    "a mean of weights that are not stored": (
        "_compose(off, weight_unit, sums)",
        "_compose(off, sums)",
    ),
    "a mean that is summed exactly": (
        "_compose(off, weight_unit, sums)",
        "_compose(off, weight_unit)",
    ),
    "an output that is not stored": (
        "score_unit, rounding.output.unit, _power",
        "score_unit, _power",
    ),
    "an output that is not rescaled": (
        "rounding.output.unit, _power(-row.blocks, -exponential)",
        "rounding.output.unit",
    ),
    "an exact mean": (
        "of_terms + of_product(kept) + of_delta",
        "of_terms + of_product(kept) + 0 * of_delta",
    ),
    "dP that is not stored": (
        "_compose(_gamma(value_dim + 2, ua), by_kept, score_unit) * products",
        "_compose(_gamma(value_dim + 2, ua), by_kept) * products",
    ),
    "a factor of dropout that is exact": (
        "_compose(_gamma(value_dim + 2, ua), by_kept, score_unit) * products",
        "_compose(_gamma(value_dim + 2, ua), score_unit) * products",
    ),
    "an exact difference": (
        "    of_inner = of_terms + _gamma(3, u) * (size + of_terms)\n\n",
        "    of_inner = of_terms\n\n",
    ),
    "an exact product with G": ("early_unit, _gamma(2, u))", "early_unit)"),
    "weights that are stored late": ("errors, early_unit, _gamma(2, u)", "errors, _gamma(2, u)"),
    "an error of G that no weight multiplies": (
        "_gamma(2, u)) * most + error)",
        "_gamma(2, u)) * exact.abs() + error)",
    ),
    "an exact slope": ("of_x = of_x + grad_s.abs() * row.slope_error", "of_x = of_x"),
    "dS that is not stored": (
        "of_x = of_x + weight_unit * (grad_x.abs() + of_x) + weight_tiny",
        "of_x = of_x + weight_tiny",
    ),
    "a square of tanh that does not underflow": ("return most + 2 * tiny", "return most"),
    "dS that loses nothing where it is stored": ("of_x) + weight_tiny * seen_keys", "of_x)"),
    "weights of D that lose nothing": (
        "* (1 + weight_unit) + weight_tiny\n        lost",
        "\n        lost",
    ),
    "an output that loses nothing": (
        "output_tiny = underflow(rounding.output)",
        "output_tiny = 0 * underflow(rounding.output)",
    ),
    "a quotient that does not underflow": ("_QUOTIENT_ROUNDINGS = 6", "_QUOTIENT_ROUNDINGS = 0"),
    "dP that loses nothing where it is stored": (
        "return lost + underflow(rounding.scores)",
        "return lost",
    ),
    "products of dP that do not underflow": (
        "products_tiny = (value_dim + 2)",
        "products_tiny = 0",
    ),
    "early weights that lose nothing": (
        "tiny * (1 + early_unit) + early_tiny",
        "tiny * (1 + early_unit)",
    ),
    "weights that do not underflow": (
        "tiny * (1 + early_unit) + early_tiny",
        "early_tiny",
    ),
    "products with G that do not underflow": ("_gamma(2, u)) * (2 * tiny)", "_gamma(2, u)) * 0.0"),
    "a product with the slope that does not underflow": (" + of_times * seen_keys", ""),
    "weights of dV that lose nothing": (
        "* (1 + weight_unit) + weight_tiny\n    of_v",
        "* (1 + weight_unit)\n    of_v",
    ),
    "an operand that is stored once": (
        "stores * underflow(rounding.operands)",
        "underflow(rounding.operands)",
    ),
    "a scale that no loss meets": ("* max(1.0, abs(factor))", ""),
    "losses of exact sizes": ("(sizes + error).sum(-1, True)", "sizes.sum(-1, True)"),
    "tiles of which one loses something": ("+ 1 + tiles)", "+ 1)"),
    "tiles that lose nothing where they are stored": ("2 * tiles * output_tiny", "0.0"),
    "products of sums that do not underflow": ("+ (terms + 3) * tiny", ""),
    "heads that lose nothing": (", others_tiny=underflow(rounding.output)", ""),
    "a total whose products do not underflow": ("count + 3, unit, tiny=tiny)", "count + 3, unit)"),
    "weights of dV that are not stored": (
        "_compose(off, early_unit, by_kept, weight_unit)",
        "_compose(off, early_unit, by_kept)",
    ),
    "tiles that are not stored": ("_power(tiles, rounding.output.unit)", "0.0"),
    "tiles that are stored once": (
        "_power(tiles, rounding.output.unit)",
        "_power(min(tiles, 1), rounding.output.unit)",
    ),
    "tiles of keys for those of queries": (
        "row.blocks, -(-members // rounding.gradient_rows)",
        "row.blocks, row.blocks",
    ),
    "operands that are not stored": ("_gamma(3, u), operands, _power", "_gamma(3, u), 0.0, _power"),
    "a sum that is exact": ("_gamma(terms + 3, ua), _gamma", "0.0, _gamma"),
    "heads that are not stored": (
        "arguments = error, x.size, group, ua, rounding.output.unit",
        "arguments = error, x.size, group, ua, 0.0",
    ),
    "a total that is exact": (
        "_compose(stored, summed) * (sizes",
        "stored * (sizes",
    ),
    "sizes without their errors": ("relative * (all_sizes + errors)", "relative * all_sizes"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_wrong_bound_of_gradients_disagrees(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = change_code(*MUTANTS[name], monkeypatch, gradient_tolerance)
    checks = wrong_weights, wrong_totals, wrong_slopes
    some = [one for seed in range(6) for one in checks if any(one(seed, module))]
    assert some or any(
        any(wrong_gradients(Problem.draw(seed), rounding, module, below=below))
        for seed in range(6)
        for rounding in ROUNDING_MODELS.values()
        for below in (False, True)
    )
