"""The kernels against attention by definition, in three domains; planted faults are found."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from ttir_cases import FAULTS, NEEDS_COMPILER, with_fault

from bridge.spec.masks import Alignment
from bridge.ttir.compare import Level, Shape, backward, forward

pytestmark = NEEDS_COMPILER

LEVELS: tuple[Level, ...] = ("rational", "formal", "fields")


@pytest.mark.parametrize("level", LEVELS)
def test_forward(level: Level) -> None:
    masked = Shape(heads=2, q_len=20, kv_len=16, window=(None, 0), alignment=Alignment.BOTTOM_RIGHT)
    for shape in (masked, Shape(q_len=17, kv_len=35, window=(3, 2))):
        found = forward(shape, level)
        assert found.equal, found.wrong[:3]
        assert found.elements == shape.heads * shape.q_len * (shape.value_dim + 1)


def test_assumptions_are_reported() -> None:
    assert forward(Shape(), "formal").assumed == {"scale ≥ 0"}


@pytest.mark.parametrize("level", LEVELS)
def test_backward(level: Level) -> None:
    found = backward(Shape(q_len=6, kv_len=4, window=(None, 0)), level)
    assert found.equal, found.wrong[:3]


def test_real_sizes() -> None:
    shape = Shape(
        q_len=300, kv_len=300, head_dim=64, value_dim=64, window=(None, 0), dtype=torch.bfloat16,
        blocks=(128, 128),
    )  # fmt: skip
    assert forward(shape, "fields").equal


def _seen(said: dict[str, str], level: str) -> bool:
    return any(what != "equal" for key, what in said.items() if key.startswith(level))


def test_without_a_fault_all_is_equal(tmp_path: Path) -> None:
    assert set(with_fault(tmp_path, None, "fields").values()) == {"equal"}


def test_an_unscaled_maximum_is_seen_by_the_check_of_exp2_alone(tmp_path: Path) -> None:
    said = with_fault(tmp_path, "maximum not scaled", *LEVELS)
    assert said["formal, full"] == "exp2 of a positive number"
    assert not _seen(said, "fields")


@pytest.mark.thorough
@pytest.mark.parametrize("fault", [name for name in FAULTS if name != "maximum not scaled"])
def test_faults_are_found(tmp_path: Path, fault: str) -> None:
    said = with_fault(tmp_path, fault, "formal", "fields")
    assert _seen(said, "formal"), said
    assert _seen(said, "fields"), said
