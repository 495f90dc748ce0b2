"""Masks as they look, and the rows behind one."""

from __future__ import annotations

from fractions import Fraction

from bridge.pages.worked import inputs as given
from bridge.pages.worked.shown import Cells, show, show_all
from bridge.source.excerpt import SourceError
from bridge.spec.attention import ScoredValue, attend
from bridge.spec.core import EXACT
from bridge.spec.softmax import denominator, softmax
from bridge.vectors.model.attention import AttentionVector, Family

# A number that a kernel may put in the place of a masked score, and that must not act as a score.
LARGE_NEGATIVE = -10000


def visible(family: Family, vector: str) -> list[list[bool]]:
    """By query and key, whether it may be attended to. Raises SourceError if there is no such
    vector."""
    found = next((v for v in family.vectors if v.id == vector), None)
    if not isinstance(found, AttentionVector):
        raise SourceError(f"{vector} is no vector of attention in {family.name}")
    return [[found.visible(i, j) for j in range(found.kv_len)] for i in range(found.q_len)]


def masked_rows(family: Family, vector: str) -> Cells:
    """By query: its scores, the weights, their sum Σ 2^s and the output. Raises SourceError unless
    the outputs are those of the vector."""
    v = given.find_attention(family, vector)
    cells = []
    for i in range(v.q_len):
        row = given.keys_seen(v, i, range(v.kv_len))
        scores = [key.score for key in row]
        found = attend(row, d_v=v.value_dim, num=EXACT)
        given.same(found, given.output(v, i), f"{v.id}, query {i},")
        weights = softmax(scores, num=EXACT)
        total = show(denominator(scores, num=EXACT))
        cells.append([str(i), show_all(scores), total, show_all(weights), show_all(found)])
    return cells


def flood(family: Family, vector: str, query: int) -> str:
    """The output of a row without a visible key if a large negative number stands for masked: the
    mean of values that it must not see. Raises SourceError unless it is that mean, and for a row
    that sees a key."""
    v = given.find_attention(family, vector)
    row = given.keys_seen(v, query, range(v.kv_len))
    if any(key.score is not None for key in row):
        raise SourceError(f"{v.id}: query {query} sees a key")
    wrong = [ScoredValue(LARGE_NEGATIVE, key.value) for key in row]
    found = attend(wrong, d_v=v.value_dim, num=EXACT)
    mean = [sum(column, Fraction(0)) / v.kv_len for column in zip(*given.values(v.v), strict=True)]
    given.same(found, mean, f"{v.id}: the mean of all values")
    return show_all(found)
