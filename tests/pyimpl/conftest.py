"""These tests run the Triton kernels on the CPU, in Triton's interpreter."""

import os
import sys
from collections.abc import Iterator

import pytest
import torch

# Triton reads this when a kernel is defined, so it has to be set before pyimpl.kernels is imported.
os.environ["TRITON_INTERPRET"] = "1"

if "pyimpl.kernels._numerics" in sys.modules:
    from pyimpl.kernels._numerics import INTERPRETED

    if not INTERPRETED.value:
        raise RuntimeError(
            "pyimpl.kernels was imported before tests/pyimpl could set TRITON_INTERPRET=1: "
            "set it for the whole run, or run tests/pyimpl alone"
        )


@pytest.fixture(autouse=True, scope="package")
def one_thread() -> Iterator[None]:
    """Tensors here are tiny: more threads only wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
