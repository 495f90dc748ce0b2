"""What the tests of other libraries' models share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch


@pytest.fixture
def in_float64() -> Iterator[None]:
    """Sums in another order are then far from what torch's tolerances notice."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)
