"""Make a mutant of a kernel of another layout, and see which of its vectors catches it.

As `planting`, for grouped heads, packed sequences, pages and combined splits: the kernels run
directly, so that it is the edited copy that runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

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


class Functions:
    """The public functions of `pyimpl` that run the kernels of a module, with tiles of 16."""

    def __init__(self, module: ModuleType) -> None:
        self.module = module

    def attention(self, q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Any:
        options = ScoreOptions(given["scale"], mask=given["attn_mask"])
        return self.module.forward(q, k, v, options, block_m=_BLOCK, block_n=_BLOCK)

    def attention_varlen(self, *tensors: Tensor, **given: Any) -> Any:
        left, right = given["window"]
        return self.module.varlen(
            *tensors, ScoreOptions(given["scale"], left=left, right=right),
            bottom_right=given["causal_alignment"] == "bottom-right",
            block_m=_BLOCK, block_n=_BLOCK,
        )  # fmt: skip

    def attention_decode(self, q: Tensor, k: Tensor, v: Tensor, **given: Any) -> Any:
        return self.module.split_and_combine(
            q, k, v, ScoreOptions(given["scale"]), kv_lens=given["kv_lens"],
            page_table=given["page_table"], bottom_right=True, num_splits=_SPLITS, block_n=_BLOCK,
        )  # fmt: skip

    def merge_states(self, outs: Tensor, lses: Tensor) -> tuple[Tensor, Tensor]:
        out, lse = torch.empty(outs.shape[1:]), torch.empty(lses.shape[1:])
        self.module.combine_into(outs.float(), lses, out, lse)
        return out.to(outs.dtype), lse


class KernelLayouts(PyimplTriton):
    """The kernels of a module of `pyimpl.backends.kernels`, by `Functions`."""

    operations = frozenset(
        kind.operation for kind in (GroupedQueryVector, VarlenVector, PagedVector, CombineVector)
    )

    def why_unsupported(self, *_: object) -> str | None:
        return None

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        functions = Functions(self.module)
        return Layouts("triton", DTYPES[dtype], torch.device(device), functions).run(vector)


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
