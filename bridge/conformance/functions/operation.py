"""The operation of a problem: which attention its reference computes, of which inputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

from bridge.conformance.functions.features import Aligned
from bridge.vectors.model.attention import AttentionVector, Family, Mask, Vector

# The axes of query, key and value; heads×dim: a row has the heads one after the other.
Layout = Literal[
    "batch, heads, length, dim", "batch, length, heads, dim", "batch, length, dim",
    "batch, length, heads×dim",
]  # fmt: skip
# Which keys are hidden; square: as many queries as keys are taken, and no others.
Causal = Literal[Aligned, "square"]


@dataclass(frozen=True)
class Operation:
    """Attention of query, key and value at the default scale 1/√head_dim, full (causal: None) or
    causal, in the dtype and at the sizes of a problem's own inputs. heads: 1 for "batch, length,
    dim". any_size: whether the reference takes other sizes too."""

    layout: Layout
    causal: Causal | None
    dtype: str
    batch: int
    heads: int
    q_len: int
    kv_len: int
    head_dim: int
    value_dim: int
    any_size: bool = True

    def mask(self, q_len: int, kv_len: int) -> Mask:
        """The operation's mask for so many queries and keys."""
        match self.causal:
            case None:
                return Mask("none")
            case "bottom-right":
                return Mask("causal-bottom-right", shift=kv_len - q_len)
        return Mask("causal")

    def why_not(self, mask: Mask, q_len: int, kv_len: int) -> str | None:
        """Why it has no such mask; None if it has."""
        if self.causal is None:
            return None if mask.kind == "none" else "the problem's attention has no mask"
        own = self.mask(q_len, kv_len).window
        if mask.window != own or (self.causal == "square" and q_len != kv_len):
            return f"the problem's attention is causal ({self.causal}) alone"
        return None

    def choose(self, families: Iterable[Family]) -> list[Family]:
        """The vectors that are of this operation, and the families that have some."""
        chosen = [
            replace(family, vectors=tuple(v for v in family.vectors if self._is(v)))
            for family in families
        ]
        return [family for family in chosen if family.vectors]

    def _is(self, vector: Vector) -> bool:
        if not isinstance(vector, AttentionVector) or vector.options or vector.scale is not None:
            return False
        columns = vector.value_dim == vector.head_dim or self.value_dim != self.head_dim
        return columns and self.why_not(vector.mask, vector.q_len, vector.kv_len) is None

    def sizes(self) -> tuple[int, int, int, int]:
        """q_len, kv_len, head_dim and value_dim of the problem."""
        return self.q_len, self.kv_len, self.head_dim, self.value_dim

    def __str__(self) -> str:
        how = "without a mask" if self.causal is None else f"causal ({self.causal})"
        lengths = f"{self.q_len} queries, {self.kv_len} keys, head_dim {self.head_dim}"
        return (
            f"scaled dot product attention {how}, default scale, [{self.layout}], {self.dtype}, "
            f"batch {self.batch}, heads {self.heads}, {lengths}"
        )
