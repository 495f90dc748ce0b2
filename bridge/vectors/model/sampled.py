"""Vectors of attention with a batch and heads, as large as kernels are used, of which some rows are
judged."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from bridge.vectors.by_intervals import integer_enclosed_rows
from bridge.vectors.by_spec import Integers, integer_rows
from bridge.vectors.model.attention import AttentionVector, Mask
from bridge.vectors.model.operations import ComesToAttention, problem


def seen_by(mask: Mask, rows: tuple[int, ...], kv_len: int) -> NDArray[np.bool_]:
    """Which keys these queries may attend to: [rows, kv_len]."""
    return np.array([[mask.visible(i, j) for j in range(kv_len)] for i in rows], dtype=bool)


@dataclass(frozen=True, eq=False)
class SampledVector(ComesToAttention):
    """Several heads of several entries of a batch in one call, of integers.

    q: [batch, heads, q_len, head_dim]; k: [batch, heads, kv_len, head_dim]; v: likewise with
    value_dim. The mask is that of every head. rows: the queries of each head that are judged.
    A scale of None is 1/√head_dim, in the natural model.
    """

    operation: ClassVar[str] = "sampled"
    scale: int | None
    q: Integers
    k: Integers
    v: Integers
    mask: Mask
    rows: tuple[int, ...]

    @cached_property
    def _attentions(self) -> tuple[AttentionVector, ...]:
        batch, heads, _, head_dim = self.q.shape
        kv_len, value_dim = self.v.shape[2:]
        seen = seen_by(self.mask, self.rows, kv_len)
        mask = Mask("boolean", tuple(map(tuple, seen.tolist())))
        found = []
        for b, h in np.ndindex(batch, heads):
            q, k, v = self.q[b, h, list(self.rows)], self.k[b, h], self.v[b, h]
            expected = (
                integer_enclosed_rows(q, k, v, seen)
                if self.scale is None
                else integer_rows(q, k, v, self.scale, seen)
            )
            found.append(
                problem(
                    self,
                    f"{self.id}[{b}, {h}]",
                    q_len=len(self.rows),
                    kv_len=kv_len,
                    head_dim=head_dim,
                    value_dim=value_dim,
                    scale=self.scale,
                    **{
                        name: tuple(map(tuple, x.tolist()))
                        for name, x in (("q", q), ("k", k), ("v", v))
                    },
                    mask=mask,
                    expected=expected,
                )
            )
        return tuple(found)

    def attentions(self) -> tuple[AttentionVector, ...]:
        """One for each entry of the batch and head, of the rows that are judged."""
        return self._attentions

    def asked(self) -> tuple[AttentionVector, ...]:
        """The same with the mask and the number of queries that the function is given."""
        whole = {"q_len": self.q.shape[2], "mask": self.mask}
        return tuple(replace(each, **whole) for each in self._attentions)
