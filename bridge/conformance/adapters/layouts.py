"""The vectors of heads, packed sequences, pages, prefixes, splits and shards, through the public
functions of `pyimpl`; those of shards through the part of ring attention that sends no messages.

Each function returns the results of the plain problems that the vector comes to
(`ComesToAttention.attentions`), in their order: out [1, 1, q_len, value_dim] and lse [1, 1, q_len].
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

import pyimpl
from bridge.conformance.adapters import packed, shards
from bridge.conformance.adapters.whole_batches import sample_rows, whole_batch
from bridge.conformance.tensors.batch import Batch, Outputs, array
from bridge.conformance.tensors.own_options import keywords, score_options
from bridge.vectors.model.attention import Mask, Matrix
from bridge.vectors.model.dropout import DropoutVector
from bridge.vectors.model.operations import (
    CascadeVector,
    CombineVector,
    ComesToAttention,
    GroupedQueryVector,
    LaidOutVector,
    PagedVector,
    VarlenVector,
)
from bridge.vectors.model.sampled import SampledVector
from bridge.vectors.model.shards import ShardsVector
from pyimpl.backends.dispatch import Backend
from pyimpl.internal.arguments import compute_dtype

TAKEN = frozenset(
    cls.operation
    for cls in (
        *(GroupedQueryVector, VarlenVector, PagedVector, CascadeVector, CombineVector),
        DropoutVector,
        SampledVector,
        ShardsVector,
    )
)


class Layouts:
    """The public functions with one backend, dtype and device; package: others of their names."""

    def __init__(
        self, backend: Backend, dtype: torch.dtype, device: torch.device, package: Any = pyimpl
    ) -> None:
        self.backend, self.dtype, self.device = backend, dtype, device
        self.package = package
        self.wide = compute_dtype(dtype)

    def run(self, vector: ComesToAttention) -> list[Outputs]:
        """The results of the function for the vector's operation. May raise that function's errors;
        TypeError for an operation that is not in `TAKEN`."""
        match vector:
            case GroupedQueryVector():
                return self.grouped_query(vector)
            case DropoutVector():
                return self.dropout(vector)
            case VarlenVector():
                return self.varlen(vector)
            case PagedVector():
                return self.paged_cache(vector)
            case CascadeVector():
                return self.cascade(vector)
            case CombineVector():
                return self.combine(vector)
            case SampledVector():
                return self.sampled_attention(vector)
            case ShardsVector():
                return shards.attend(vector, self.backend, self.dtype, self.device)
        raise TypeError(f"there is no public function for {vector.operation}")

    def grouped_query(self, vector: GroupedQueryVector) -> list[Outputs]:
        q, k, v = (self.heads(x) for x in (vector.q, vector.k, vector.v))
        mask = self.mask(vector.mask, vector.q_len, vector.kv_len)
        out, lse = self.attention(q, k, v, vector, mask=mask)
        return [Outputs(out[:, h : h + 1], lse[:, h : h + 1]) for h in range(vector.num_heads)]

    def dropout(self, vector: DropoutVector) -> list[Outputs]:
        q, k, v = (
            heads.reshape(vector.batch, -1, *heads.shape[2:])
            for heads in map(self.heads, (vector.q, vector.k, vector.v))
        )
        mask = self.mask(vector.mask, vector.q_len, vector.kv_len)
        dropped = {"dropout_p": float(vector.dropout_p), "dropout_seed": vector.dropout_seed}
        out, lse = self.attention(q, k, v, vector, mask=mask, **dropped)
        return [
            Outputs(out[b : b + 1, h : h + 1], lse[b : b + 1, h : h + 1])
            for b in range(vector.batch)
            for h in range(vector.num_heads)
        ]

    def varlen(self, vector: VarlenVector) -> list[Outputs]:
        q, k, v = (self.matrix(x)[:, None] for x in (vector.q, vector.k, vector.v))
        cu_q, cu_k = (
            torch.tensor(x, dtype=torch.int32, device=self.device)
            for x in (vector.cu_seqlens_q, vector.cu_seqlens_k)
        )
        window = vector.masks[0].window
        out, lse = self.package.attention_varlen(
            q, k, v, cu_q, cu_k,
            window=(None, None) if window is None else (window.left, window.right),
            causal_alignment=vector.alignment,
            scale=vector.natural_scale, return_lse=True, backend=self.backend,
        )  # fmt: skip
        return [
            Outputs(out[a:b, 0][None, None], lse[0, a:b][None, None])
            for a, b in pairwise(vector.cu_seqlens_q)
        ]

    def paged_cache(self, vector: PagedVector) -> list[Outputs]:
        pool_k, pool_v = (
            torch.stack([self.matrix(page) for page in pages])[:, None]
            for pages in (vector.k, vector.v)
        )
        table = torch.tensor(vector.filled_tables(), dtype=torch.int32, device=self.device)
        lengths = torch.tensor(vector.lengths, dtype=torch.int32, device=self.device)
        out, lse = self.package.attention_decode(
            self.matrix(vector.q)[:, None, None], pool_k, pool_v, page_table=table,
            kv_lens=lengths, scale=vector.natural_scale, return_lse=True, backend=self.backend,
        )  # fmt: skip
        return [Outputs(out[b : b + 1], lse[b : b + 1]) for b in range(len(vector.q))]

    def cascade(self, vector: CascadeVector) -> list[Outputs]:
        """The suffixes padded to one length with NaN, which must have no influence."""
        lens = torch.tensor([len(k) for k in vector.suffix_k], device=self.device)
        k, v = (
            pad_sequence(
                [self.matrix(rows, columns) for rows in suffixes], True, math.nan
            )[:, None]
            for suffixes, columns in (
                (vector.suffix_k, vector.head_dim), (vector.suffix_v, vector.value_dim)
            )
        )  # fmt: skip
        out, lse = self.package.attention_cascade(
            self.matrix(vector.q)[:, None, None],
            self.matrix(vector.prefix_k, vector.head_dim)[None],
            self.matrix(vector.prefix_v, vector.value_dim)[None],
            k, v, suffix_lens=lens,
            scale=vector.natural_scale, return_lse=True, backend=self.backend,
        )  # fmt: skip
        return [Outputs(out[b : b + 1], lse[b : b + 1]) for b in range(len(vector.q))]

    def combine(self, vector: CombineVector) -> list[Outputs]:
        outs = self.matrix(tuple(part.output for part in vector.parts))[:, None, None, None]
        lses = [part.log_sum_exp for part in vector.parts]
        numbers = [-math.inf if lse is None else float(lse) for lse in lses]
        given = torch.tensor(numbers, dtype=self.wide, device=self.device)[:, None, None, None]
        return [Outputs(*self.package.merge_states(outs, given))]

    def sampled_attention(self, vector: SampledVector) -> list[Outputs]:
        def run(batch: Batch) -> Outputs:
            if vector.packed is not None:
                how: dict[str, Any] = {"scale": vector.natural_scale, "backend": self.backend}
                return Outputs(*packed.attend(*batch.qkv, vector.packed, **how))
            options = keywords(score_options(batch))
            if vector.dropout_p is not None:
                options["dropout_p"] = float(vector.dropout_p)
                options["dropout_seed"] = vector.dropout_seed
            given = {**options, "return_lse": True, "backend": self.backend}
            return Outputs(*self.package.attention(*batch.qkv, **given))

        dtype = str(self.dtype).removeprefix("torch.")
        return sample_rows(vector, whole_batch(vector, dtype, str(self.device)), run)

    def attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        vector: LaidOutVector,
        mask: Tensor | None = None,
        **more: Any,
    ) -> tuple[Tensor, Tensor]:
        out, lse = self.package.attention(
            q, k, v, attn_mask=mask, scale=vector.natural_scale, return_lse=True,
            enable_gqa=q.shape[1] != k.shape[1], backend=self.backend, **more,
        )  # fmt: skip
        return out, lse

    def matrix(self, rows: Matrix, columns: int | None = None) -> Tensor:
        return torch.from_numpy(array(rows, columns)).to(self.dtype).to(self.device)

    def heads(self, matrices: tuple[Matrix, ...]) -> Tensor:
        return torch.stack([self.matrix(rows) for rows in matrices])[None]

    def mask(self, mask: Mask, q_len: int, kv_len: int) -> Tensor | None:
        if mask.kind == "none":
            return None
        seen = [[mask.visible(i, j) for j in range(kv_len)] for i in range(q_len)]
        return torch.from_numpy(np.array(seen)).to(self.device)
