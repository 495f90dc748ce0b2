"""The bound of tangents passes right ones, of every implementation, and notices wrong ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import committed
import numpy as np
import pytest
import torch
from torch import Tensor
from torch.func import jvp, vmap

from bridge.conformance.adapters.forward_mode import Tangents, by_jvp, inputs_of
from bridge.conformance.adapters.own import PyimplReference, PyimplTiled, PyimplTriton
from bridge.conformance.adapters.sdpa import SdpaFlash, SdpaMath, SdpaMathReduced
from bridge.conformance.functions.features import Features
from bridge.conformance.judging.judge import describe_failure
from bridge.conformance.judging.run import Result, run
from bridge.conformance.outcomes.outcome import Description, Outcome
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tensors.batch import Batch, Misbehaviour, Outputs
from bridge.conformance.tensors.own_options import keywords, score_options
from bridge.conformance.tolerances import tangents
from bridge.conformance.tolerances.recomputed_weights import Scored
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.tangent_tolerance import Rates, tangent_bounds
from bridge.report.page import page
from bridge.vectors.model.tangents import TangentVector
from pyimpl import attention
from pyimpl.backends import reference

FAMILIES = ("tangent", "tangent-score-mods")
FLOAT32, FLOAT64 = RoundingModel.float32(), RoundingModel.float64()
RIGHT = (PyimplReference, PyimplTiled, SdpaMath, SdpaMathReduced)


def vectors() -> list[TangentVector]:
    return list(committed.vectors("tangent"))


def judge_tangents(adapter: Any, dtype: str) -> Result:
    return run(adapter, committed.families(*FAMILIES), dtype, details=True)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("kind", "dtype"), [(kind, dtype) for kind in RIGHT for dtype in kind.dtypes]
)
def test_every_vector(kind: type[Any], dtype: str) -> None:
    result = judge_tangents(kind(), dtype)
    assert [describe_failure(one) for one in result.to_json()["vectors"]
            if one["status"] == "failed"] == []  # fmt: skip
    count = {"passed": len(vectors()), "unsupported": 0}
    if kind not in (PyimplReference, PyimplTiled):
        count["unsupported"] = sum(bool(v.attention().options - {"bias"}) for v in vectors())
        count["passed"] -= count["unsupported"]
    for status, number in count.items():
        assert sum(one.status == status for one in result.vectors) == number


def test_functions_without_tangents_are_not_judged() -> None:
    for adapter in (SdpaFlash(), PyimplTriton()):
        result = judge_tangents(adapter, "float32")
        assert {one.reason for one in result.vectors} == {"takes no vectors of tangent"}


def test_the_exact_tangents_pass() -> None:
    for vector in vectors():
        right = tangents.expected_tangents(vector)
        assert list(tangents.wrong_tangents(vector, right, FLOAT64)) == []


def test_a_softcap_that_is_reached_leaves_a_tolerance() -> None:
    """In float64 its slope is 0, and 1 − tanh² need not be 0 where tanh is rounded otherwise."""
    q, k, v, zeros = (torch.full((1, 1, 2, 1), x) for x in (64.0, 64.0, 1.0, 0.0))
    rates = Rates(torch.ones_like(q), zeros, zeros)
    _, reached = tangent_bounds(q, k, v, rates, Scored(1.0, softcap=1.0), FLOAT32)
    assert bool((reached.exact == 0).all())
    assert bool((reached.tolerance(FLOAT32.output) > 0).all())


def test_what_is_further_away_is_named() -> None:
    vector = vectors()[1]
    got, bound = tangents.expected_tangents(vector), tangents.tolerances(vector, FLOAT32)
    for name, place in ((tangents.OUTPUT, (1, 0)), (tangents.LSE, (1,))):
        wrong = got[name].copy()
        wrong[place] += 2 * bound[name][place]
        (said,) = tangents.wrong_tangents(vector, {name: wrong}, FLOAT32)
        assert said.startswith(f"{vector.id}: the tangent of {name}{list(place)} is ")
        wrong[place] = math.nan
        (said,) = tangents.wrong_tangents(vector, {name: wrong}, FLOAT32)
        assert "is nan" in said
    with pytest.raises(ValueError, match=r"output is \(2,\), should be"):
        list(tangents.wrong_tangents(vector, {tangents.OUTPUT: np.zeros(2)}, FLOAT32))


@pytest.mark.parametrize("name", FAMILIES)
def test_a_batch_of_rates(name: str) -> None:
    """`vmap` of `jvp`: the rates of the vectors, and −2 times as much."""
    for vector in committed.family(name).vectors[::4]:
        assert isinstance(vector, TangentVector)
        batch, inputs, rates = inputs_of(vector, "float64", "cpu")
        fixed = keywords(score_options(batch))

        def call(*tensors: Tensor, names: Any = tuple(inputs), fixed: Any = fixed) -> Any:
            given = fixed | dict(zip(names, tensors, strict=True))
            return attention(**given, return_lse=True, backend="tiled")

        def forwards(*rates: Tensor, call: Any = call, inputs: Any = inputs) -> Any:
            return jvp(call, tuple(inputs.values()), rates)[1]

        several = [torch.stack([rates[n], -2 * rates[n]]) for n in inputs]
        out, lse = vmap(forwards)(*several)
        named = {tangents.OUTPUT: out[0][0, 0].numpy(), tangents.LSE: lse[0][0, 0].numpy()}
        assert list(tangents.wrong_tangents(vector, named, FLOAT64)) == []
        torch.testing.assert_close((out[1], lse[1]), (-2 * out[0], -2 * lse[0]))


# --- wrong functions ------------------------------------------------------------------------------


class Formulas(PyimplReference):
    """The tangents by their formulas, in the dtype itself, right or with one mistake."""

    def __init__(self, **mistakes: Any) -> None:
        super().__init__()
        self.mistakes = mistakes

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return FLOAT64 if dtype == "float64" else FLOAT32

    def tangents(self, vector: TangentVector, dtype: str, device: str) -> Tangents:
        return by_formulas(*inputs_of(vector, dtype, device), **self.mistakes)


def by_formulas(
    batch: Batch,
    given: Mapping[str, Tensor],
    rates: Mapping[str, Tensor],
    *,
    ignored: str = "",
    scale_power: int = 1,
    mean: float = 1.0,
    softcap_slope: bool = True,
    slope_sign: int = -1,
    sink_in_mean: bool = True,
    lse_mean: float = 1.0,
) -> Tangents:
    """dO = P ∘ (S′ − μ) V + P V′ with μ = Σ p s′, the rate of the log-sum-exp."""
    rates = {n: torch.zeros_like(x) if n == ignored else x for n, x in rates.items()}
    q, k, v = given["query"], given["key"], given["value"]
    options = score_options(batch)
    scores = reference.scores(q, k, options).to(q.dtype)
    raw = options.scale * (q @ k.mT)
    moved = options.scale**scale_power * (rates["query"] @ k.mT + q @ rates["key"].mT)
    if options.softcap is not None and softcap_slope:
        moved = moved * (1 - torch.tanh(raw / options.softcap) ** 2)
    if "alibi_slopes" in rates:
        places = torch.arange(q.shape[2])[:, None] + options.shift
        distance = (places - torch.arange(k.shape[2])).abs().to(q.dtype)
        moved = moved + slope_sign * rates["alibi_slopes"] * distance
    if "bias" in rates:
        moved = moved + rates["bias"]
    moved = moved.masked_fill(scores.isneginf(), 0.0)
    extended = scores
    if "sinks" in given:
        extended = torch.cat((given["sinks"].expand(*scores.shape[:-1], 1), scores), -1)
    lse = torch.logsumexp(extended, -1, keepdim=True)
    dead = lse.isneginf()
    p = torch.where(dead, 0.0, torch.exp(scores - lse.masked_fill(dead, 0.0)))
    mu = (p * moved).sum(-1, keepdim=True)
    if "sinks" in given and sink_in_mean:
        mu = mu + torch.exp(given["sinks"] - lse) * rates["sinks"]
    out = (p * (moved - mean * mu)) @ v + p @ rates["value"]
    return {tangents.OUTPUT: out, tangents.LSE: lse_mean * mu[..., 0]}


# By the mistake, the family that notices, and how.
WRONG: dict[str, tuple[str, dict[str, Any]]] = {
    "the tangent of the values is ignored": ("tangent", {"ignored": "value"}),
    "that of the queries": ("tangent", {"ignored": "query"}),
    "that of the keys": ("tangent", {"ignored": "key"}),
    "the mean rate of the scores is not taken off": ("tangent", {"mean": 0.0}),
    "it is taken off twice": ("tangent", {"mean": 2.0}),
    "the scale is applied twice": ("tangent", {"scale_power": 2}),
    "the scale is left out": ("tangent", {"scale_power": 0}),
    "the log-sum-exp has the tangent 0": ("tangent", {"lse_mean": 0.0}),
    "softcap's slope is left out": ("tangent-score-mods", {"softcap_slope": False}),
    "ALiBi's slope has the other sign": ("tangent-score-mods", {"slope_sign": 1}),
    "the tangent of the slope is ignored": ("tangent-score-mods", {"ignored": "alibi_slopes"}),
    "that of the bias": ("tangent-score-mods", {"ignored": "bias"}),
    "that of the sink": ("tangent-score-mods", {"ignored": "sinks"}),
    "the sink is no part of the mean": ("tangent-score-mods", {"sink_in_mean": False}),
}


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_formulas_pass(dtype: str) -> None:
    """In float32 throughout: the bound is no bound of float64 alone."""
    result = judge_tangents(Formulas(), dtype)
    assert [one.id for one in result.failures] == []
    assert result.ratio is not None
    assert result.ratio > 0.01


@pytest.mark.parametrize("mistake", WRONG)
def test_mistakes_are_noticed(mistake: str) -> None:
    family, how = WRONG[mistake]
    result = run(Formulas(**how), [committed.family(family)], "float32")
    assert result.failures, mistake


def test_the_page_of_failures_shows_rates() -> None:
    """Given and found, of the smallest failed vector on."""
    families = committed.families("tangent-score-mods")
    result = run(Formulas(ignored="sinks"), families, "float32", details=True)
    able = Description(("float32",), Features(("float32",), frozenset(), {}))
    text = page([Outcome(Subject("f"), able, result)], families)
    failed = {one.id for one in result.failures}
    shown = committed.vector(min(result.failures, key=lambda one: one.size or 0).id)
    assert isinstance(shown, TangentVector)
    assert failed == {v.id for v in vectors() if v.sink is not None and v.tangent_sink}
    assert shown.id in text
    for name in ("rates of q", "rates of v", "rate of the sink"):
        assert name in text
    assert str(shown.tangent_q[0][0]) in text


def plant(call: Callable[[Batch, Mapping[str, Tensor]], Outputs]) -> Any:
    class Planted(PyimplReference):
        def tangents(self, vector: TangentVector, dtype: str, device: str) -> Tangents:
            return by_jvp(vector, dtype, device, call)

    return Planted()


def attend(batch: Batch, others: Mapping[str, Tensor]) -> Outputs:
    """The planted functions without their mistakes."""
    options = score_options(batch)
    found = reference.attention(batch.query, batch.key, batch.value, options)
    return Outputs(found[0].to(batch.query.dtype), found[1])


def test_zero_tangents_are_noticed() -> None:
    """An operator without a formula for forward mode, as a plain `custom_op` is: PyTorch gives
    tangents of 0 and says nothing."""

    @torch.library.custom_op("test_tangents::attend", mutates_args=())
    def attend_opaquely(q: Tensor, k: Tensor, v: Tensor, scale: float) -> Tensor:
        return torch.softmax(scale * (q @ k.mT), -1) @ v

    def call(batch: Batch, others: Mapping[str, Tensor]) -> Outputs:
        return Outputs(attend_opaquely(batch.query, batch.key, batch.value, batch.scale))

    vector = committed.vector("tangent-000")
    found = by_jvp(vector, "float64", "cpu", call)
    assert not bool(found[tangents.OUTPUT].any())
    result = run(plant(call), [committed.family("tangent")], "float64")
    assert {one.status for one in result.vectors if one.id == vector.id} == {"failed"}


def test_a_detached_input_is_noticed() -> None:
    """By the values alone, of which the vectors that change one input alone tell."""

    def call(batch: Batch, others: Mapping[str, Tensor]) -> Outputs:
        given: dict[str, Any] = {"value": batch.value.detach()}
        return attend(Batch(**{**vars(batch), **given}), others)

    wrong = {one.id for one in run(plant(call), [committed.family("tangent")], "float64").failures}
    alone = {v.id for v in vectors() if v.reason.startswith("the values alone")}
    blameless = {v.id for v in vectors() if v.reason.startswith(("the queries", "the keys"))}
    assert alone <= wrong
    assert not blameless & wrong


def test_a_function_that_fails_or_has_another_form() -> None:
    def fails(batch: Batch, others: Mapping[str, Tensor]) -> Outputs:
        raise RuntimeError("no forward mode")

    def narrow(batch: Batch, others: Mapping[str, Tensor]) -> Outputs:
        return Outputs(attend(batch, others).out[..., :1])

    result = run(plant(fails), [committed.family("tangent")], "float64")
    assert {one.reason for one in result.vectors} == {"raised RuntimeError: no forward mode"}
    vector = committed.vector("tangent-000")
    with pytest.raises(Misbehaviour, match="has a tangent of the output of shape"):
        by_jvp(vector, "float64", "cpu", narrow)
