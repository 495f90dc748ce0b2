"""No correct implementation exceeds its tolerance: on the vectors and on random inputs.

Exact vectors have weights that are powers of two, which every format holds: the rounding of weights
shows on the random real inputs only, where a float64 result is the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import committed
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from random_vectors import family, vectors

from bridge.conformance.adapters.adapter import Adapter, GradientsAdapter, TangentsAdapter
from bridge.conformance.adapters.builtin import BUILTIN
from bridge.conformance.adapters.emulated import FlashEmulated
from bridge.conformance.adapters.own import PyimplReference
from bridge.conformance.judging.run import run
from bridge.conformance.tensors.batch import DTYPES, Batch
from bridge.conformance.tolerances.tolerance import attention_tolerance, lse_tolerance
from bridge.report.runs import Runs
from bridge.vectors.model.attention import AttentionVector, Vector, Window
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.sampled import SampledGradientVector, SampledVector
from bridge.vectors.model.tangents import TangentVector

MAKERS: dict[str, Callable[[], Adapter]] = {
    **{n: make for n, make in BUILTIN.items() if n not in ("pyimpl-triton", "flash-emulated")},
    "flash-1-rounded": lambda: FlashEmulated(1, "rounded"),
    "flash-1-unrounded": lambda: FlashEmulated(1, "unrounded"),
    "flash-16-rounded": lambda: FlashEmulated(16, "rounded"),
    "flash-16-unrounded": lambda: FlashEmulated(16, "unrounded"),
    "flash-128-rounded": lambda: FlashEmulated(128, "rounded"),
}
ADAPTERS = {name: make() for name, make in MAKERS.items()}
CASES = [(name, dtype) for name, adapter in ADAPTERS.items() for dtype in adapter.dtypes]


GRADIENTS = ("gradient", "sampled-gradient")


def needs_more_bits(vector: Vector, dtype: str) -> bool:
    """Whether the dtype does not hold the numbers, which are drawn by rule."""
    if not isinstance(vector, SampledVector | SampledGradientVector):
        return False
    numbers = [np.asarray(x, dtype=np.float64) for x in (vector.q, vector.k, vector.v)]
    given = (torch.from_numpy(x) for x in numbers)
    return not all(torch.equal(x, x.to(DTYPES[dtype]).double()) for x in given)


# `make verify` has run those that are built in. Of the others each is run in the coarsest dtype
# that it takes, and in the rest by the thorough tests.
ON_VECTORS = [
    pytest.param(
        name,
        dtype,
        marks=[pytest.mark.thorough]
        if name not in BUILTIN and dtype != ADAPTERS[name].dtypes[-1]
        else [],
    )
    for name, dtype in CASES
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize(("name", "dtype"), ON_VECTORS)
def test_the_vectors(name: str, dtype: str, runs: Runs) -> None:
    if name in BUILTIN:
        result = runs.get(runs.implementation(name, dtype, "cpu"), committed.everything)
    else:
        result = runs.of_adapter(name, ADAPTERS[name], dtype, committed.everything)
    assert [v["id"] for v in result["vectors"] if v["status"] == "failed"] == []
    # Features for which the function has no arguments, known errors of PyTorch's flash backend, and
    # nothing else.
    adapter = ADAPTERS[name]
    operations = {"attention", *getattr(adapter, "operations", ())}
    declared = {v.id for v in committed.vectors() if v.operation not in operations}
    for v in (v for v in committed.vectors() if isinstance(v, AttentionVector)):
        wrong = name == "sdpa-flash" and v.mask.kind == "causal" and v.natural_scale <= 0
        if wrong or v.options - adapter.takes:
            declared.add(v.id)
    for v in (v for v in committed.vectors() if isinstance(v, SampledVector)):
        options = v.problems()[0].options | v.own_options
        takes = adapter.takes | (operations & {"dropout"})
        if options - takes or (v.grouped and "grouped-query" not in operations):
            declared.add(v.id)
    if name in ("pyimpl-reference", "pyimpl-tiled"):
        declared -= {v.id for v in committed.vectors() if v.operation in GRADIENTS}
    if isinstance(adapter, TangentsAdapter):
        each = (v for v in committed.vectors() if isinstance(v, TangentVector))
        declared -= {v.id for v in each if v.attention().options <= adapter.takes}
    if name not in ("pyimpl-reference", "pyimpl-tiled") and isinstance(adapter, GradientsAdapter):
        # Of SDPA's backends: one head of keys for each of queries, no log-sum-exp, and the other
        # features that they lack forwards.
        for v in (v for v in committed.vectors() if isinstance(v, GradientVector)):
            wrong = (
                name == "sdpa-flash"
                and any(m.kind == "causal" for m in v.masks)
                and v.natural_scale <= 0
            )
            grouped = v.num_heads != v.num_kv_heads
            if not (wrong or grouped or v.by_log_sum_exp or v.options - adapter.takes):
                declared.discard(v.id)
    declared |= {v.id for v in committed.vectors() if needs_more_bits(v, dtype)}
    assert {v["id"] for v in result["vectors"] if v["status"] == "unsupported"} == declared
    # Nor is the bound so loose that nothing could fail: exact scores use 1 % of it in float64.
    assert 0.01 < result["ratio"] <= 1


@pytest.mark.parametrize(
    "dtype",
    ["bfloat16", *(pytest.param(d, marks=pytest.mark.thorough) for d in ("float32", "float16"))],
)
def test_the_interpreted_kernel_on_the_vectors(dtype: str, runs: Runs) -> None:
    result = runs.get(runs.implementation("pyimpl-triton", dtype, "cpu"), committed.everything)
    vectors = result["vectors"]
    assert [v["id"] for v in vectors if v["status"] == "failed"] == []
    left = {"merge", "cache", "tile-bounds", "philox", "layer", "transformer", "tangent"}
    every = [v for v in committed.vectors() if v.operation not in left]
    taken = {v.id for v in every if not needs_more_bits(v, dtype)}
    assert {v["id"] for v in vectors if v["status"] == "passed"} == taken
    without = {v.id for v in committed.vectors() if v.operation in GRADIENTS}
    passed = [v for v in vectors if v["status"] == "passed" and v["id"] not in without]
    assert all(v["lse_ratio"] is not None for v in passed)


@settings(max_examples=40, deadline=None)
@given(vectors(), st.sampled_from(CASES))
def test_random_exact_vectors(vector: AttentionVector, case: tuple[str, str]) -> None:
    name, dtype = case
    (result,) = run(ADAPTERS[name], [family(vector)], dtype).vectors
    if result.status != "unsupported":
        assert result.status == "passed", result


@st.composite
def batches(draw: st.DrawFn, dtype: str) -> Batch:
    """Real inputs of any spread, rounded to the dtype; no vectors behind them."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q_len, kv_len = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 3, 17, 40, 150]))
    head_dim, value_dim = draw(st.sampled_from([1, 8, 64])), draw(st.sampled_from([1, 4]))
    q = rng.normal(size=(3, 1, q_len, head_dim)) * draw(st.sampled_from([0.01, 1.0, 10.0, 100.0]))
    k = rng.normal(size=(3, 1, kv_len, head_dim))
    v = rng.normal(size=(3, 1, kv_len, value_dim)) * draw(st.sampled_from([1e-6, 1.0, 1e3]))
    v = v + draw(st.sampled_from([0.0, 10.0]))
    kind = draw(st.sampled_from(["none", "causal", "boolean"]))
    mask = None
    if kind == "boolean":
        share = draw(st.sampled_from([0.05, 0.5, 0.95]))
        mask = torch.from_numpy(rng.random((3, 1, q_len, kv_len)) < share)
    scale = draw(st.sampled_from([1 / math.sqrt(head_dim), 1.0, 0.01]))
    q_, k_, v_ = (torch.from_numpy(x).to(DTYPES[dtype]) for x in (q, k, v))
    window = Window(None, 0, 0) if kind == "causal" else None
    return Batch((), q_, k_, v_, mask, scale, window=window)


