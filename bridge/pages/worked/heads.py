"""Query heads that share heads of keys and values, and their outputs put side by side."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from bridge.pages.worked import inputs as given
from bridge.pages.worked.shown import Cells, show_all
from bridge.source.excerpt import SourceError
from bridge.spec.attention import ScoredValue, attend, scored
from bridge.spec.core import EXACT
from bridge.spec.heads import grouped_query, kv_head
from bridge.spec.multi_head import concat_heads, split_heads
from bridge.spec.softmax import softmax
from bridge.vectors.model.attention import Family
from bridge.vectors.model.operations import GroupedQueryVector

Heads = list[list[list[Fraction]]]


@dataclass(frozen=True)
class WorkedHeads:
    """A vector of grouped-query attention without a mask."""

    vector: GroupedQueryVector

    @property
    def group(self) -> int:
        """How many query heads share a head of keys and values."""
        return self.vector.num_heads // self.vector.num_kv_heads

    def outputs(self) -> Heads:
        """By query head and query, the output. Raises SourceError unless it is the vector's."""
        v = self.vector
        found: Heads = grouped_query(
            int(v.scale),
            lambda h, i, j, s: s,
            [given.scores(q) for q in v.q],
            [given.scores(k) for k in v.k],
            [given.values(values) for values in v.v],
            q_len=v.q_len,
            kv_len=v.kv_len,
            d=v.head_dim,
            d_v=v.value_dim,
            num_kv_heads=v.num_kv_heads,
            group=self.group,
            num=EXACT,
        )
        for h, a in enumerate(v.attentions()):
            lean = [given.output(a, i) for i in range(v.q_len)]
            given.same(found[h], lean, f"{v.id}, head {h},")
        return found

    def by_head(self, query: int) -> Cells:
        """By query head: the head of keys and values that it uses, the query's scores, weights and
        output; and the head that a remainder would give, with its output."""
        v, outputs = self.vector, self.outputs()
        cells = []
        for h in range(v.num_heads):
            right, wrong = kv_head(h, group=self.group), h % v.num_kv_heads
            scores = [key.score for key in self._keys(h, right, query)]
            other = attend(self._keys(h, wrong, query), d_v=v.value_dim, num=EXACT)
            weights = show_all(softmax(scores, num=EXACT))
            row = [str(right), show_all(scores), weights, show_all(outputs[h][query])]
            cells.append([str(h), *row, str(wrong), show_all(other)])
        return cells

    def side_by_side(self) -> Cells:
        """By query, the outputs of all heads in one row. Raises SourceError unless cutting the rows
        gives the heads back."""
        v, heads = self.vector, self.outputs()
        rows = concat_heads(heads, n=v.q_len)
        back = split_heads(rows, n=v.q_len, num_heads=v.num_heads, d=v.value_dim)
        given.same(back, heads, f"{v.id}: cutting the rows")
        return [[str(i), show_all(row)] for i, row in enumerate(rows)]

    def cut(self, head: int) -> Cells:
        """By query, the output of a head cut from the rows; and the numbers that a reshape to
        [heads, length, dim] puts in its place. Raises SourceError if they are the same."""
        v, heads = self.vector, self.outputs()
        flat = [x for row in concat_heads(heads, n=v.q_len) for x in row]
        size, width = v.q_len * v.value_dim, v.value_dim
        part = flat[head * size : (head + 1) * size]
        wrong = [part[i * width : (i + 1) * width] for i in range(v.q_len)]
        if wrong == heads[head]:
            raise SourceError(f"{v.id}: a reshape does no harm to head {head}")
        pairs = zip(heads[head], wrong, strict=True)
        return [
            [str(i), show_all(right), show_all(other)] for i, (right, other) in enumerate(pairs)
        ]

    def _keys(self, head: int, of: int, query: int) -> list[ScoredValue]:
        """The keys of the head `of` as the query of a query head sees them."""
        v = self.vector
        mats = (given.scores(v.q[head]), given.scores(v.k[of]), given.values(v.v[of]))
        found: list[ScoredValue] = scored(
            int(v.scale), lambda i, j, s: s, *mats, query, list(range(v.kv_len)), d=v.head_dim,
            num=EXACT,
        )  # fmt: skip
        return found


def worked_heads(family: Family, vector: str) -> WorkedHeads:
    """A vector to be worked head by head. Raises SourceError if there is no such vector, or if it
    has a mask."""
    found = given.find(family, vector)
    if not isinstance(found, GroupedQueryVector) or found.mask.kind != "none":
        raise SourceError(f"{vector} is no vector of heads without a mask")
    return WorkedHeads(found)
