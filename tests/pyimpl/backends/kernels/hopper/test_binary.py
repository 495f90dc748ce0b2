"""The kernel compiled without a device is checked for the properties that make it fast, and a
change of its text that loses them is seen. A step of `make test` of its own checks that each case
fits."""

from __future__ import annotations

import os

import pytest
from plant_checks import PLANTS, ROOT, THOROUGH, check


@pytest.fixture
def environment() -> dict[str, str]:
    """That of a process which does not interpret."""
    return {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"} | {
        "PYTHONPATH": str(ROOT)
    }


@pytest.mark.thorough
def test_the_binary_keeps_exponentials_beside_products(environment: dict[str, str]) -> None:
    check(PLANTS, environment)


@pytest.mark.thorough
def test_what_else_loses_speed_is_seen(environment: dict[str, str]) -> None:
    check(THOROUGH, environment)