@settings(max_examples=120, deadline=None)
@given(st.data(), st.sampled_from([c for c in CASES if c[1] != "float64"]))
def test_random_real_inputs(data: st.DataObject, case: tuple[str, str]) -> None:
    name, dtype = case
    adapter = ADAPTERS[name]
    batch = data.draw(batches(dtype))
    q, k, v = (x.double().numpy() for x in (batch.query, batch.key, batch.value))
    visible = np.ones((q.shape[-2], k.shape[-2]), bool)
    if batch.boolean is not None:
        visible = batch.boolean.numpy()
    truth = PyimplReference().run(
        replace(batch, **{x: getattr(batch, x).double() for x in ("query", "key", "value")})
    )
    outputs = adapter.run(batch)
    rounding = adapter.rounding(dtype, "cpu")
    tolerance = attention_tolerance(q, k, v, scale=batch.scale, mask=visible, rounding=rounding)
    error = np.abs(outputs.out.double().numpy() - truth.out.numpy())
    assert (error <= tolerance).all(), (tolerance).max()
    if outputs.lse is not None and truth.lse is not None:
        seen = np.broadcast_to(visible.any(-1), truth.lse.shape)
        tolerance = lse_tolerance(q, k, scale=batch.scale, mask=visible, rounding=rounding)
        error = np.abs(outputs.lse.double().numpy()[seen] - truth.lse.numpy()[seen])
        assert (error <= tolerance[seen]).all()
