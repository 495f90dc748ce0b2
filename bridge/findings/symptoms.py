"""The symptoms of a failed vector's result, told from the exact numbers.

The exact numbers are those of `bridge.vectors.exact.attention`, computed here from the inputs
alone: neither the vector's own expected numbers are used, nor the float64 arithmetic that judged
the result.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from bridge.conformance.judging.judge import Detail, VectorResult
from bridge.conformance.tolerances.rounding_model import FORMATS
from bridge.errors import MendableError
from bridge.vectors.exact.attention import attention_row, natural_row, visible_keys
from bridge.vectors.exact.gradients import gradients
from bridge.vectors.model.attention import AttentionVector, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention

Number = int | Fraction | Decimal
# Digits of a number that is shown; a fraction that is not longer is shown as it is.
_DIGITS, _LONGEST = 25, 40


class FindingsError(MendableError, ValueError):
    """Results that exact arithmetic does not confirm. The message is one sentence."""


@dataclass(frozen=True)
class Wrong:
    """One number that is too far from the right one, or None of them where there are no
    numbers. what: the symptom, a sentence; part: as in `judge.Element`; row: of all rows of the
    vector, or of a head's gradient; column: None for a log-sum-exp."""

    what: str
    part: str
    row: int
    column: int | None
    expected: Number
    got: float
    tolerance: float


def problems_of(vector: Vector) -> tuple[AttentionVector, ...]:
    """The plain problems of attention that a vector comes to."""
    if isinstance(vector, AttentionVector):
        return (vector,)
    if isinstance(vector, GradientVector):
        return vector.attentions()
    return vector.attentions() if isinstance(vector, ComesToAttention) else ()


def sees_nothing(problem: AttentionVector, i: int) -> bool:
    """Whether nothing is left to query i: no key, and no sink."""
    return not visible_keys(problem, i) and problem.sink is None


def recompute(problem: AttentionVector, i: int) -> tuple[list[Number], Decimal]:
    """Output and log-sum-exp of a query, from the inputs."""
    if problem.model == "natural":
        outputs, lse = natural_row(problem, i)
        return list(outputs), lse
    row = attention_row(problem, i)
    return list(row.output), row.log_sum_exp


def wrong_numbers(result: VectorResult, vector: Vector, dtype: str) -> Iterator[Wrong]:
    """The numbers of a failed vector that are not within their tolerance of the exact ones. Raises
    FindingsError where there is none."""
    detail = result.detail
    if detail is None:
        raise FindingsError(f"{result.id}: failed, and its results are not known.")
    if isinstance(vector, GradientVector):
        found = list(_wrong_gradients(detail, vector))
    else:
        found = list(_wrong_rows(detail, vector, dtype))
    if not found:
        raise FindingsError(
            f"{result.id}: judged as failed in {dtype}, but in exact arithmetic every number is "
            "within its tolerance."
        )
    yield from found


def _wrong_rows(detail: Detail, vector: Vector, dtype: str) -> Iterator[Wrong]:
    rows = [(problem, i) for problem in problems_of(vector) for i in range(problem.q_len)]
    for n, (problem, i) in enumerate(rows):
        outputs, lse = recompute(problem, i)
        got, allowed = detail.got[n], detail.tolerance[n]
        for c, exact in enumerate(outputs):
            if not _within(got[c], exact, allowed[c]):
                what = _wrong_output(problem, i, c, got[c], dtype)
                yield Wrong(what, "output", n, c, exact, got[c], allowed[c])
        if detail.lse_got and not _within(detail.lse_got[n], lse, detail.lse_tolerance[n]):
            what = _wrong_lse(problem, i, detail.lse_got[n])
            yield Wrong(what, "lse", n, None, lse, detail.lse_got[n], detail.lse_tolerance[n])


_BY = {"q": "queries", "k": "keys", "v": "values", "bias": "bias"}


def right_gradients(vector: GradientVector) -> dict[str, list[list[Fraction]]]:
    """By part and row, the gradients for a kernel with weights e^score, to 60 digits."""
    found = {}
    with localcontext(prec=60):
        ln2 = Fraction(Decimal(2).ln())
    each = gradients(vector)
    for name in _BY:
        factor = ln2 if vector.model == "exact" and name in "qk" else Fraction(1)
        for h, rows in enumerate(getattr(each, name)):
            found[f"d{name}[{h}]"] = [[factor * Fraction(x) for x in row] for row in rows]
    return found


