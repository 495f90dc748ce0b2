"""How far the states of a cache that changes may be from the exact ones.

The states (m, l, o) of a `CacheVector` come to no attention that `tolerance` knows: a deletion
subtracts, and leaves the rounding of the larger sum. So the bound goes along with the changes: an
error is rescaled with its number, and each step adds its own roundings. With u half the distance of
1 to the next number, a weight exp(s − m) of scores that are integers times ln 2, both rounded (2u
each: ln 2, and the product), and whose difference is rounded too, is known to

    ε(s, m) = 4u + u·ln 2·(2|s| + 2|m| + |s − m|) + ν

of itself, where `torch.exp` may add the 4u; a product or sum adds u of itself. A weight, product,
sum or difference below the normal numbers is off by the smallest of these, ν, at most. Products of two
errors are below 1 % of this for the scores of the vectors, and 2 % more are allowed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from bridge.conformance.tolerances.rounding_model import Format
from bridge.vectors.model.attention import Exact
from bridge.vectors.model.operations import CacheVector, Key
from pyimpl.internal.implements import implements

_EXP = 4.0
_SECOND_ORDER = 1.02


def _weight(s: int | None, m: int | None) -> float:
    return 0.0 if s is None or m is None else 2.0 ** (s - m)


@dataclass
class _Bounded:
    """A state of the columns l, o₀, o₁, … as exact numbers, with bounds of the errors of each."""

    form: Format
    m: int | None
    columns: list[float]
    errors: list[float]

    @implements("Attention.Spec.weightError")
    def _inexact(self, s: int | None, m: int | None) -> float:
        if s is None or m is None:
            return 0.0
        size = 2 * abs(s) + 2 * abs(m) + abs(s - m)
        return self.form.unit * (_EXP + math.log(2.0) * size) + self.form.smallest_normal

    @implements("Attention.Spec.BoundedColumn.append")
    def step(self, key: Key) -> None:
        scores = [s for s in (self.m, key.score) if s is not None]
        m = max(scores, default=None)
        alpha, p = _weight(self.m, m), _weight(key.score, m)
        twice, tiny = 2 * self.form.unit, self.form.smallest_normal
        off_alpha, off_p = self._inexact(self.m, m), self._inexact(key.score, m)
        for c, x in enumerate((1, *key.value)):
            size, more = abs(self.columns[c]) + self.errors[c], abs(float(x))
            self.errors[c] = alpha * self.errors[c] + _SECOND_ORDER * (
                (off_alpha + twice) * (alpha * size)
                + (off_p + twice) * (p * more)
                + tiny * (size + more + 3.0)
            )
            self.columns[c] = alpha * self.columns[c] + p * float(x)
        self.m = m

    @implements("Attention.Spec.BoundedColumn.delete")
    def delete(self, key: Key) -> None:
        p, off = _weight(key.score, self.m), self._inexact(key.score, self.m)
        for c, x in enumerate((1, *key.value)):
            held, less = abs(self.columns[c]) + self.errors[c], abs(float(x))
            self.errors[c] += _SECOND_ORDER * (
                self.form.unit * held
                + (off + 2 * self.form.unit) * (p * less)
                + self.form.smallest_normal * (less + 2.0)
            )
            self.columns[c] -= p * float(x)


def tolerances(vector: CacheVector, form: Format) -> list[list[float]]:
    """For the state at the beginning and after each change, how far l and each column of o may be
    from the exact ones, computed as `Attention.Spec.Online.edit` and `.slide` do it, in this
    format."""
    state = _Bounded(form, None, [0.0] * (1 + vector.value_dim), [0.0] * (1 + vector.value_dim))
    for key in vector.keys:
        state.step(key)
    held, found = list(vector.keys), [list(state.errors)]
    for edit in vector.edits:
        if edit.kind in ("delete", "replace"):
            state.delete(held[edit.index])
        if edit.key is not None:
            state.step(edit.key)
        if edit.kind == "slide" and len(held) + 1 > edit.window:
            state.delete([*held, *([edit.key] if edit.key else [])][0])
        held = edit.apply(held)
        found.append(list(state.errors))
    return found


# A function's state: m, −∞ for none, in base e; l; the columns of o.
Computed = tuple[float, float, Sequence[float]]


def wrong_states(vector: CacheVector, states: Sequence[Computed], form: Format) -> Iterable[str]:
    """One sentence for each number of the states that is further from the exact one than it may be.

    `states`: at the beginning and after each change, computed in the format `form`; the maximum is
    a score, and has its rounding alone. Raises ValueError for a wrong number of states.
    """
    allowed = tolerances(vector, form)
    for n, (state, bounds, exact) in enumerate(zip(states, allowed, vector.expected, strict=True)):
        m, l, o = state
        place = "at the beginning" if n == 0 else f"after change {n}"
        right = -math.inf if exact.m is None else math.log(2.0) * exact.m
        if not (m == right or abs(m - right) <= 2 * form.unit * abs(right)):
            yield f"{vector.id}: m {place} is {m}, should be {right}"
        numbers: list[tuple[str, float, Exact]] = [("l", l, exact.l)]
        numbers += [(f"o[{c}]", *pair) for c, pair in enumerate(zip(o, exact.o, strict=True))]
        for (name, got, want), bound in zip(numbers, bounds, strict=True):
            if not math.isfinite(got) or abs(Fraction(got) - Fraction(want)) > bound:
                yield (
                    f"{vector.id}: {name} {place} is {got}, should be {float(want)}, "
                    f"and may be {bound:.3g} away"
                )
