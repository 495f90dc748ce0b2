"""`Attention.Spec.MultiHead.rows` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("multi-head-layer", 21)
@dtypes
def test_multi_head_layer(vector_id: str, dtype: torch.dtype) -> None:
    """Multi-head attention with its projections, computed with intervals over rows, a scale and
    parameters that contain the true ones and under any mask, contains the true attention, whatever
    natural exponential it is taken with.

    Theorem multi-head-enclosed. Multi-head attention with its four projections: heads that are
    split or joined in another order, projections that are exchanged or transposed, a scale of
    another width, and masks that are dropped or turned around show.
    """
    check(vector_id, dtype)