def _wrong_gradients(detail: Detail, vector: GradientVector) -> Iterator[Wrong]:
    right = right_gradients(vector)
    n = 0
    while n < len(detail.parts):
        part = detail.parts[n]
        for row, numbers in enumerate(right[part]):
            got, allowed = detail.got[n], detail.tolerance[n]
            n += 1
            for c, exact in enumerate(numbers):
                if not _within(got[c], exact, allowed[c]):
                    what = _wrong_gradient(vector, part, row, got[c])
                    yield Wrong(what, part, row, c, exact, got[c], allowed[c])


def _wrong_gradient(vector: GradientVector, part: str, row: int, got: float) -> str:
    name = part[1 : part.index("[")]
    where = f"The gradient by the {_BY[name]} is"
    if name in ("q", "bias"):
        h = int(part[part.index("[") + 1 : -1])
        sees = any(vector.visible(h, row, j) for j in range(vector.kv_len))
        where = (
            f"The gradient by the {_BY[name]} of a query that sees {'a' if sees else 'no'} key is"
        )
    if math.isnan(got):
        return f"{where} NaN."
    if math.isinf(got):
        return f"{where} infinite."
    return f"{where} further from the exact number than its tolerance."


def _within(got: float, exact: Number, tolerance: float) -> bool:
    if isinstance(exact, Decimal) and not exact.is_finite():
        return got == float(exact)
    if not math.isfinite(got):
        return False
    return math.isinf(tolerance) or abs(Fraction(got) - Fraction(exact)) <= Fraction(tolerance)


def _where(problem: AttentionVector, i: int) -> str:
    return "a query that sees no key" if sees_nothing(problem, i) else "a query that sees a key"


def _wrong_output(problem: AttentionVector, i: int, c: int, got: float, dtype: str) -> str:
    where = f"The output of {_where(problem, i)} is"
    if math.isnan(got):
        return f"{where} NaN."
    if math.isinf(got):
        return f"{where} infinite."
    if not sees_nothing(problem, i):
        return f"{where} further from the exact number than its tolerance."
    column = [Fraction(row[c]) for row in problem.v]
    mean = sum(column, Fraction(0)) / len(column)
    # Weights of 1/n, rounded, times numbers of at most this size, added up.
    slack = (len(column) + 8) * Fraction(FORMATS[dtype].unit) * max(map(abs, column))
    if abs(Fraction(got) - mean) <= slack:
        return f"{where} the mean of all values instead of 0."
    return f"{where} neither 0 nor the mean of all values."


def _wrong_lse(problem: AttentionVector, i: int, got: float) -> str:
    where = f"The log-sum-exp of {_where(problem, i)} is"
    if math.isnan(got):
        return f"{where} NaN."
    if not sees_nothing(problem, i):
        return f"{where} further from the exact number than its tolerance."
    if got == 0:
        return f"{where} 0 instead of −∞."
    return f"{where} {'a finite number' if math.isfinite(got) else '+∞'} instead of −∞."


def general_reason(reason: str) -> str:
    """The reason of a failure without numbers, as a sentence: reasons that differ by sizes or by a
    type of C++ alone are one symptom."""
    sentence = re.sub(r"\[with [^\]]*\]", "", " ".join(reason.split()))
    sentence = re.sub(r"[-+]?\d+(\.\d+)?(e[-+]?\d+)?", "…", sentence)
    # Messages are cut at a length, and so not where their beginnings differ.
    return f"It {sentence[:120].rstrip('. ')}."


def show_number(number: Number) -> str:
    """An exact number as text: a fraction as it is, if it is short; otherwise 25 digits and …."""
    if isinstance(number, Decimal) and not number.is_finite():
        return "−∞" if number < 0 else "∞"
    text = str(Fraction(number))
    if len(text) <= _LONGEST:
        return text
    exact = Fraction(number)
    with localcontext(prec=_DIGITS):
        return f"{Decimal(exact.numerator) / Decimal(exact.denominator)}…"
