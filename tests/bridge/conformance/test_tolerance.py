"""Properties of the tolerance itself: a number, non-negative, larger for coarser arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import pyimpl
from bridge.conformance.tolerances.rounding_model import FLOAT16, FLOAT32, WHOLE_ROW, RoundingModel
from bridge.conformance.tolerances.tolerance import (
    ScoreChanges,
    attention_tolerance,
    explain,
    lse_tolerance,
)

Array = NDArray[np.float64]

ROUNDING_MODELS = [
    RoundingModel.float64(),
    RoundingModel.float32(),
    RoundingModel.float32(16),
    RoundingModel.widened("float16"),
    RoundingModel.widened("bfloat16", accumulator="float64"),
    RoundingModel.flash("float16", block_n=16, denominator="rounded"),
    RoundingModel.flash("bfloat16", truncating=True),
    replace(RoundingModel.flash("float16", block_n=16), flush_to_zero=True),
    RoundingModel.sdpa_math("bfloat16", reduced=True),
    RoundingModel.sdpa_math("float16", reduced=True),
    RoundingModel.sdpa_flash("bfloat16"),
]


@st.composite
def inputs(draw: st.DrawFn) -> tuple[Array, Array, Array, float, NDArray[np.bool_]]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    q_len, kv_len = draw(st.integers(1, 4)), draw(st.integers(1, 40))
    head_dim, value_dim = draw(st.integers(1, 20)), draw(st.integers(1, 4))
    spread = draw(st.sampled_from([0.0, 1e-4, 1.0, 30.0, 1e4]))
    size = draw(st.sampled_from([0.0, 1e-6, 1.0, 6e4]))
    return (
        rng.normal(size=(q_len, head_dim)) * spread,
        rng.normal(size=(kv_len, head_dim)),
        rng.normal(size=(kv_len, value_dim)) * size,
        draw(st.sampled_from([1.0, math.log(2), 0.125, -3.0, 0.0])),
        rng.random((q_len, kv_len)) < draw(st.sampled_from([0.0, 0.1, 0.7, 1.0])),
    )


@settings(max_examples=60, deadline=None)
@given(inputs(), st.sampled_from(ROUNDING_MODELS))
def test_finite_and_not_negative(
    data: tuple[Array, Array, Array, float, NDArray[np.bool_]], rounding: RoundingModel
) -> None:
    q, k, v, scale, mask = data
    out = attention_tolerance(q, k, v, scale=scale, mask=mask, rounding=rounding)
    lse = lse_tolerance(q, k, scale=scale, mask=mask, rounding=rounding)
    assert out.shape == (len(q), v.shape[1])
    assert lse.shape == (len(q),)
    assert np.isfinite(out).all()
    assert np.isfinite(lse).all()
    seen = mask.any(-1)
    assert (out[seen] > 0).all()
    assert (out[~seen] == 0).all()
    assert (lse[seen] > 0).all()
    assert (lse[~seen] == 0).all()


@settings(max_examples=60, deadline=None)
@given(inputs(), st.sampled_from(ROUNDING_MODELS), st.sampled_from([1, 2, 3, 4, 5, 6, 7]))
def test_coarser_arithmetic_is_allowed_more(
    data: tuple[Array, Array, Array, float, NDArray[np.bool_]], rounding: RoundingModel, change: int
) -> None:
    q, k, v, scale, mask = data
    coarser = {
        1: replace(rounding, accumulation_unit=2 * rounding.accumulation_unit),
        2: replace(rounding, exp_error=2 * rounding.exp_error),
        3: replace(rounding, block_n=None),
        4: replace(rounding, flush_to_zero=True),
        5: replace(rounding, denominator="either"),
        6: replace(rounding, output=replace(rounding.output, unit=2 * rounding.output.unit)),
        7: replace(rounding, operands=rounding.operands or FLOAT32, operand_roundings=2),
    }[change]
    fine = attention_tolerance(q, k, v, scale=scale, mask=mask, rounding=rounding)
    coarse = attention_tolerance(q, k, v, scale=scale, mask=mask, rounding=coarser)
    assert (coarse >= fine * (1 - 1e-12)).all()
    fine = lse_tolerance(q, k, scale=scale, mask=mask, rounding=rounding)
    coarse = lse_tolerance(q, k, scale=scale, mask=mask, rounding=coarser)
    assert (coarse >= fine * (1 - 1e-12)).all()


def test_masked_keys_and_their_values_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(3, 4)), rng.normal(size=(9, 4)), rng.normal(size=(9, 2))
    mask = np.ones((3, 9), bool)
    mask[:, 6:] = False
    rounding = RoundingModel.flash("float16", block_n=WHOLE_ROW)
    before = attention_tolerance(q, k, v, scale=1.0, mask=mask, rounding=rounding)
    k[6:] *= 100
    after = attention_tolerance(q, k, v, scale=1.0, mask=mask, rounding=rounding)
    np.testing.assert_array_equal(after, before)


def test_batches_are_judged_one_by_one() -> None:
    rng = np.random.default_rng(1)
    q, k, v = (rng.normal(size=(2, 3, n, 4)) for n in (5, 70, 70))
    mask = rng.random((2, 1, 5, 70)) < 0.5
    rounding = RoundingModel.flash("bfloat16", block_n=16)
    whole = attention_tolerance(q, k, v, scale=1.0, mask=mask, rounding=rounding)
    for b in range(2):
        for h in range(3):
            one = attention_tolerance(
                q[b, h], k[b, h], v[b, h], scale=1.0, mask=mask[b, 0], rounding=rounding
            )
            np.testing.assert_array_equal(whole[b, h], one)


def test_a_weight_below_the_subnormals_costs_no_more_than_itself() -> None:
    """One key of weight e^−20 and huge value: in float16 it is lost, in float32 it is not."""
    q, k, v = np.array([[1.0]]), np.array([[0.0], [-20.0]]), np.array([[0.0], [60000.0]])
    exact = 60000 * math.exp(-20)
    low = attention_tolerance(
        q, k, v, scale=1.0, rounding=RoundingModel.flash("float16", block_n=2)
    )
    assert exact < low[0, 0] - FLOAT16.smallest_subnormal / 2 < 1.01 * exact
    high = attention_tolerance(q, k, v, scale=1.0, rounding=RoundingModel.float32(2))
    assert high[0, 0] < 1e-4 * exact


def test_equal_values_leave_the_roundings_of_sums_only() -> None:
    """Whatever the weights are, an average of equal values is that value."""
    q, k = np.array([[300.0]]), np.linspace(-1, 1, 64)[:, None]
    v = np.full((64, 1), 8.0)
    tolerance = attention_tolerance(q, k, v, scale=1.0, rounding=RoundingModel.float32(16))
    assert 8.0 * 64 * FLOAT32.unit < tolerance[0, 0] < 8.0 * 200 * FLOAT32.unit


def test_sizes_grow_where_the_values_cancel() -> None:
    """Stored in bfloat16, every weight below a value of 0 is rounded down and every other one up.

    The output stays 0, while the average of the sizes grows by more than that section 3 allows the
    output: the sums are allowed the roundings of all of it.
    """
    zero, beside = [1.0] + 63 * [0.5 * (1 + 0.99 * 2**-8)], 32 * [0.5 * (1 + 1.01 * 2**-8)]
    weights = np.array(zero + beside)
    v = np.array([0.0] * len(zero) + 16 * [10.0, -10.0])[:, None]
    rounding = replace(
        RoundingModel.flash("bfloat16", block_n=96, denominator="rounded"),
        accumulation_unit=2.0**-12,
    )
    terms = explain(
        np.ones((1, 1)), np.log(weights)[:, None], v, scale=1.0, rounding=rounding
    ).terms
    stored = torch.from_numpy(weights).bfloat16().double().numpy()
    size = (stored @ np.abs(v)) / stored.sum()
    roundings = (len(weights) + 2 + 6) * rounding.accumulation_unit
    assert size > (weights @ np.abs(v)) / weights.sum() + terms.stored
    assert terms.sums >= roundings / (1 - roundings) * size


SINK = 2.5


@pytest.mark.parametrize("kv_len", [0, 3])
@pytest.mark.parametrize(
    ("dtype", "rounding"),
    [
        (torch.float64, RoundingModel.float64()),
        (torch.float32, RoundingModel.float32()),
        (torch.bfloat16, RoundingModel.widened("bfloat16")),
    ],
    ids=["float64", "float32", "bfloat16"],
)
def test_a_sink_alone(dtype: torch.dtype, rounding: RoundingModel, kv_len: int) -> None:
    """Without a key, and with every key masked: the output is exactly 0, and the log-sum-exp is the
    sink's score, which a function rounds."""
    rng = np.random.default_rng(2)
    q, k, v = rng.normal(size=(2, 4)), rng.normal(size=(kv_len, 4)), rng.normal(size=(kv_len, 3))
    mask = np.zeros((2, kv_len), bool)
    query, key, value = (torch.from_numpy(x).to(dtype)[None, None] for x in (q, k, v))
    options = {"scale": 0.5, "mask": mask, "rounding": rounding, "changes": ScoreChanges(sink=SINK)}
    allowed = attention_tolerance(q, k, v, **options)
    assert allowed.shape == (2, 3)
    assert (allowed == 0).all()
    dropped = attention_tolerance(q, k, v, **options, factors=np.full(mask.shape, 2.0))
    assert (dropped == 0).all()
    of_lse = lse_tolerance(q, k, **options)
    assert ((of_lse > 0) & (of_lse < 1e-5)).all()
    for backend in ("reference", "tiled"):
        out, lse = pyimpl.attention(
            *(query, key, value),
            attn_mask=torch.from_numpy(mask),
            sinks=torch.tensor([SINK], dtype=dtype),
            return_lse=True,
            backend=backend,
        )
        assert bool((out == 0).all())
        assert (np.abs(lse[0, 0].double().numpy() - SINK) <= of_lse).all()


def test_a_sink_beside_a_key_leaves_its_roundings() -> None:
    q, k, v = np.ones((1, 4)), np.ones((1, 4)), np.ones((1, 3))
    options = {
        "scale": 1.0,
        "rounding": RoundingModel.float32(),
        "changes": ScoreChanges(sink=SINK),
    }
    assert (attention_tolerance(q, k, v, **options) > 1e-8).all()


def test_shapes_that_do_not_fit() -> None:
    q, k, v = np.zeros((2, 3)), np.zeros((4, 3)), np.zeros((4, 2))
    rounding = RoundingModel.float32()
    with pytest.raises(ValueError, match="q has head_dim 3 but k has 2"):
        attention_tolerance(q, v, k, scale=1.0, rounding=rounding)
    with pytest.raises(ValueError, match="k has 4 keys but v has 2"):
        attention_tolerance(q, k, q, scale=1.0, rounding=rounding)
    with pytest.raises(ValueError, match="at least two dimensions"):
        attention_tolerance(q[0], k, v, scale=1.0, rounding=rounding)
    with pytest.raises(ValueError, match="broadcast"):
        attention_tolerance(q, k, v, scale=1.0, mask=np.ones((3, 3), bool), rounding=rounding)
