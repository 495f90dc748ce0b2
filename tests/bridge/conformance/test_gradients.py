"""The bound of gradients passes right ones, of every implementation, and notices wrong ones."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product

import committed
import numpy as np
import pytest
import torch

import pyimpl
from bridge.conformance.tensors.gradient_inputs import Floats, array, floats, inputs_of
from bridge.conformance.tolerances import gradients
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.model.gradients import GradientVector

FLOAT32, FLOAT64 = RoundingModel.float32(), RoundingModel.float64()


# The options that these formulas know; the second derivation in `bridge/vectors/exact` knows all.
OPTIONS = {"softcap", "alibi", "bias", "sinks", "dropout"}


def vectors() -> list[GradientVector]:
    return [vector for vector in committed.vectors("gradient") if vector.options <= OPTIONS]


def test_there_are_enough() -> None:
    assert len(vectors()) >= 150
    assert {v.lean for v in vectors()} == {
        "Attention.Spec.groupedQueryVjp",
        "Attention.Spec.sinkVjp",
        "Attention.Spec.vjpDropout",
        "Attention.Spec.flashBackward",
        "Attention.Spec.flashBackwardOneLoop",
    }
    options = Counter(name for v in vectors() for name in v.options)
    assert options.keys() == OPTIONS
    assert min(options.values()) >= 10
    assert sum(v.scale is None for v in vectors()) >= 50


def test_the_exact_gradients_pass() -> None:
    for vector in vectors():
        assert (
            list(gradients.wrong_gradients(vector, gradients.expected_gradients(vector), FLOAT64))
            == []
        )


def test_the_bound_is_of_the_size_of_some_roundings() -> None:
    """A bound that let anything pass would be none: 16-bit roundings are beyond it."""
    for vector in vectors():
        for name, bound in gradients.tolerances(vector, FLOAT32).items():
            right = gradients.expected_gradients(vector)[name]
            largest = max(np.abs(right).max(), np.abs(floats(vector.grad_output)).max())
            assert bound.max() <= 2.0**-8 * 1024 * max(largest, 1.0), (vector.id, name)


def test_what_is_further_away_is_named() -> None:
    vector = next(v for v in vectors() if v.id == "gradient-003")
    for name, bound in gradients.tolerances(vector, FLOAT32).items():
        got = gradients.expected_gradients(vector)
        got[name] = got[name].copy()
        got[name][0, 1, 0] += 2 * bound[0, 1, 0]
        (said,) = gradients.wrong_gradients(vector, got, FLOAT32)
        assert said.startswith(f"gradient-003: d{name}[0, 1, 0] is ")
        got[name][0, 1, 0] = math.nan
        (said,) = gradients.wrong_gradients(vector, got, FLOAT32)
        assert "is nan" in said


def test_a_wrong_shape() -> None:
    vector = vectors()[0]
    with pytest.raises(ValueError, match=r"dq is \(2,\), should be"):
        list(gradients.wrong_gradients(vector, {"q": np.zeros(2)}, FLOAT32))


def gradients_by_autograd(
    vector: GradientVector, backend: str, dtype: torch.dtype, *, zero_bias: bool = True
) -> dict[str, Floats]:
    """The gradients by autograd through `pyimpl.attention`."""
    given = inputs_of(vector, dtype, zero_bias=zero_bias, requires_grad=True)
    outputs = pyimpl.attention(
        given.query,
        given.key,
        given.value,
        **given.keywords(),
        return_lse=True,
        backend=backend,
    )
    by = given.by()
    found = torch.autograd.grad(outputs, list(by.values()), [given.grad_out, given.grad_lse])
    return {name: array(name, g) for name, g in zip(by, found, strict=True)}


# `make verify` runs both on all of them; here each backend, dtype and choice is seen once.
RUNS = [("reference", torch.float64, True), ("tiled", torch.float32, False)]
ALL_RUNS = [
    pytest.param(*run, marks=[] if run in RUNS else pytest.mark.thorough)
    for run in product(("reference", "tiled"), (torch.float32, torch.float64), (True, False))
]


@pytest.mark.parametrize(("backend", "dtype", "zero_bias"), ALL_RUNS)
def test_every_vector(backend: str, dtype: torch.dtype, zero_bias: bool) -> None:
    for vector in vectors():
        rounding = FLOAT64 if dtype == torch.float64 else FLOAT32
        found = gradients_by_autograd(vector, backend, dtype, zero_bias=zero_bias)
        names = set(gradients.expected_gradients(vector))
        assert found.keys() == names - (set() if zero_bias or vector.bias else {"bias"})
        assert list(gradients.wrong_gradients(vector, found, rounding)) == []


@pytest.mark.thorough
def test_triton() -> None:
    """In the interpreter, which is slow: every fourth vector of the exact model."""
    for vector in [v for v in vectors() if v.model == "exact"][::4]:
        found = gradients_by_autograd(vector, "triton", torch.float32)
        assert list(gradients.wrong_gradients(vector, found, FLOAT32)) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("family", committed.names("gradient", "natural"))
def test_triton_with_options(family: str) -> None:
    """Every second with a bias of 0, the rest without one: there tiles need no check."""
    for n, vector in enumerate(v for v in vectors() if v.family == family):
        found = gradients_by_autograd(vector, "triton", torch.float32, zero_bias=n % 2 == 0)
        assert list(gradients.wrong_gradients(vector, found, FLOAT32)) == []


Mutant = Callable[..., tuple[Floats, Floats, Floats, Floats]]


def by_formulas(
    vector: GradientVector,
    *,
    without_delta: bool = False,
    scale_power: int = 1,
    stale_maximum: bool = False,
    group_sum: bool = True,
    masked_kept: bool = False,
    without_lse: bool = False,
    exchanged: bool = False,
    softcap_slope: bool = True,
    slope_sign: int = -1,
    one_sided: bool = False,
    bias_sum: bool = True,
    sink_sign: int = -1,
    sink_in_softmax: bool = True,
    sink_without_lse: bool = False,
) -> dict[str, Floats]:
    """The gradients in float64 as the papers write them, with a mutant."""
    group = vector.num_heads // vector.num_kv_heads
    scale = vector.natural_scale
    q, k, v, dO = map(floats, (vector.q, vector.k, vector.v, vector.grad_output))
    dL = floats([vector.grad_log_sum_exp])[0]
    rows, columns = range(vector.q_len), range(vector.kv_len)
    found = {name: np.zeros_like(x) for name, x in gradients.expected_gradients(vector).items()}
    for h in range(vector.num_heads):
        of = h // group
        seen = np.array([[vector.visible(h, i, j) for j in columns] for i in rows])
        scores = scale * q[h] @ k[of].T
        slope = np.ones_like(scores)
        if vector.softcap is not None:
            cap = float(vector.softcap)
            tanh = np.tanh(scores / cap)
            scores, slope = cap * tanh, 1 - tanh**2 if softcap_slope else slope
        distance = np.zeros_like(scores)
        if vector.alibi is not None:
            place = np.array(rows)[:, None] + vector.alibi.shift - np.array(columns)
            distance = np.maximum(place, 0) if one_sided else np.abs(place)
            scores = scores - float(vector.alibi.slopes[h]) * np.abs(place)
        if vector.bias is not None:
            scores += [[float(vector.bias_at(h, i, j) or 0) for j in columns] for i in rows]
        scores = np.where(seen, scores, -np.inf)
        sink = -np.inf
        if vector.sinks is not None and sink_in_softmax:
            sink = float(vector.sinks[h])
        largest = np.max(scores, axis=1, initial=sink, keepdims=True)
        largest = np.where(np.isneginf(largest), 0.0, largest)
        weights = np.exp(scores - largest)
        total = weights.sum(axis=1, keepdims=True) + np.exp(sink - largest)
        total = np.where(total == 0, 1.0, total)
        p = weights / total
        kept = np.array([[float(vector.factor(h, i, j)) for j in columns] for i in rows])
        out = (p * kept) @ v[of]
        if stale_maximum:
            # P against the maximum of the first half of the keys.
            half = np.max(scores[:, : vector.kv_len // 2 + 1], axis=1, keepdims=True)
            p = p * np.exp(largest - np.where(np.isneginf(half), largest, half))
        if masked_kept:
            p = np.where(seen, p, 1.0 / vector.kv_len)
        delta = 0.0 if without_delta else (dO[h] * out).sum(axis=1, keepdims=True)
        extra = 0.0 if without_lse else dL[h][:, None]
        dS = p * (kept * (dO[h] @ v[of].T) - delta + extra)
        parts = {
            "q": scale**scale_power * (dS * slope) @ k[of],
            "k": scale**scale_power * (dS * slope).T @ q[h],
            "v": (kept * p).T @ dO[h],
        }
        if exchanged and parts["k"].shape == parts["v"].shape:
            parts["k"], parts["v"] = parts["v"], parts["k"]
        found["q"][h] = parts["q"]
        for i in rows:
            place_in_bias = vector.place_in_bias(h, i)
            found["bias"][place_in_bias] = dS[i] + bias_sum * found["bias"][place_in_bias]
        if "slopes" in found:
            found["slopes"][h] = slope_sign * (distance * dS).sum()
        if "sinks" in found:
            by_row = delta - (0.0 if sink_without_lse else extra)
            found["sinks"][h] = sink_sign * (np.exp(sink - largest) / total * by_row).sum()
        for name in "kv":
            if group_sum:
                found[name][of] += parts[name]
            else:
                found[name][of] = parts[name]
    return found


MUTANTS: dict[str, dict[str, object]] = {
    "D missing": {"without_delta": True},
    "scale twice": {"scale_power": 2},
    "scale missing": {"scale_power": 0},
    "P from a stale maximum": {"stale_maximum": True},
    "group sum dropped": {"group_sum": False},
    "masked P not zero": {"masked_kept": True},
    "gradient of the log-sum-exp ignored": {"without_lse": True},
    "dK and dV exchanged": {"exchanged": True},
}
# By the kind of vectors, the family that is there for it.
OPTION_MUTANTS: dict[str, tuple[str, dict[str, object]]] = {
    "derivative of softcap missing": ("gradient-softcap", {"softcap_slope": False}),
    "slopes with the other sign": ("gradient-alibi", {"slope_sign": 1}),
    "one-sided distances": ("gradient-alibi", {"one_sided": True}),
    "bias not summed": ("gradient-bias", {"bias_sum": False}),
    "sinks with the other sign": ("gradient-sinks", {"sink_sign": 1}),
    "sink not in the softmax": ("gradient-sinks", {"sink_in_softmax": False}),
    "sinks without the log-sum-exp": ("gradient-sinks", {"sink_without_lse": True}),
}


def count_caught(mutant: dict[str, object], family: str) -> int:
    """How many vectors of the family see it, in the coarsest arithmetic that is judged."""
    return sum(
        any(gradients.wrong_gradients(v, by_formulas(v, **mutant), FLOAT32))  # type: ignore[arg-type]
        for v in committed.family(family).vectors
    )


def test_the_formulas_without_a_mutant_pass() -> None:
    for vector in vectors():
        assert list(gradients.wrong_gradients(vector, by_formulas(vector), FLOAT64)) == []


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", MUTANTS)
def test_the_drawn_vectors_catch_every_mutant(name: str) -> None:
    assert count_caught(MUTANTS[name], "gradient-drawn") >= 3


@pytest.mark.parametrize("name", [n for n in MUTANTS if n != "group sum dropped"])
def test_the_vectors_of_one_head_catch_every_mutant_of_one_head(name: str) -> None:
    assert count_caught(MUTANTS[name], "gradient") >= 1


@pytest.mark.parametrize("name", OPTION_MUTANTS)
def test_the_vectors_of_an_option_catch_its_mutants(name: str) -> None:
    family, mutant = OPTION_MUTANTS[name]
    assert count_caught(mutant, family) >= 3


@pytest.mark.parametrize("name", [n for n in MUTANTS if n != "dK and dV exchanged"])
def test_all_options_together_catch_every_mutant(name: str) -> None:
    assert count_caught(MUTANTS[name], "gradient-score-mods") >= 1
