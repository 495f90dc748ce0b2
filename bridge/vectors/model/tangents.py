"""The vectors of the derivative forwards."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

from bridge.vectors.model.attention import (
    Alibi,
    AttentionVector,
    EnclosedRow,
    Exact,
    Matrix,
    OneHead,
)


@dataclass(frozen=True)
class TangentVector(OneHead):
    """The rates at which the outputs of attention change, from those of its inputs.

    The inputs as for `AttentionVector`, of the natural model; the scale, the softcap and the mask
    do not change. tangent_q, tangent_k, tangent_v: the rates of q, k and v, of their shapes;
    tangent_slope, tangent_bias, [q_len][kv_len], and tangent_sink: those of the slope, the bias and
    the sink, None without one. A rate where the bias masks has no influence. expected: [q_len],
    bounds of the rates of the output and of the log-sum-exp, None where every key is masked.
    """

    operation: ClassVar[str] = "tangent"
    tangent_q: Matrix
    tangent_k: Matrix
    tangent_v: Matrix
    expected: tuple[EnclosedRow, ...]
    softcap: Exact | None = None
    alibi: Alibi | None = None
    bias: tuple[tuple[Exact | None, ...], ...] | None = None
    sink: Exact | None = None
    tangent_slope: Exact | None = None
    tangent_bias: Matrix | None = None
    tangent_sink: Exact | None = None

    def attention(self) -> AttentionVector:
        """The inputs, without results."""
        names = {field.name for field in fields(AttentionVector)} & vars(self).keys()
        given = {name: getattr(self, name) for name in names}
        return AttentionVector(**{**given, "expected": ()})

    def rates(self) -> tuple[Matrix, ...]:
        """All that there are."""
        others = tuple(x for x in (self.tangent_slope, self.tangent_sink) if x is not None)
        return (
            self.tangent_q, self.tangent_k, self.tangent_v, self.tangent_bias or (), (others,),
        )  # fmt: skip

    def rate_of_bias(self, i: int, j: int) -> Exact:
        """The rate of the bias of query i and key j; 0 without a bias."""
        return 0 if self.tangent_bias is None else self.tangent_bias[i][j]
