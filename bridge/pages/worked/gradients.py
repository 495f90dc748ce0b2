"""One query of the backward pass, step by step, and its contribution to the gradients."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from bridge.pages.worked import inputs as given
from bridge.pages.worked.shown import Cells, show, show_all
from bridge.source.excerpt import SourceError
from bridge.spec.attention import attention, probabilities, score
from bridge.spec.backward import row_delta, score_gradients, vjp
from bridge.spec.core import EXACT
from bridge.spec.vector import vec_dot
from bridge.vectors.model.attention import Family
from bridge.vectors.model.gradients import GradientVector


@dataclass(frozen=True)
class WorkedGradients:
    """A vector of gradients of one head, without options. Those by queries and keys are divided by
    ln 2, as everywhere in the exact model."""

    vector: GradientVector

    def __post_init__(self) -> None:
        v, lean = self.vector, self.vector.expected
        plain, sizes = self._plain(), self._sizes
        # The slope of a score that nothing but a mask changes is 1.
        loss = (self._grad_output, self._grad_lse)
        found = vjp(*(*plain[:2], _slope, *plain[2:], Fraction, *loss), **sizes)
        for name, mine, theirs in (
            ("dQ", found.dQ, lean.q[0]),
            ("dK", found.dK, lean.k[0]),
            ("dV", found.dV, lean.v[0]),
            ("dS", found.dBias, lean.bias[0]),
        ):
            given.same(mine, given.values(theirs), f"{v.id}: {name}")

    def by_key(self, query: int) -> Cells:
        """By key: s, 2^s, p, dP, dP − (D − dL), dS."""
        v = self.vector
        scale, modify, q, k, values = self._plain()
        p = self._probabilities()[query]
        delta = self._deltas()[query]
        grad_s = self._score_gradients()[query]
        cells = []
        for j in range(v.kv_len):
            s = score(scale, modify, q, k, query, j, d=v.head_dim, num=EXACT)
            grad_p = vec_dot(self._grad_output[query], values[j], d=v.value_dim, zero=Fraction(0))
            numbers = (s, p[j], grad_p, grad_p - delta, grad_s[j])
            cells.append([str(j), show_all(values[j]), *map(show, numbers)])
        return cells

    def delta(self, query: int) -> str:
        """D − dL of a query."""
        return show(self._deltas()[query])

    def output(self, query: int) -> str:
        """The output of a query."""
        return show_all(self._outputs()[query])

    def plain_delta(self, query: int) -> str:
        """D = ⟨dO, O⟩ of a query. Raises SourceError unless it is Σ p·dP as well."""
        v = self.vector
        d_o, o = self._grad_output[query], self._outputs()[query]
        found = vec_dot(d_o, o, d=v.value_dim, zero=Fraction(0))
        given.same(found - self._grad_lse[query], self._deltas()[query], f"{v.id}: D")
        *_, values = self._plain()
        products = [vec_dot(d_o, value, d=v.value_dim, zero=Fraction(0)) for value in values]
        pairs = zip(self._probabilities()[query], products, strict=True)
        total = sum((x * y for x, y in pairs), Fraction(0))
        given.same(total, found, f"{v.id}: Σ p·dP")
        return show(found)

    def sum_of_scores(self, query: int) -> str:
        """Σ dS of a query. Raises SourceError unless it is dL, since the weights sum to 1."""
        total = sum(self._score_gradients()[query], Fraction(0))
        given.same(total, self._grad_lse[query], f"{self.vector.id}: Σ dS")
        return show(total)

    def grad_output(self, query: int) -> str:
        return show_all(self._grad_output[query])

    def grad_lse(self, query: int) -> str:
        return show(self._grad_lse[query])

    def grad_query(self, query: int) -> str:
        """dQ of a query, as in the vector."""
        return show_all([Fraction(x) for x in self.vector.expected.q[0][query]])

    def shares(self, key: int) -> Cells:
        """By query: its weight of the key, and its contributions to the gradients by the key's
        value and by the key; at last their sums. Raises SourceError unless these are the vector's.
        """
        v = self.vector
        scale, _, q, _, _ = self._plain()
        p = self._probabilities()
        grad_s = self._score_gradients()
        cells = []
        of_values, of_keys = [], []
        for i in range(v.q_len):
            of_values.append([p[i][key] * x for x in self._grad_output[i]])
            of_keys.append([scale * grad_s[i][key] * x for x in q[i]])
            parts = (show_all(of_values[-1]), show_all(of_keys[-1]))
            cells.append([str(i), show(p[i][key]), show(grad_s[i][key]), *parts])
        sums = [_add(of_values), _add(of_keys)]
        lean = [[Fraction(x) for x in part[0][key]] for part in (v.expected.v, v.expected.k)]
        given.same(sums, lean, f"{v.id}: the gradients of key {key}")
        return [*cells, ["sum", "", "", *map(show_all, sums)]]

    @property
    def _sizes(self) -> dict[str, Any]:
        return given.sizes(self.vector.attentions()[0])

    @property
    def _grad_output(self) -> list[list[Fraction]]:
        return given.values(self.vector.grad_output[0])

    @property
    def _grad_lse(self) -> list[Fraction]:
        return [Fraction(x) for x in self.vector.grad_log_sum_exp[0]]

    def _plain(self) -> tuple[Any, ...]:
        """scale, modify, Q, K and V of the one head."""
        return given.inputs(self.vector.attentions()[0])

    def _probabilities(self) -> list[list[Fraction]]:
        v, (scale, modify, q, k, _) = self.vector, self._plain()
        found: list[list[Fraction]] = probabilities(
            scale, modify, q, k, q_len=v.q_len, kv_len=v.kv_len, d=v.head_dim, num=EXACT
        )
        return found

    def _outputs(self) -> list[list[Fraction]]:
        found: list[list[Fraction]] = attention(*self._plain(), **self._sizes)
        return found

    def _deltas(self) -> list[Fraction]:
        v = self.vector
        found: list[Fraction] = row_delta(
            self._outputs(),
            self._grad_output,
            self._grad_lse,
            q_len=v.q_len,
            d_v=v.value_dim,
            num=EXACT,
        )
        return found

    def _score_gradients(self) -> list[list[Fraction]]:
        found: list[list[Fraction]] = score_gradients(
            *(*self._plain(), self._grad_output, self._grad_lse), **self._sizes
        )
        return found


def worked_gradients(family: Family, vector: str) -> WorkedGradients:
    """A vector to be worked backwards. Raises SourceError if there is no such vector, and unless
    the Spec in Python gives its gradients."""
    found = given.find(family, vector)
    if not isinstance(found, GradientVector) or found.num_heads != 1 or found.options:
        raise SourceError(f"{vector} is no vector of gradients of one head without options")
    return WorkedGradients(found)


def _slope(i: int, j: int, s: int) -> Fraction:
    return Fraction(1)


def _add(rows: list[list[Fraction]]) -> list[Fraction]:
    return [sum(column, Fraction(0)) for column in zip(*rows, strict=True)]
