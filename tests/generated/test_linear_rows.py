"""`Attention.Spec.Linear.rows` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("linear", 10)
@dtypes
def test_linear(vector_id: str, dtype: torch.dtype) -> None:
    """A linear layer computed with intervals, over rows and parameters that contain the true ones,
    contains what it makes of the true rows.

    Theorem linear-enclosed. W x + b for each row: with W transposed, with b left out or added to
    another axis, it shows.
    """
    check(vector_id, dtype)
