"""Vectors for the conformance tests, and Triton in its interpreter."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

# Triton settles when a kernel is defined whether it interprets; nothing has imported it yet.
os.environ["TRITON_INTERPRET"] = "1"

from bridge.vectors.load import load
from bridge.vectors.model import Family


@pytest.fixture(scope="session")
def families() -> list[Family]:
    return load()


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Tensors here are tiny: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
