"""Tolerances as the Spec defines them, with 50 digits, beside those of the code."""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st
from numpy.typing import NDArray

from bridge.conformance.tolerances import row_average, row_weights, tolerance
from bridge.conformance.tolerances.rounding_model import FLOAT64, FORMATS, Format, RoundingModel
from bridge.conformance.tolerances.tolerance import Array, Explained
from bridge.spec.core import Arithmetic
from bridge.spec.score_tolerance import (
    ScoreFormats,
    magnitude,
    operand_underflow,
    score_error,
    underflow_formats,
)
from bridge.spec.tolerance import (
    BoundedKey,
    Denominator,
    Precision,
    bounded_weights,
    tolerance_terms,
)
from bridge.spec.underflow_tolerance import (
    bounded_key_flushed,
    output_tolerance,
    underflow_error,
    underflow_left,
    underflow_log_sum_exp_factor,
    underflow_log_sum_exp_tolerance,
)
from bridge.vectors.model.attention import AttentionVector, Family

NATURAL = Arithmetic(Decimal.exp, Decimal, Decimal)
TERMS = ("shared", "stored", "sums", "result")
# The code does not count keys with a smaller share of the weights among the values reached.
NEGLIGIBLE = 2.0**-200
# The largest loss of evaluating a formula in float64, as a share of the whole.
CLOSE = 2.0**-40


# The rounding models of the definition: weights that are not stored again, or a denominator of
# which it is known whether it adds them as they were or as they are stored.
ROUNDING_MODELS = {
    "float64": RoundingModel.float64(4),
    "float32": RoundingModel.float32(),
    "float32 in tiles": RoundingModel.float32(16),
    "widened bfloat16": RoundingModel.widened("bfloat16", block_n=8),
    "flash": RoundingModel.flash("bfloat16", block_n=16, denominator="unrounded", truncating=True),
    "flash, rounded": RoundingModel.flash("bfloat16", block_n=16, denominator="rounded"),
    "float16, rounded": RoundingModel.flash("float16", denominator="rounded", truncating=True),
    "coarse, rounded": replace(
        RoundingModel.flash("bfloat16", block_n=16, denominator="rounded"),
        weights=replace(FORMATS["bfloat16"], unit=0.9),
        scores=FORMATS["bfloat16"],
    ),
    "few numbers": RoundingModel.flash("float16", block_n=3, denominator="unrounded"),
    "few numbers, rounded": RoundingModel.flash("float16", block_n=3, denominator="rounded"),
    "sdpa-flash": RoundingModel.sdpa_flash("float16"),
    "sdpa-math-reduced": RoundingModel.sdpa_math("float16", reduced=True),
}
# Of a format for weights whose smallest numbers are not small.
for _name in ("few numbers", "few numbers, rounded"):
    _few = replace(FORMATS["float16"], smallest_normal=2.0**-4, smallest_subnormal=2.0**-8)
    ROUNDING_MODELS[_name] = replace(ROUNDING_MODELS[_name], weights=_few, exp_error=2.0**14)
# Of one in which storing takes more than there is.
ROUNDING_MODELS["hardly a number"] = replace(
    ROUNDING_MODELS["few numbers"],
    weights=replace(FORMATS["float16"], unit=0.9, smallest_normal=0.5, smallest_subnormal=0.25),
    scores=FORMATS["bfloat16"],
)
# Of an accumulator whose smallest numbers are not small.
FEW = replace(FORMATS["float32"], smallest_normal=2.0**-16)
ROUNDING_MODELS |= {
    "few results": replace(ROUNDING_MODELS["flash"], output=_few),
    "few small numbers": replace(ROUNDING_MODELS["float32 in tiles"], accumulator=FEW),
    "few small numbers, rounded": replace(ROUNDING_MODELS["flash, rounded"], accumulator=FEW),
}
# Vectors of each family.
SOME = 4


