"""`Attention.Spec.FeedForward.rows` on its vectors, through `pyimpl.modules`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_modules, vector_of, vectors


def check(vector_id: str, dtype: torch.dtype) -> None:
    judge_modules(vector_of(vector_id), dtype)


@vectors("feed-forward", 11)
@dtypes
def test_feed_forward(vector_id: str, dtype: torch.dtype) -> None:
    """A feed-forward network computed with intervals, over rows and parameters that contain the
    true ones, contains what it makes of the true rows.

    Theorem feed-forward-enclosed. W2 max(0, W1 x + b1) + b2: another function than the rectifier,
    one at another place, a bias left out, or a matrix transposed shows.
    """
    check(vector_id, dtype)
