"""The vectors that `pyimpl.merge_states` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import math

import torch
from generated_checks import dtypes, judge, tensor, vector_of, vectors

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    lses = [part.log_sum_exp for part in vector.parts]
    numbers = torch.tensor([-math.inf if x is None else float(x) for x in lses], dtype=dtype)
    outs = tensor(tuple(part.output for part in vector.parts), dtype)
    # [parts, batch, heads, q_len, value_dim]
    result = pyimpl.merge_states(outs[:, None, None, None], numbers[:, None, None, None])
    judge(vector, dtype, result)


@vectors("combine", 12)
@dtypes
def test_combine(vector_id: str, dtype: torch.dtype) -> None:
    """Splits are combined with intervals that contain their outputs and log-sum-exps, −∞ where
    those are −∞, by the log-sum-exp that intervals give. The result contains the combination of the
    true splits by their own log-sum-exp.

    Theorem combine-enclosed, `Spec.combine`. Outputs and log-sum-exps of splits, combined: an empty
    split has log-sum-exp −∞ and no influence, whatever its output; all of them empty give 0 and −∞.
    """
    check(vector_id, dtype)
