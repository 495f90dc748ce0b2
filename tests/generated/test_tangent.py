"""The vectors that `torch.func.jvp` of `pyimpl.attention` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge_tangents, vector_of, vectors

from bridge.conformance.adapters.own import own_tangents


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    found = own_tangents(vector, str(dtype).removeprefix("torch."), "cpu", "tiled")
    judge_tangents(vector, dtype, found)


@vectors("tangent", 20)
@dtypes
def test_tangent(vector_id: str, dtype: torch.dtype) -> None:
    """Attention run over dual numbers of intervals, whose numbers and rates contain the true ones,
    contains the rates at which its output changes, whatever natural exponential they are taken
    with.

    Theorem tangent-enclosed, `Spec.jvp`. The derivative of output and log-sum-exp along rates of
    queries, keys and values (torch.func.jvp): rates of 0, the mean rate of the scores not taken
    off, the scale left out or applied twice, or the rate of one input lost, they show.
    """
    check(vector_id, dtype)


@vectors("tangent-score-mods", 19)
@dtypes
def test_tangent_score_mods(vector_id: str, dtype: torch.dtype) -> None:
    """So does attention with a sink that changes.

    Theorem tangent-sink-enclosed, `Spec.jvpSink`. The derivative forwards through softcap, and
    along rates of ALiBi's slope, of a bias and of a sink: without the factor 1 - tanh^2, with the
    other sign of the slope, or with the rate of one of them lost, they show.
    """
    check(vector_id, dtype)
