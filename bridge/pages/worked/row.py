"""One query of attention: its softmax, its states, merges and splits."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from bridge.pages.worked import inputs
from bridge.pages.worked.shown import Cells, show, show_all
from bridge.source.excerpt import SourceError
from bridge.spec import online, softmax
from bridge.spec.attention import ScoredValue
from bridge.spec.core import EXACT
from bridge.spec.maximum import max_score, rescale, row_max
from bridge.vectors.exact.attention import product
from bridge.vectors.model.attention import Family


class Worked:
    """One query of a vector of the exact model, where exp k = 2^k. Raises SourceError if there is
    no such vector or query."""

    def __init__(self, family: Family, vector: str, query: int) -> None:
        found = inputs.find_attention(family, vector)
        inputs.output(found, query)
        self.vector, self.query = found, query
        self.scores = [
            int(Fraction(found.scale or 0) * product(found, query, j))
            if found.visible(query, j)
            else None
            for j in range(found.kv_len)
        ]

    def softmax(self) -> Cells:
        """By key: its score, 2^score, 2^(score − m), and its weight both ways. Raises SourceError
        where the two ways differ."""
        m = row_max(self.scores)
        plain = softmax.softmax(self.scores, num=EXACT)
        safe = softmax.safe_softmax(self.scores, num=EXACT)
        if plain != safe:
            raise SourceError(f"{self.vector.id}: softmax and safe_softmax differ")
        weights = [softmax.weight(s, num=EXACT) for s in self.scores]
        shifted = [rescale(s, m, num=EXACT) for s in self.scores]
        rows = zip(self.scores, weights, shifted, safe, strict=True)
        return [[str(j), *(show(x) for x in row)] for j, row in enumerate(rows)]

    @property
    def keys(self) -> list[ScoredValue]:
        """The keys as the query sees them."""
        return [
            ScoredValue(score, [Fraction(x) for x in value])
            for score, value in zip(self.scores, self.vector.v, strict=True)
        ]

    def merge(self, cut: int) -> Cells:
        """The states of the keys before `cut` and of the others, each from scratch, and their
        merge: scores, m, l, o. Raises SourceError unless the merge ends in the vector's output, and
        is the same the other way round."""
        width = self.vector.value_dim
        parts = (self.keys[:cut], self.keys[cut:])
        a, b = (online.of_block(part, d=width, num=EXACT) for part in parts)
        both = online.merge(a, b, num=EXACT)
        if online.merge(b, a, num=EXACT) != both or self._finish(both) != self.output:
            raise SourceError(f"{self.vector.id}: the merge does not end in its output")
        names = ("a", "b", "merge a b")
        seen = [show_all([key.score for key in part]) for part in parts] + [""]
        return [
            [name, scores, show(s.m), show(s.l), show_all(s.o)]
            for name, scores, s in zip(names, seen, (a, b, both), strict=True)
        ]

    def splits(self, split_len: int) -> Cells:
        """By split of keys: their log₂ Σ 2^s, the factor 2^(Lₖ − L) and the output of the split.
        Raises SourceError where a log-sum-exp is no whole number, and unless the outputs, times
        their factors, add up to the vector's output."""
        parts = [self.keys[n : n + split_len] for n in range(0, len(self.keys), split_len)]
        lses = [self._log_sum_exp([key.score for key in part]) for part in parts]
        whole = self._log_sum_exp(self.scores)
        factors = [rescale(lse, whole, num=EXACT) for lse in lses]
        width = self.vector.value_dim
        outs = [self._finish(online.of_block(part, d=width, num=EXACT)) for part in parts]
        total = [
            sum((f * out[c] for f, out in zip(factors, outs, strict=True)), Fraction(0))
            for c in range(width)
        ]
        if total != self.output:
            raise SourceError(f"{self.vector.id}: the splits do not add up to its output")
        rows = zip(lses, factors, outs, strict=True)
        return [
            [str(n), show(lse), show(factor), show_all(out)]
            for n, (lse, factor, out) in enumerate(rows)
        ]

    def _log_sum_exp(self, scores: Sequence[int | None]) -> int | None:
        total: Fraction = softmax.denominator(list(scores), num=EXACT)
        if total == 0:
            return None
        power = total.numerator.bit_length() - total.denominator.bit_length()
        if Fraction(2) ** power != total:
            raise SourceError(f"{self.vector.id}: the log-sum-exp of {scores} is no whole number")
        return power

    def _finish(self, state: online.State) -> list[Fraction]:
        found: list[Fraction] = online.finish(state, d=self.vector.value_dim, num=EXACT)
        return found

    def online(self, block_n: int) -> Cells:
        """By block of keys: its scores, then the state after it: the new maximum m, the factor α of
        the state before, l and o. Raises SourceError unless the last o / l is the vector's output.
        """
        keys, width = self.keys, self.vector.value_dim
        state = online.empty(d=width, num=EXACT)
        rows = [["", "", show(state.m), "", show(state.l), show_all(state.o)]]
        for n, start in enumerate(range(0, len(keys), block_n)):
            block = keys[start : start + block_n]
            m = max_score(state.m, row_max([key.score for key in block]))
            alpha = rescale(state.m, m, num=EXACT)
            state = online.step_block(state, block, d=width, num=EXACT)
            seen = show_all([key.score for key in block])
            rows.append(
                [str(n), seen, *(show(x) for x in (state.m, alpha, state.l)), show_all(state.o)]
            )
        if self._finish(state) != self.output:
            raise SourceError(f"{self.vector.id}: the states do not end in its output")
        return rows

    @property
    def output(self) -> list[Fraction]:
        """The output that Lean computed for the query."""
        return inputs.output(self.vector, self.query)

    @property
    def shown_output(self) -> str:
        return show_all(self.output)