def digits(more: float = 0.0) -> Context:
    return Context(prec=50 + int(more), Emax=MAX_EMAX, Emin=MIN_EMIN)


@dataclass(frozen=True)
class Inputs:
    """One attention problem. q: [q_len, head_dim]; k: [kv_len, head_dim]; v: [kv_len, value_dim];
    mask: [q_len, kv_len]."""

    q: Array
    k: Array
    v: Array
    scale: float
    mask: NDArray[np.bool_]

    @classmethod
    def of(cls, vector: AttentionVector) -> Inputs:
        q, k, v = (np.array(x, dtype=np.float64) for x in (vector.q, vector.k, vector.v))
        seen = [[vector.visible(i, j) for j in range(len(k))] for i in range(len(q))]
        return cls(q, k, v, vector.natural_scale, np.array(seen))

    def elements(self) -> list[tuple[int, int]]:
        """Query and column: the first and the last element of the rows that see a key."""
        seen = np.flatnonzero(self.mask.any(-1)).tolist()
        return sorted({(seen[0], 0), (seen[-1], self.v.shape[1] - 1)}) if seen else []

    def visible_keys(self, i: int) -> list[int]:
        """The keys that query i sees."""
        return [int(j) for j in np.flatnonzero(self.mask[i])]

    def explain_by(
        self, rounding: RoundingModel, explain: Callable[..., Explained] = tolerance.explain
    ) -> Explained:
        options = {"scale": self.scale, "mask": self.mask, "rounding": rounding}
        return explain(self.q, self.k, self.v, **options)

    def tolerance(self, rounding: RoundingModel) -> Array:
        options = {"scale": self.scale, "mask": self.mask, "rounding": rounding}
        return tolerance.attention_tolerance(self.q, self.k, self.v, **options)


def endless(
    rounding: RoundingModel, weights: bool = False, accumulator: bool = True
) -> RoundingModel:
    """The rounding model with formats that have the same digits and no smallest number: so the
    terms of the tolerance for numbers below the normal ones are 0. Only scaled operands, scores,
    weights and results are stored as they are, unless weights are divided by their sum first, of
    which the Spec knows nothing. weights: these formats are changed, too, as the bounds of
    gradients and tangents know nothing of them. accumulator: so is that of the accumulator, of
    whose smallest numbers only the bounds of outputs know."""

    def wide(form: Format | None) -> Format | None:
        return form and replace(form, smallest_normal=0.0, smallest_subnormal=0.0)

    names = ["accumulator"] if accumulator else []
    if weights or rounding.weights_normalized:
        names += ["weights"]
    # A format that is the accumulator's stays that.
    of_scores = ("operands", "scores")
    same = [n for n in of_scores if getattr(rounding, n) == rounding.accumulator]
    names += ["output", *of_scores] if weights else same if accumulator else []
    return replace(rounding, **{name: wide(getattr(rounding, name)) for name in names})


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


def precision(rounding: RoundingModel) -> Precision:
    """The roundings of the rounding model, in the Spec's terms. A denominator that may be of either
    weights is none of the Spec's, and counts as one of unrounded ones here."""
    unit = Decimal(rounding.accumulator.unit)
    weights = rounding.weights
    rounded = rounding.denominator == "rounded"
    return Precision(
        unit=unit,
        accumulation=Decimal(rounding.accumulation_unit),
        exponential=Decimal(rounding.exp_error) * unit,
        stored=Decimal(0 if weights is None else weights.unit),
        stored_tiny=Decimal(0 if weights is None else weights.underflow(rounding.flush_to_zero)),
        denominator=Denominator.ROUNDED if rounded else Denominator.UNROUNDED,
    )


