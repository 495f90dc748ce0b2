"""The Gluon backward kernel in the simulator, after the forward kernel."""

from __future__ import annotations

from typing import Any

import pytest
from gluon_cases import GRADIENT_FAMILIES, backward_case, causal, check_family, gradient_case
from planted import PLANTED_BACKWARD

from bridge.gluon.vectors import differences


@pytest.mark.sampled(2)
@pytest.mark.parametrize("head_dim", [64, 128, pytest.param(256, marks=pytest.mark.thorough)])
def test_it_is_the_gradient(head_dim: int) -> None:
    """128: scores come ahead, if it does not add to the gradient of queries. 256: a warp group each
    for keys and for values, without the gradient of queries."""
    assert list(differences(backward_case(), head_dim=head_dim)) == []


@pytest.mark.thorough
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize("bottom_right", [False, True])
def test_it_is_the_gradient_in_many_schedules(
    head_dim: int, stages: int, bottom_right: bool
) -> None:
    mask = causal(50, 140, bottom_right)
    for seed in range(3):
        chosen = {"stages": stages} if stages > 1 else {"stages": 1, "ahead": 0}
        how: dict[str, Any] = {"seed": seed, "head_dim": head_dim, "chosen": chosen}
        assert list(differences(gradient_case(50, 140, mask, (2, 2), seed), **how)) == []


@pytest.mark.sampled(16)
@pytest.mark.parametrize(
    "name",
    # Those of wide heads take longest.
    [
        pytest.param(n, marks=[pytest.mark.thorough] * n.startswith("wide"))
        for n in PLANTED_BACKWARD
    ],
)
def test_what_is_planted_is_seen(name: str) -> None:
    bug = PLANTED_BACKWARD[name]
    bug.check(2, backward_module=bug.module, head_dim=bug.head_dim)


@pytest.mark.parametrize("name", GRADIENT_FAMILIES)
def test_a_vector_of_a_family_has_no_difference(name: str) -> None:
    check_family(name, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", GRADIENT_FAMILIES)
def test_all_vectors_that_it_takes_have_no_difference(name: str) -> None:
    check_family(name)
