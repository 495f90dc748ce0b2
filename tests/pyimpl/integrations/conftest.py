"""Fixtures of the tests of other libraries' models."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def in_float64() -> Iterator[None]:
    """Use float64: errors of sums in another order are then far below torch's tolerances."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
