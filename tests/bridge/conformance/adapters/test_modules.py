"""The vectors of layers and of a transformer through `pyimpl.modules`, in the dtypes that
`tests/generated` does not run; mutants of the modules; and the bound that judges both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import committed
import pytest
import torch
from torch import nn

from bridge.conformance.adapters import modules
from bridge.conformance.mutants.modules import MODULE_MUTANTS, catch
from bridge.conformance.mutants.planted_package import copied_modules
from bridge.conformance.mutants.planting import Mutant, MutantError
from bridge.conformance.tolerances import first_order
from bridge.conformance.tolerances.first_order import tolerance
from bridge.conformance.tolerances.module_tolerance import NoBound
from bridge.vectors.model.transformers import Enclosed, LayerVector, TransformerVector
from pyimpl.internal.implements import implementations
from pyimpl.modules import FeedForward

DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def layer_vectors() -> list[LayerVector | TransformerVector]:
    kinds = (LayerVector, TransformerVector)
    return [v for v in committed.vectors() if isinstance(v, kinds)]


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_modules_of_few_bits(dtype: torch.dtype) -> None:
    vectors, without = layer_vectors(), []
    for vector in vectors:
        try:
            assert list(modules.wrong(vector, dtype)) == [], vector.id
        except NoBound:
            without.append(vector.id)
    assert len(without) <= len(vectors) // 50


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("dtype", "most"),
    [pytest.param(torch.float32, 1e-3, marks=pytest.mark.thorough), (torch.float64, 1e-11)],
    ids=str,
)
def test_float32_and_float64_have_a_bound_that_shows_a_thousandth(
    dtype: torch.dtype, most: float
) -> None:
    """Relative to the largest number of the result: the bound of each is as small as that, but for
    sums that cancel."""
    loose = set()
    for vector in layer_vectors():
        for part in modules.parts(vector, dtype):
            largest = max(abs(float(x)) for row in part.expected.middle for x in row)
            if float(part.allowed.max()) > most * max(largest, 1.0):
                loose.add(vector.id)
    assert len(loose) <= 6, loose


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "dtype",
    [
        pytest.param(dtype, marks=[] if dtype == torch.float32 else pytest.mark.thorough)
        for dtype in DTYPES
    ],
    ids=str,
)
@pytest.mark.parametrize("mutant", MODULE_MUTANTS, ids=lambda f: f.name)
def test_every_mutant_is_caught_in_every_dtype(mutant: Mutant, dtype: torch.dtype) -> None:
    caught = catch(mutant, committed.everything(), dtype)
    assert caught is not None
    vector_id, clause = caught
    assert vector_id.rpartition("-")[0] in mutant.promising
    assert "times the tolerance away" in clause or "should be" in clause


def test_the_factor_for_the_second_order_may_be_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_order, "SECOND_ORDER", 1.25)
    for vector in layer_vectors()[::4]:
        assert list(modules.wrong(vector, torch.float32)) == [], vector.id


@pytest.mark.sampled(4)
@pytest.mark.parametrize("mutant", MODULE_MUTANTS, ids=lambda f: f.name)
def test_the_factor_for_the_second_order_may_be_larger(
    mutant: Mutant, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_order, "SECOND_ORDER", 16)
    assert catch(mutant, committed.everything(), torch.float32) is not None


def test_the_unedited_copy_passes() -> None:
    before = implementations()
    with copied_modules("modules/residual.py", lambda text: text) as package:
        assert package.Transformer is not modules.pyimpl.modules.Transformer
        for family in {f.promising[0] for f in MODULE_MUTANTS}:
            vectors = committed.family(family).vectors
            for vector in vectors[:4]:
                assert list(modules.wrong(vector, torch.float32, package)) == []  # type: ignore[arg-type]
    assert implementations() == before


def test_the_mutants_have_names_of_their_own_and_apply() -> None:
    names = [f.name for f in MODULE_MUTANTS]
    assert len(set(names)) == len(names) >= 12
    gone = replace(MODULE_MUTANTS[0], old="no such text")
    with pytest.raises(MutantError, match="no longer applies"):
        catch(gone, [], torch.float64)


def move_number(vector: Any, by: int) -> Any:
    """The vector with a first number that is off by so many units of its bounds."""

    def off(part: Enclosed) -> Enclosed:
        sides = []
        for rows in (part.lower, part.upper):
            first = (rows[0][0] + by, *rows[0][1:])
            sides.append((first, *rows[1:]))
        return Enclosed(*sides)

    if isinstance(vector, LayerVector):
        return replace(vector, expected=off(vector.expected))
    return replace(vector, expected_probabilities=off(vector.expected_probabilities))


@pytest.mark.parametrize("name", ["linear", "encoder-layer", "transformer"])
def test_another_result_is_noticed(name: str) -> None:
    vector: Any = committed.family(name).vectors[2]
    assert list(modules.wrong(vector, torch.float32)) == []
    (clause,) = list(modules.wrong(move_number(vector, 1 << 120), torch.float32))[:1]
    assert "times the tolerance away" in clause


def test_another_token_is_noticed() -> None:
    vector: Any = committed.family("transformer").vectors[0]
    other = tuple((t + 1) % len(vector.parameters.target) for t in vector.expected_tokens)
    found = list(modules.wrong(replace(vector, expected_tokens=other), torch.float64))
    assert len(found) == 2 * len(other)
    assert all(clause.startswith("the token after target") for clause in found)


def test_the_bound_of_a_linear_map_by_hand() -> None:
    """One product and a bias: γ(3) and two roundings of |w x| + |b|, twice."""
    module = nn.Linear(1, 1, dtype=torch.float32).requires_grad_(False)
    module.weight.fill_(3.0)
    module.bias.fill_(-5.0)
    x = torch.tensor([[2.0]], dtype=torch.float64)
    out, allowed = tolerance(lambda r: r.linear(x, module), torch.float32)
    u = 2.0**-24
    assert out.item() == 1.0
    assert allowed.item() == pytest.approx(2 * 11 * (3 * u / (1 - 3 * u) + 2 * u), rel=1e-9)


def test_what_a_normalisation_takes_away_does_not_count() -> None:
    """An error that all components share is taken away with the mean; only their own count."""
    norm = nn.LayerNorm(4, dtype=torch.float32).requires_grad_(False)
    x = torch.tensor([[1.0, 2.0, 4.0, 8.0]], dtype=torch.float64)
    shared = torch.full((1, 1), 0.01, dtype=torch.float64)
    _, bare = tolerance(lambda r: r.layer_norm(x, norm), torch.float32)
    _, moved = tolerance(
        lambda r: r.layer_norm(x + r.round(torch.zeros_like(shared), shared), norm), torch.float32
    )
    # Its derivative is 0 but for the rounding of float64: of 4 derivatives, each at most 2 / s,
    # that cancel in a sum, after fewer than 64 operations; and the bounds' sum is taken twice.
    deviation = x.std(unbiased=False)
    rounding = 2 * shared * 4 * 2 / deviation * 64 * torch.finfo(torch.float64).eps
    assert bool(((moved - bare).abs() <= rounding).all())
    _, own = tolerance(lambda r: r.layer_norm(r.round(x, shared), norm), torch.float32)
    assert bool((own > 100 * bare).all())


@pytest.mark.parametrize(
    ("hidden", "allowed"),
    [
        # The error of the one that is on, twice.
        ((1.0, -1.0), 2 * 0.01),
        # Twice 0.01 is 0.016 more than 0.004: either may change its sign.
        ((0.004, -0.004), 2 * 0.01 + 0.016 + 0.016),
        ((1.0, -0.015), 2 * 0.01 + 0.005),
        ((-1.0, -1.0), 0.0),
    ],
)
def test_hidden_numbers_near_0_by_hand(hidden: tuple[float, float], allowed: float) -> None:
    """Two hidden numbers x + b, and their difference: one error of x would cancel from it, did both
    stay on."""
    module = FeedForward(1, 2, dtype=torch.float64).requires_grad_(False)
    module.linear1.weight.fill_(1.0)
    module.linear1.bias.copy_(torch.tensor(hidden))
    module.linear2.weight.copy_(torch.tensor([[1.0, -1.0]]))
    module.linear2.bias.fill_(0.0)
    x, error = torch.zeros(1, 1).double(), torch.full((1, 1), 0.01).double()
    _, found = tolerance(lambda r: r.feed_forward(r.round(x, error), module), torch.float64)
    assert found.item() == pytest.approx(allowed, rel=1e-6, abs=1e-12)


def test_errors_beyond_first_order_have_no_bound() -> None:
    """A share of e^-8, whose logarithm may be off by 5, may come out more than tenfold."""
    x = torch.tensor([[0.0, -8.0]], dtype=torch.float64)
    five = torch.full_like(x, 5.0)
    with pytest.raises(NoBound, match="more than to first order"):
        tolerance(lambda r: r.round(x, five).softmax(-1), torch.float32)
    tolerance(lambda r: r.round(x, five / 1000).softmax(-1), torch.float32)


def test_numbers_that_a_dtype_cannot_hold_are_refused() -> None:
    vector: Any = committed.family("linear").vectors[0]
    large = replace(vector, x=((1 << 20, *vector.x[0][1:]), *vector.x[1:]))
    with pytest.raises(ValueError, match=r"not exact in torch\.float16"):
        list(modules.wrong(large, torch.float16))