def stored_formats(rounding: RoundingModel, scale: float) -> ScoreFormats:
    """In which formats of their own the rounding model stores scaled operands and scores."""
    operands, scores = rounding.operands, rounding.scores
    stored = operands is not None and operands != rounding.accumulator
    flush = rounding.flush_to_zero
    return ScoreFormats(
        operands=Decimal(operands.unit if operands is not None and stored else 0),
        roundings=0 if operands is None else rounding.operand_roundings,
        scores=Decimal(0 if scores is None else scores.unit),
        operands_tiny=Decimal(0 if operands is None else operands.underflow(flush)),
        reach=max(Decimal(1), abs(Decimal(scale)).sqrt()),
        scores_tiny=Decimal(0 if scores is None else scores.underflow(flush)),
    )


def score_formats(
    rounding: RoundingModel, scale: float, head_dim: int, cap: float | None = None
) -> ScoreFormats:
    """The same with underflow in the accumulator."""
    formats = stored_formats(rounding, scale)
    smallest = Decimal(rounding.accumulator.smallest_normal)
    with localcontext(digits()):
        return underflow_formats(
            *(precision(rounding), formats, smallest, head_dim - 1, head_dim),
            *(Decimal(scale), Decimal(cap or 0)),
            num=NATURAL,
        )


@dataclass(frozen=True)
class BySpec:
    """The terms of one element by the Spec, their sum, and ε of each key that is seen."""

    terms: dict[str, Decimal]
    total: Decimal
    errors: dict[int, Decimal]


def by_spec(inputs: Inputs, rounding: RoundingModel, found: Explained, i: int, c: int) -> BySpec:
    """Element c of row i, of the same scores and bounds δ as in `found`."""
    kv_len = inputs.k.shape[0]
    row = [
        BoundedKey(
            score=Decimal(float(found.scores[i, j])) if inputs.mask[i, j] else None,
            error=Decimal(float(found.score_errors[i, j])),
            value=Decimal(float(inputs.v[j, c])),
        )
        for j in range(kv_len)
    ]
    rescalings = math.ceil(kv_len / (rounding.block_n or 1))
    roundings = len(inputs.visible_keys(i)) + 2 * rescalings
    p = precision(rounding)
    # |v − o|, perhaps a difference of nearly equal numbers, counts up to e^(2 ε) times.
    with localcontext(digits(min(max_error(inputs, found, i), 1e3))):
        weights = bounded_weights(p, rescalings, row, num=NATURAL)
        exact = tolerance_terms(p, roundings, rescalings, Decimal(NEGLIGIBLE), row, num=NATURAL)
        error = exact.shared + exact.stored + exact.sums
        unit = Decimal(rounding.output.unit)
        smallest = Decimal(rounding.output.underflow(rounding.flush_to_zero))
        counts = roundings, rescalings, Decimal(NEGLIGIBLE), row
        tiny = Decimal(rounding.accumulator.smallest_normal)
        total = output_tolerance(p, tiny, unit, smallest, *counts, num=NATURAL)
        underflow = underflow_error(p, tiny, *counts, num=NATURAL) if tiny else tiny
        terms = {name: getattr(exact, name) for name in TERMS[:3]}
        terms["sums"] += underflow
        terms["result"] = total - error - underflow
        return BySpec(
            terms=terms,
            total=total,
            errors={j: weights[j].factor.ln() for j in inputs.visible_keys(i)},
        )


def max_error(inputs: Inputs, found: Explained, i: int) -> float:
    """The largest ε of a row."""
    return float(found.errors[i][inputs.mask[i]].max())


def loss_of_float64(inputs: Inputs, found: Explained, i: int, c: int) -> float:
    """The largest loss of float64 in a row's |v − o|, with its effect on the whole."""
    amplified = math.exp(2 * min(max_error(inputs, found, i), 300.0))
    n = len(inputs.visible_keys(i))
    size = n * float(found.share[i] @ np.abs(inputs.v[:, c]))
    return amplified * (n + 5) * 4 * FLOAT64.unit * size


