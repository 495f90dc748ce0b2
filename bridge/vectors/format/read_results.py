"""From the fields of an entry to results: rows, states, and contradictions to the inputs."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from itertools import chain, islice

from bridge.vectors.format.fields import LARGEST_UNCERTAINTY, Field, dyadic, read_bounded
from bridge.vectors.model.attention import BOUNDS_UNIT, AttentionVector, EnclosedRow, Row, State
from bridge.vectors.model.operations import Key


def enclosed_row(part: Field) -> EnclosedRow:
    """Bounds of the result for one query."""
    output, lse = part["output"], part.data["log_sum_exp"]
    row = EnclosedRow(
        output["lower"].numbers("value_dim", read=int),
        output["upper"].numbers("value_dim", read=int),
        None if lse is None else (int(lse["lower"]), int(lse["upper"])),
    )
    pairs = list(zip(row.lower, row.upper, strict=True))
    if row.masked and any(pair != (0, 0) for pair in pairs):
        raise output.fail("is not 0, but log_sum_exp is null (no key)")
    if any(lo > hi for lo, hi in [*pairs, row.lse_bounds or (0, 0)]):
        raise part.fail("has a lower bound above the upper one")
    if row.uncertainty > LARGEST_UNCERTAINTY:
        raise part.fail("has bounds that are further apart than 2^-60")
    return row


def row(part: Field) -> Row:
    """The exact result for one query."""
    denominator = part["denominator"].read(dyadic)
    bottom = int(part.data["output"]["denominator"])
    numerators = part["output"]["numerators"].numbers("value_dim", read=int)
    if bottom <= 0:
        raise part["output"]["denominator"].fail("is not positive")
    largest = part["max"].read(read_bounded)
    if largest is None:
        if denominator != 0:
            raise part["denominator"].fail("is not 0, but max is null (no key)")
        if any(numerators):
            raise part["output"]["numerators"].fail("are not 0, but max is null (no key)")
        return Row(None, denominator, bottom, numerators)
    if denominator < 1:
        raise part["denominator"].fail("is below 1, but the largest weight alone is 1")
    log = part["log2_sum_exp"].read(read_bounded) if "log2_sum_exp" in part else None
    if log is not None and Fraction(denominator) != Fraction(2) ** (log - largest):
        raise part["log2_sum_exp"].fail("is not the logarithm of denominator, plus max")
    return Row(largest, denominator, bottom, numerators, log)


def key(part: Field) -> Key:
    """A key by its score, with its value."""
    return Key(part["score"].read(read_bounded), part["value"].numbers("value_dim"))


def state(part: Field) -> State:
    """The exact state of one query."""
    m, l = part["m"].read(read_bounded), part["l"].read(dyadic)
    o = part["o"].numbers("value_dim", read=dyadic)
    if m is None and (l != 0 or any(o)):
        raise part.fail("is not 0, but m is null (no key)")
    if l < 0:
        raise part["l"].fail("is negative, but is a sum of weights")
    return State(m, l, o)


def check_plausible(problems: Iterable[AttentionVector], rows: Iterable[Field]) -> None:
    """Refuse rows that contradict the mask of their problem, or outputs beyond every value; rows:
    the fields of those of all problems, in order, or of the states that they are made of."""
    left = iter(rows)
    for problem in problems:
        # Values are exact in bfloat16, hence as floats, which are compared fast.
        largest = Fraction(max(map(abs, map(float, chain.from_iterable(problem.v))), default=0))
        if problem.dropout is not None:
            largest *= problem.dropout.largest
        fields = islice(left, len(problem.expected))
        for i, (result, field) in enumerate(zip(problem.expected, fields, strict=True)):
            outputs, most = ("upper", "log_sum_exp")
            if isinstance(result, Row):
                outputs, most = ("numerators", "max")
            for c, beyond in enumerate(_beyond(result, largest)):
                if beyond:
                    numbers = field["o"] if "o" in field else field["output"][outputs]
                    raise numbers[c].fail(
                        "makes an output larger than every value, of which it is a mean"
                    )
            seen = any(problem.visible(i, j) for j in range(problem.kv_len))
            if result.masked == (seen or problem.sink is not None):
                raise field["m" if "m" in field else most].fail("does not agree with the mask")


def _beyond(row: Row | EnclosedRow, largest: Fraction) -> list[bool]:
    """Whether each output is larger than `largest` for certain: in whole numbers, since there are
    many and fractions take long."""
    top, bottom = largest.numerator, largest.denominator
    if isinstance(row, Row):
        most = top * row.output_denominator
        return [abs(n) * bottom > most for n in row.numerators]
    pairs = list(zip(row.lower, row.upper, strict=True))
    wide = max(hi - lo for lo, hi in [*pairs, row.lse_bounds or (0, 0)])
    most = 2 * BOUNDS_UNIT * top + wide * bottom
    return [abs(lo + hi) * bottom > most for lo, hi in pairs]
