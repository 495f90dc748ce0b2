"""The compiled kernels on all vectors. Run alone: `python -m pytest tests/gpu`.

Skipped where `gpu_device` says. Of vectors and adapters nothing is imported that needs more than
torch, triton and numpy.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from gpu_device import DEVICE, skip_elsewhere

from bridge.conformance.adapters.adapter import LayoutsAdapter
from bridge.conformance.adapters.builtin import builtin
from bridge.conformance.judging.run import run
from bridge.vectors.format.index import INDEX
from bridge.vectors.load import read_trusted
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.sampled import SampledGradientVector

skip_elsewhere()

VECTORS = Path(__file__).parents[1] / "vectors"
ADAPTER = builtin("pyimpl-triton")
assert isinstance(ADAPTER, LayoutsAdapter)
TAKEN = {
    *ADAPTER.operations,
    *(kind.operation for kind in (AttentionVector, GradientVector, SampledGradientVector)),
}
FAMILIES = {
    entry["family"]: VECTORS / entry["file"]
    for entry in json.loads((VECTORS / INDEX).read_text("utf-8"))["families"]
    if entry["operation"] in TAKEN
}


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", ADAPTER.dtypes)
def test_every_vector_that_the_kernels_take(dtype: str, name: str) -> None:
    result = run(ADAPTER, [read_trusted(FAMILIES[name])], dtype, DEVICE)
    if all(vector.status == "unsupported" for vector in result.vectors):
        pytest.skip(f"no vector of {name} in {dtype} is for the kernels")
    assert not result.failures, "\n".join(str(vector) for vector in result.failures)
    assert result.ok