def disagreements(
    inputs: Inputs, rounding: RoundingModel, explain: Callable[..., Explained] = tolerance.explain
) -> Iterator[str]:
    """The differences of some elements from the Spec, a sentence each, for a function of this
    rounding model. The terms of `found` may be larger by float64's loss in |v − o|, for which they
    allow, and smaller by nothing."""
    rounding = endless(rounding, accumulator=False)
    found = inputs.explain_by(rounding, explain)
    for i, c in inputs.elements():
        spec = by_spec(inputs, rounding, found, i, c)
        close = CLOSE * float(spec.total)
        for name, exact in spec.terms.items():
            one = float(getattr(found.terms, name)[i, c])
            if not -close <= difference(one, exact) <= close + loss_of_float64(inputs, found, i, c):
                yield f"{name} of row {i}, column {c}: {one} for {float(exact)}"
        for j, exact in spec.errors.items():
            one = float(found.errors[i, j])
            # Where the weight is no normal number of float64, its ε is not known from it.
            if found.share[i, j] > 1e-250 and abs(difference(one, exact)) > CLOSE * one:
                yield f"ε of key {j} for row {i}: {one} for {float(exact)}"


def difference(found: float, exact: Decimal) -> float:
    """The found number less the exact one; ∞ for no number."""
    if not math.isfinite(found):
        return math.inf
    with localcontext(digits()):
        return float(Decimal(found) - exact)


def flushed_error(rounding: RoundingModel, columns: int, error: Decimal) -> Decimal:
    """An error of a score in a row of so many columns, with room for differences that are flushed
    to 0."""
    rescalings = math.ceil(columns / (rounding.block_n or 1))
    tiny, key = Decimal(rounding.accumulator.smallest_normal), BoundedKey(None, error, Decimal(0))
    return bounded_key_flushed(tiny, rescalings, key, num=NATURAL).error


def score_errors(
    inputs: Inputs, rounding: RoundingModel, found: Explained, i: int
) -> dict[int, Decimal]:
    """δ of each key that query i sees, by the Spec."""
    seen = inputs.visible_keys(i)
    largest = max(Decimal(float(found.scores[i, j])) for j in seen)
    d = inputs.q.shape[1]
    q = [Decimal(float(x)) for x in inputs.q[i]]
    p, formats = precision(rounding), score_formats(rounding, inputs.scale, d)
    scale = Decimal(inputs.scale)
    errors = {}
    with localcontext(digits()):
        for j in seen:
            s = Decimal(float(found.scores[i, j]))
            k = [Decimal(float(x)) for x in inputs.k[j]]
            size = magnitude(q, k, d=d, num=NATURAL)
            tiny = operand_underflow(p, formats, d - 1, q, k, d=d, num=NATURAL)
            error = score_error(
                p, formats, d - 1, scale, size, tiny, s, largest - s, num=NATURAL
            )
            errors[j] = flushed_error(rounding, len(inputs.k), error)
    return errors


