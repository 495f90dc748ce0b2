"""The tolerance of one element of a vector, with its parts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.conformance.tolerances import tolerance
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.tolerance import Array, Explained
from bridge.pages.worked import inputs as given
from bridge.pages.worked.shown import Cells, show
from bridge.source.excerpt import SourceError
from bridge.vectors.model.attention import AttentionVector, Family

# The dtypes of the inputs, each with the rounding model of a flash kernel of block_n keys a tile.
DTYPES = ("float32", "float16", "bfloat16")
PARTS = ("shared", "stored", "sums", "result")


@dataclass(frozen=True)
class WorkedTolerance:
    """An element of the output of a query, for a flash kernel in each of three dtypes."""

    vector: AttentionVector
    query: int
    column: int
    block_n: int

    def by_key(self, dtype: str) -> Cells:
        """By key that the query sees: |v − o|, and the bounds ε, P and e."""
        found, v = self._explain(dtype), self.vector
        output = float(given.output(v, self.query)[self.column])
        return [
            [
                str(j),
                number(abs(float(v.v[j][self.column]) - output)),
                *(number(part[self.query, j]) for part in (found.errors, found.share)),
                number(found.rounding[self.query, j]),
            ]
            for j in range(v.kv_len)
            if v.visible(self.query, j)
        ]

    def parts(self, dtype: str) -> list[float]:
        """The terms of the sections 2 to 5. Raises SourceError unless they add up to the
        tolerance."""
        found = [
            float(getattr(self._explain(dtype).terms, name)[self.query, self.column])
            for name in PARTS
        ]
        whole = self.tolerance(dtype)
        # The factor for the rounding of computing them is 1 + 2⁻²⁰.
        if not math.isclose(sum(found), whole, rel_tol=2e-6):
            raise SourceError(f"{self.vector.id}: the parts do not add up to its tolerance")
        return found

    def by_dtype(self) -> Cells:
        """By dtype: the terms, and the tolerance."""
        return [
            [dtype, *map(number, self.parts(dtype)), number(self.tolerance(dtype))]
            for dtype in DTYPES
        ]

    def tolerance(self, dtype: str) -> float:
        """The largest error that the element may have against the output that Lean computed."""
        found = tolerance.attention_tolerance(*self._arrays(), **self._options(dtype))
        return float(found[self.query, self.column])

    @property
    def shown_output(self) -> str:
        """The element, as Lean computed it."""
        exact = given.output(self.vector, self.query)[self.column]
        return f"{show(exact)} ≈ {number(float(exact))}"

    @property
    def num_keys(self) -> int:
        return sum(self.vector.visible(self.query, j) for j in range(self.vector.kv_len))

    @property
    def blocks(self) -> int:
        return -(-self.vector.kv_len // self.block_n)

    def _explain(self, dtype: str) -> Explained:
        return tolerance.explain(*self._arrays(), **self._options(dtype))

    def _arrays(self) -> tuple[Array, Array, Array]:
        v = self.vector
        q, k, values = (np.array(x, dtype=np.float64) for x in (v.q, v.k, v.v))
        return q, k, values

    def _options(self, dtype: str) -> dict[str, Any]:
        v = self.vector
        mask = [[v.visible(i, j) for j in range(v.kv_len)] for i in range(v.q_len)]
        rounding = RoundingModel.flash(dtype, block_n=self.block_n)
        return {"scale": v.natural_scale, "mask": np.array(mask), "rounding": rounding}


def worked_tolerance(
    family: Family, vector: str, query: int, column: int, block_n: int
) -> WorkedTolerance:
    """An element to be worked. Raises SourceError if there is no such vector or query."""
    found = given.find_attention(family, vector)
    given.output(found, query)
    return WorkedTolerance(found, query, column, block_n)


def number(x: float) -> str:
    """A number to three digits; small ones as 1.2·10⁻³."""
    text = f"{x:.3g}" if x == 0 or abs(x) >= 1e-2 else f"{x:.2e}"
    digits, _, exponent = text.partition("e")
    digits = digits.replace("-", "−")
    if not exponent:
        return digits
    power = str(int(exponent)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits}·10{power}"
