"""Make a mutant of a kernel of another layout, and see which of its vectors catches it.

As `planting`, for grouped heads, packed sequences, pages and combined splits: the kernels run
directly, so that it is the edited copy that runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import ModuleType

import torch
from torch import Tensor

from bridge.conformance.adapters.layouts import Layouts
from bridge.conformance.adapters.own import PyimplTriton
from bridge.conformance.judging.judge import VectorResult
from bridge.conformance.judging.run import run
from bridge.conformance.mutants.planting import Mutant, MutantError, mutated_module
from bridge.conformance.tensors.batch import DTYPES, Outputs
from bridge.vectors.model.attention import Family
from bridge.vectors.model.operations import (
    CombineVector,
    ComesToAttention,
    GroupedQueryVector,
    PagedVector,
    VarlenVector,
)
from pyimpl.internal.scores import ScoreOptions

_BLOCK = 16
# A page table that leaves splits empty: lengths here are 1 to 33.
_SPLITS = 3

# The family that catches each mutant of `OPTION_MUTANTS`, by the mutant's name.
CATCHES: Mapping[str, str] = {
    "gqa-modulo": "grouped-query",
    "alignment-of-packed-sequences-swapped": "varlen",
    "cu-seqlens-one-short": "varlen",
    "cu-seqlens-one-over": "varlen",
    "page-table-ignored": "paged",
    "page-of-a-tile-ignored": "paged",
    "first-tile-of-each-page": "paged-past-tiles",
    "lengths-ignored": "paged",
    "last-split-dropped": "paged",
    "empty-split-lse-zero": "paged",
    "empty-split-lse-infinite": "paged",
    "parts-not-normalised": "combine",
}


class KernelLayouts(PyimplTriton):
    """The kernels of a module of `pyimpl.backends.kernels`, with tiles of 16."""

    def __init__(self, module: ModuleType) -> None:
        super().__init__(module)
        self.layouts = Layouts("triton", torch.float32, torch.device("cpu"))
        self.calls: dict[type[ComesToAttention], Callable[..., list[Outputs]]] = {
            GroupedQueryVector: self.grouped_query,
            VarlenVector: self.varlen,
            PagedVector: self.paged_cache,
            CombineVector: self.combine,
        }
        self.operations = frozenset(kind.operation for kind in self.calls)

    def why_unsupported(self, *_: object) -> str | None:
        return None

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        self.layouts = Layouts("triton", DTYPES[dtype], torch.device(device))
        return self.calls[type(vector)](vector)

    def grouped_query(self, vector: GroupedQueryVector) -> list[Outputs]:
        q, k, v = (self.layouts.heads(x) for x in (vector.q, vector.k, vector.v))
        mask = self.layouts.mask(vector.mask, vector.q_len, vector.kv_len)
        options = ScoreOptions(vector.natural_scale, mask=mask)
        out, lse = self.module.forward(q, k, v, options, block_m=_BLOCK, block_n=_BLOCK)
        return [Outputs(out[:, h : h + 1], lse[:, h : h + 1]) for h in range(vector.num_heads)]

    def varlen(self, vector: VarlenVector) -> list[Outputs]:
        q, k, v = (self.layouts.matrix(x)[:, None] for x in (vector.q, vector.k, vector.v))
        window = vector.masks[0].window
        left, right = (None, None) if window is None else (window.left, window.right)
        out, lse = self.module.varlen(
            q, k, v, _int32(vector.cu_seqlens_q), _int32(vector.cu_seqlens_k),
            ScoreOptions(vector.natural_scale, left=left, right=right),
            bottom_right=vector.alignment == "bottom-right", block_m=_BLOCK, block_n=_BLOCK,
        )  # fmt: skip
        ends = zip(vector.cu_seqlens_q[:-1], vector.cu_seqlens_q[1:], strict=True)
        return [Outputs(out[a:b, 0][None, None], lse[0, a:b][None, None]) for a, b in ends]

    def paged_cache(self, vector: PagedVector) -> list[Outputs]:
        keys, values = (
            torch.stack([self.layouts.matrix(page) for page in pages])[:, None]
            for pages in (vector.k, vector.v)
        )
        longest = max(map(len, vector.tables))
        table = [[*pages, *[0] * (longest - len(pages))] for pages in vector.tables]
        out, lse = self.module.split_and_combine(
            self.layouts.matrix(vector.q)[:, None, None], keys, values,
            ScoreOptions(vector.natural_scale), kv_lens=_int32(vector.lengths),
            page_table=torch.tensor(table, dtype=torch.int32), bottom_right=True,
            num_splits=_SPLITS, block_n=_BLOCK,
        )  # fmt: skip
        return [Outputs(out[b : b + 1], lse[b : b + 1]) for b in range(len(vector.q))]

    def combine(self, vector: CombineVector) -> list[Outputs]:
        outs = self.layouts.matrix(tuple(part.output for part in vector.parts))
        lses = [part.log_sum_exp for part in vector.parts]
        numbers = torch.tensor([-math.inf if x is None else float(x) for x in lses])
        out, lse = torch.empty(1, 1, 1, vector.value_dim), torch.empty(1, 1, 1)
        self.module.combine_into(
            outs.float()[:, None, None, None], numbers[:, None, None, None], out, lse
        )
        return [Outputs(out.to(self.layouts.dtype), lse)]


def plant(
    mutant: Mutant, families: Sequence[Family], dtype: str = "float32"
) -> VectorResult | None:
    """The first vector of the families that the mutated kernel fails; None if it passes them.

    Raises MutantError where the mutant no longer applies, or the edited source does not run.
    """
    with mutated_module(mutant) as module:
        vectors = run(KernelLayouts(module), families, dtype).vectors
    failed = [result for result in vectors if result.status == "failed"]
    for result in failed:
        if result.reason is not None:
            raise MutantError(f"the mutated source does not run: {result.id}: {result.reason}")
    return failed[0] if failed else None


def _int32(numbers: Sequence[int]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.int32)