def wrong_lse(
    inputs: Inputs, rounding: RoundingModel, code: ModuleType = tolerance
) -> Iterator[str]:
    """The log-sum-exps that are not allowed the Spec's tolerance, of the same scores and bounds
    δ, where something is left of a denominator, and which of these are below those of the Spec."""
    p, formats = precision(rounding), score_formats(rounding, inputs.scale, inputs.q.shape[1])
    options = {"scale": inputs.scale, "mask": inputs.mask, "rounding": rounding}
    found = code.lse_tolerance(inputs.q, inputs.k, **options)
    arguments = inputs.q, inputs.k, inputs.mask, inputs.scale, rounding, code.NO_CHANGES
    with np.errstate(all="ignore"):
        rows = code.bound_weights(*arguments, absolute=True)
    d, kv_len = inputs.q.shape[1], inputs.k.shape[0]
    rescalings = math.ceil(kv_len / (rounding.block_n or 1))
    smallest = Decimal(rounding.accumulator.smallest_normal)
    for i, _ in inputs.elements():
        seen = inputs.visible_keys(i)
        scores = {j: Decimal(float(rows.scores[i, j])) for j in seen}
        errors = {j: Decimal(float(rows.score_errors[i, j])) for j in seen}
        row = [
            BoundedKey(scores.get(j), errors.get(j, Decimal(0)), Decimal(0)) for j in range(kv_len)
        ]
        if max(errors.values()) > 100:
            continue
        with localcontext(digits(300)):
            roundings = len(seen) + 2 * rescalings
            if underflow_left(p, smallest, roundings, rescalings, row, num=NATURAL) <= 0:
                continue
            factor = underflow_log_sum_exp_factor(
                p, smallest, roundings, rescalings, row, num=NATURAL
            )
            most = max(scores.values())
            total = sum(((s - most).exp() for s in scores.values()), Decimal(0))
            exact = underflow_log_sum_exp_tolerance(
                *(p, smallest, factor.ln(), total.ln(), most, max(errors.values())), num=NATURAL
            )
            q = [Decimal(float(x)) for x in inputs.q[i]]
            for j, s in scores.items():
                k = [Decimal(float(x)) for x in inputs.k[j]]
                size = magnitude(q, k, d=d, num=NATURAL)
                tiny = operand_underflow(p, formats, d - 1, q, k, d=d, num=NATURAL)
                least = score_error(
                    p, formats, d - 1, Decimal(inputs.scale), size, tiny, s, abs(s), num=NATURAL
                )
                least = flushed_error(rounding, kv_len, least)
                if errors[j] < least * (1 - Decimal(CLOSE)):
                    yield f"δ of key {j} for row {i}: {errors[j]} for {least}"
        one = float(found[i]) / tolerance.EVALUATION
        if abs(difference(one, exact)) > CLOSE * float(exact):
            yield f"row {i}: {one} for {float(exact)}"


def problems(family: Family) -> list[Inputs]:
    found = [
        one
        for v in family.vectors
        for one in ([v] if isinstance(v, AttentionVector) else v.attentions())
    ]
    return [Inputs.of(one) for one in found[:: max(1, len(found) // SOME)]]


@st.composite
def draw_inputs(draw: st.DrawFn) -> Inputs:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q_len, kv_len, head_dim = (draw(st.integers(1, n)) for n in (3, 24, 6))
    spread = draw(st.sampled_from([0.0, 1e-4, 1.0, 30.0, 1e3, 1e4]))
    size = draw(st.sampled_from([1e-6, 1.0, 6e4]))
    return Inputs(
        rng.normal(size=(q_len, head_dim)) * spread,
        rng.normal(size=(kv_len, head_dim)),
        draw(st.sampled_from([0.0, 1.0, 1e3])) + rng.normal(size=(kv_len, 2)) * size,
        draw(st.sampled_from([1.0, math.log(2), 0.125, -3.0])),
        rng.random((q_len, kv_len)) < draw(st.sampled_from([0.2, 0.7, 1.0])),
    )


def change_code(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch, *modules: ModuleType
) -> ModuleType:
    """The code of the last of these modules with one place changed, in it or in those before it,
    which it imports; without any, that of the tolerances of outputs."""
    modules = modules or (row_average, row_weights, tolerance)
    texts = {one: Path(str(one.__file__)).read_text("utf-8") for one in modules}
    assert sum(text.count(old) for text in texts.values()) == 1
    for one, text in texts.items():
        spec = importlib.util.spec_from_loader(one.__name__, loader=None)
        assert spec is not None
        module = importlib.util.module_from_spec(spec)
        # A module that imports the name, as tolerances does averages, finds the changed one.
        monkeypatch.setitem(sys.modules, module.__name__, module)
        # It implements nothing.
        code = text.replace(old, new).replace("@implements(", "@(lambda name: lambda f: f)(")
        exec(compile(code, str(one.__file__), "exec"), module.__dict__)
    return module
