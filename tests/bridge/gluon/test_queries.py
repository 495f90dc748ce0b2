"""The Gluon kernel for dQ in the simulator, after the forward kernel; `test_backward` has the
vectors' gradients by it."""

from __future__ import annotations

from typing import Any

import pytest
from gluon_cases import WINDOW, causal, gradient_case, queries_case
from planted_queries import PLANTED

from bridge.gluon.vectors import differences

# Several items of a program, one after the other in the same buffers.
FEW = {"processors": 1, "chosen_queries": {"items": 1, "waves": 1}}
QUICK = {
    "keys-released-too-early", "wait-too-weak", "output-not-awaited", "gradient-without-delta",
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("head_dim", [64, 256])
def test_it_is_the_gradient(head_dim: int) -> None:
    """256: each tile of keys to its end before the next."""
    assert list(differences(queries_case(), head_dim=head_dim, **FEW)) == []


@pytest.mark.thorough
@pytest.mark.parametrize("head_dim", [64, 128, 256])
@pytest.mark.parametrize(("in_turns", "items", "values"), [(0, 1, 3), (1, 2, 1), (1, 1, 2)])
def test_it_is_the_gradient_in_many_schedules(
    head_dim: int, in_turns: int, items: int, values: int
) -> None:
    for seed, mask in enumerate((causal(50, 80), causal(50, 80, True), WINDOW)):
        chosen = {"in_turns": in_turns, "items": items, "values": values, "waves": seed % 2}
        how: dict[str, Any] = {"seed": seed, "head_dim": head_dim, "chosen_queries": chosen}
        assert list(differences(gradient_case(50, 80, mask, (2, 2), seed), **how)) == []


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.thorough] * (n not in QUICK)) for n in PLANTED]
)
def test_what_is_planted_is_seen(name: str) -> None:
    bug = PLANTED[name]
    chosen = FEW["chosen_queries"] | dict(bug.chosen)
    how: dict[str, Any] = {**FEW, "queries_module": bug.module, "chosen_queries": chosen}
    bug.check(1, **how, head_dim=bug.head_dim)
