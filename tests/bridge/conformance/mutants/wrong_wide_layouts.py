"""Packed sequences and caches in pages that are wrong in wide heads alone, past a tile of columns
or of keys: in float32, query by query."""

from __future__ import annotations

import torch
from wrong_layouts import attend, tensor

from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.tensors.batch import Outputs
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.operations import ComesToAttention

# By the name of each mutant, its description.
MUTANTS = {
    "score_columns_of_64": "leaves out the columns of queries and keys from 64 on",
    "score_columns_of_128": "leaves out the columns of queries and keys from 128 on",
    "last_score_column": "leaves out the last column of heads of 256",
    "value_columns_of_64": "has no output in columns from 64 on",
    "value_columns_of_128": "has the first 128 columns of the output again in those behind",
    "rows_at_strides_of_128": "reads keys as if a row had no more than 128 columns",
    "keys_of_64_in_wide_heads": "leaves out keys from 64 on in heads of 128 columns or more",
}


def _attend(x: AttentionVector, mutant: str) -> Outputs:
    """Output and log-sum-exp of one sequence."""
    query, key = (tensor(m, x.head_dim) for m in (x.q, x.k))
    value = tensor(x.v, x.value_dim)
    pairs = [[x.visible(i, j) for j in range(x.kv_len)] for i in range(x.q_len)]
    seen = torch.tensor(pairs, dtype=torch.bool)
    seen = seen.reshape(x.q_len, x.kv_len)
    width = {"score_columns_of_64": 64, "score_columns_of_128": 128, "last_score_column": 255}.get(
        mutant, x.head_dim
    )
    if mutant == "rows_at_strides_of_128" and x.head_dim > 128:
        key = key.flatten()[: x.kv_len * 128 + x.head_dim - 128].unfold(0, x.head_dim, 128)
    if mutant == "keys_of_64_in_wide_heads" and x.head_dim >= 128:
        seen = seen & (torch.arange(x.kv_len) < 64)
    scores = query[:, :width] @ key[:, :width].T * x.natural_scale
    out, lse = attend(scores, seen, value)
    if mutant == "value_columns_of_64":
        out = out * (torch.arange(x.value_dim) < 64)
    if mutant == "value_columns_of_128":
        out = out[:, torch.arange(x.value_dim) % 128]
    return Outputs(out[None, None], lse[None, None])


class WideLayouts(PyimplTiled):
    """`pyimpl`'s tile loop, but for the layouts, which have the bug; "": none."""

    def __init__(self, mutant: str) -> None:
        super().__init__()
        self.mutant = mutant

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        return [_attend(problem, self.mutant) for problem in vector.attentions()]
