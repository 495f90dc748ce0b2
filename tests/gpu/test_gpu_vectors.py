"""The compiled kernels on all vectors. Run alone: `python -m pytest tests/gpu`.

Skipped where `gpu_device` says. Of vectors and adapters nothing is imported that needs more than
torch, triton and numpy.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from gpu_device import DEVICE, skip_elsewhere

from bridge.conformance.adapters.builtin import builtin
from bridge.conformance.run import run
from bridge.vectors.format.index import INDEX
from bridge.vectors.load import read_trusted

skip_elsewhere()

FILES = sorted((Path(__file__).parents[1] / "vectors").glob("*.json"))
FAMILIES = {path.stem: path for path in FILES if path.name != INDEX}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", builtin("pyimpl-triton").dtypes)
def test_every_vector_that_the_kernels_take(dtype: str, name: str) -> None:
    result = run(builtin("pyimpl-triton"), [read_trusted(FAMILIES[name])], dtype, DEVICE)
    if all(vector.status == "unsupported" for vector in result.vectors):
        pytest.skip(f"no vector of {name} in {dtype} is for the kernels")
    assert not result.failures, "\n".join(str(vector) for vector in result.failures)
    assert result.ok
