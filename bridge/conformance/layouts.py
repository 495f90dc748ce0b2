"""The vectors of heads, packed sequences, pages, prefixes and splits, through the public functions
of `pyimpl`.

Each function returns what belongs to the plain problems that the vector comes to
(`ComesToAttention.attentions`), in their order: out [1, 1, q_len, value_dim] and lse [1, 1, q_len].
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

import pyimpl
from bridge.conformance.batch import Outputs, array
from bridge.vectors.model import Mask, Matrix
from bridge.vectors.operations import (
    CascadeVector,
    CombineVector,
    ComesToAttention,
    GroupedQueryVector,
    LaidOutVector,
    PagedVector,
    VarlenVector,
)
from pyimpl._arguments import compute_dtype
from pyimpl._backends import Backend

TAKEN = frozenset(
    cls.operation
    for cls in (GroupedQueryVector, VarlenVector, PagedVector, CascadeVector, CombineVector)
)


class Layouts:
    """The public functions with one backend, dtype and device."""

    def __init__(self, backend: Backend, dtype: torch.dtype, device: torch.device) -> None:
        self.backend, self.dtype, self.device = backend, dtype, device
        self.wide = compute_dtype(dtype)

    def run(self, vector: ComesToAttention) -> list[Outputs]:
        """What the function for the vector's operation gives. May raise what that raises; TypeError
        for an operation that is not in `TAKEN`."""
        match vector:
            case GroupedQueryVector():
                return self.grouped_query(vector)
            case VarlenVector():
                return self.varlen(vector)
            case PagedVector():
                return self.paged(vector)
            case CascadeVector():
                return self.cascade(vector)
            case CombineVector():
                return self.combine(vector)
        raise TypeError(f"there is no public function for {vector.operation}")

    def grouped_query(self, vector: GroupedQueryVector) -> list[Outputs]:
        q, k, v = (self.heads(x) for x in (vector.q, vector.k, vector.v))
        mask = self.mask(vector.mask, vector.q_len, vector.kv_len)
        out, lse = self.attention(q, k, v, vector, mask=mask)
        return [Outputs(out[:, h : h + 1], lse[:, h : h + 1]) for h in range(vector.num_heads)]

    def varlen(self, vector: VarlenVector) -> list[Outputs]:
        q, k, v = (self.matrix(x)[:, None] for x in (vector.q, vector.k, vector.v))
        cu_q, cu_k = (
            torch.tensor(x, dtype=torch.int32, device=self.device)
            for x in (vector.cu_seqlens_q, vector.cu_seqlens_k)
        )
        window = vector.masks[0].window
        out, lse = pyimpl.attention_varlen(
            q, k, v, cu_q, cu_k,
            window=(None, None) if window is None else (window.left, window.right),
            causal_alignment=vector.alignment,
            scale=_natural(vector), return_lse=True, backend=self.backend,
        )  # fmt: skip
        return [
            Outputs(out[a:b, 0][None, None], lse[0, a:b][None, None])
            for a, b in pairwise(vector.cu_seqlens_q)
        ]

    def paged(self, vector: PagedVector) -> list[Outputs]:
        pool_k, pool_v = (
            torch.stack([self.matrix(page) for page in pages])[:, None]
            for pages in (vector.k, vector.v)
        )
        longest = max(map(len, vector.tables))
        table = torch.tensor(
            [[*pages, *[0] * (longest - len(pages))] for pages in vector.tables],
            dtype=torch.int32, device=self.device,
        )  # fmt: skip
        lengths = torch.tensor(vector.lengths, dtype=torch.int32, device=self.device)
        out, lse = pyimpl.attention_decode(
            self.matrix(vector.q)[:, None, None], pool_k, pool_v, page_table=table,
            kv_lens=lengths, scale=_natural(vector), return_lse=True, backend=self.backend,
        )  # fmt: skip
        return [Outputs(out[b : b + 1], lse[b : b + 1]) for b in range(len(vector.q))]

    def cascade(self, vector: CascadeVector) -> list[Outputs]:
        """One pass over the prefix for the queries of all requests, one over each suffix, and
        `merge_states`; the parts in float32 or wider, so that the output is rounded once."""
        wide = Layouts(self.backend, self.wide, self.device)
        q = wide.matrix(vector.q)
        shared, shared_lse = wide.attention(
            q[None, None], *wide.keys(vector, vector.prefix_k, vector.prefix_v), vector
        )
        found = []
        for b, (k, v) in enumerate(zip(vector.suffix_k, vector.suffix_v, strict=True)):
            own, own_lse = wide.attention(
                q[None, None, b : b + 1], *wide.keys(vector, k, v), vector
            )
            out, lse = pyimpl.merge_states(
                torch.stack([shared[:, :, b : b + 1], own]),
                torch.stack([shared_lse[:, :, b : b + 1], own_lse]),
            )
            found.append(Outputs(out.to(self.dtype), lse))
        return found

    def combine(self, vector: CombineVector) -> list[Outputs]:
        outs = self.matrix(tuple(part.output for part in vector.parts))[:, None, None, None]
        lses = [part.log_sum_exp for part in vector.parts]
        numbers = [-math.inf if lse is None else float(lse) for lse in lses]
        given = torch.tensor(numbers, dtype=self.wide, device=self.device)[:, None, None, None]
        return [Outputs(*pyimpl.merge_states(outs, given))]

    def attention(
        self, q: Tensor, k: Tensor, v: Tensor, vector: LaidOutVector, mask: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        out, lse = pyimpl.attention(
            q, k, v, attn_mask=mask, scale=_natural(vector), return_lse=True,
            enable_gqa=q.shape[1] != k.shape[1], backend=self.backend,
        )  # fmt: skip
        return out, lse

    def matrix(self, rows: Matrix) -> Tensor:
        return torch.from_numpy(array(rows)).to(self.dtype).to(self.device)

    def heads(self, matrices: tuple[Matrix, ...]) -> Tensor:
        return torch.stack([self.matrix(rows) for rows in matrices])[None]

    def keys(self, vector: LaidOutVector, k: Matrix, v: Matrix) -> tuple[Tensor, Tensor]:
        """Keys and values of one sequence, which may have none."""
        k_rows = self.matrix(k).reshape(len(k), vector.head_dim)
        return k_rows[None, None], self.matrix(v).reshape(len(v), vector.value_dim)[None, None]

    def mask(self, mask: Mask, q_len: int, kv_len: int) -> Tensor | None:
        if mask.kind == "none":
            return None
        seen = [[mask.visible(i, j) for j in range(kv_len)] for i in range(q_len)]
        return torch.from_numpy(np.array(seen)).to(self.device)


def _natural(vector: LaidOutVector) -> float:
    """The factor of the scores for a kernel whose weights are e^score; the model is exact."""
    return float(vector.scale) * math.log(2.0)
