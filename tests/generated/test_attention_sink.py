"""`Attention.Spec.attentionSink` on its vectors, through `pyimpl.attention`.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test says what its vectors rest on: a theorem of
docs/theorems.md, and what a wrong kernel shows.
"""

from __future__ import annotations

import torch
from generated_checks import dtypes, judge, options, scale_of, tensor, vector_of, vectors

import pyimpl


def check(vector_id: str, dtype: torch.dtype) -> None:
    vector = vector_of(vector_id)
    out, lse = pyimpl.attention(
        tensor(vector.q, dtype)[None, None],
        tensor(vector.k, dtype)[None, None],
        tensor(vector.v, dtype)[None, None],
        scale=scale_of(vector),
        **options(vector, dtype),
        return_lse=True,
        backend="tiled",
    )
    judge(vector, dtype, (out, lse))


@vectors("score-mods", 10)
@dtypes
def test_score_mods(vector_id: str, dtype: torch.dtype) -> None:
    """Attention computed with intervals, over inputs, a scale and a score transformation that
    contain the true ones, contains the true attention, whatever natural exponential it is taken
    with.

    Theorem enclosure-sound. Softcap, ALiBi, bias, mask and sink together, in this order: in another
    order they show.
    """
    check(vector_id, dtype)


@vectors("sink", 14)
@dtypes
def test_sink(vector_id: str, dtype: torch.dtype) -> None:
    """Attention with a sink, computed with intervals that contain inputs, scale and sink and with a
    score transformation that contains the true one, contains the true attention with the sink.

    Theorem sink-enclosed. A sink takes part in every softmax without a value: the weights of the
    keys sum to less than 1, and a query that may attend to no key has the sink for its log-sum-exp.
    """
    check(vector_id, dtype)
