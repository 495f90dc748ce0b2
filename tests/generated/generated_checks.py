"""What the generated tests share; this file is written by hand.

A vector by its id, its numbers as tensors, its options as arguments of `pyimpl`, and the judgement
by the tolerance of `bridge.conformance`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import committed
import pytest
import torch
from torch import Tensor

from bridge.conformance.adapters import modules
from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.judging.judge import describe_failure
from bridge.conformance.judging.run import run
from bridge.conformance.tensors import gradient_inputs
from bridge.conformance.tensors.batch import Batch, Outputs, array
from bridge.conformance.tolerances.gradients import expected_gradients, wrong_gradients
from bridge.conformance.tolerances.rounding_model import FORMATS, RoundingModel
from bridge.conformance.tolerances.states import wrong_states
from bridge.conformance.tolerances.tangents import expected_tangents, wrong_tangents
from bridge.vectors.format.read import READERS
from bridge.vectors.model.attention import AttentionVector, Family, Matrix, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import CacheVector, ComesToAttention
from bridge.vectors.model.tangents import TangentVector
from bridge.vectors.model.transformers import LayerVector, TransformerVector
from pyimpl.state import State

# Every input is exact in both; coarser dtypes hide more.
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["f32", "f64"])


def vectors(family: str, count: int) -> pytest.MarkDecorator:
    """The vectors of a family, by their ids."""
    return pytest.mark.parametrize("vector_id", [f"{family}-{n:03}" for n in range(count)])


# The vector with an id.
vector_of = committed.vector


def tensor(rows: Matrix, dtype: torch.dtype, columns: int | None = None) -> Tensor:
    """A matrix of the vector, `[rows, columns]`; exact in every dtype."""
    return torch.from_numpy(array(rows, columns)).to(dtype)


def scale_of(vector: Any) -> float | None:
    """The scale for weights e^score; None for the default, 1/√head_dim."""
    if vector.scale is None:
        return None
    return float(vector.scale) * (math.log(2.0) if vector.model == "exact" else 1.0)


def visible(vector: Any) -> Tensor:
    """What the mask allows: `[q_len, kv_len]`."""
    columns = range(vector.kv_len)
    return torch.tensor([[vector.mask.visible(i, j) for j in columns] for i in range(vector.q_len)])


def options(vector: AttentionVector, dtype: torch.dtype) -> dict[str, Any]:
    """Mask, softcap, ALiBi, bias and sink as arguments of `pyimpl.attention`: windows by their
    bounds, other masks by what they mean."""
    found: dict[str, Any] = {}
    window, alibi = vector.mask.window, vector.alibi
    if window is not None and alibi is not None and window.shift != alibi.shift:
        # There is one alignment for both.
        window = None
    if window is not None:
        found["window"] = (window.left, window.right)
    elif vector.mask.kind != "none":
        found["attn_mask"] = visible(vector)
    shift = window.shift if window is not None else alibi.shift if alibi is not None else 0
    found["causal_alignment"] = "bottom-right" if shift else "top-left"
    if alibi is not None:
        found["alibi_slopes"] = torch.tensor([float(alibi.slope)], dtype=dtype)
    if vector.softcap is not None:
        found["softcap"] = float(vector.softcap)
    if vector.bias is not None:
        numbers = [[-math.inf if x is None else float(x) for x in row] for row in vector.bias]
        found["bias"] = torch.tensor(numbers, dtype=dtype)
    if vector.sink is not None:
        found["sinks"] = torch.tensor([float(vector.sink)], dtype=dtype)
    return found


def dropped(vector: Any) -> dict[str, Any]:
    """Dropout as arguments of `pyimpl.attention`; none for a vector without it."""
    if not vector.dropout:
        return {}
    return {"dropout_p": float(vector.dropout[0].p), "dropout_seed": vector.dropout_seed}


class _Given(PyimplTiled):
    """Results that are there already, in the place of the function that gave them."""

    operations = frozenset(READERS)

    def __init__(self, outputs: list[Outputs]) -> None:
        super().__init__()
        self.outputs = outputs

    def run(self, batch: Batch) -> Outputs:
        return self.outputs[0]

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        return self.outputs


def judge(vector: Vector, dtype: torch.dtype, *results: tuple[Tensor, Tensor]) -> None:
    """Every element within its tolerance: for each plain problem that the vector comes to an output
    `[1, 1, q_len, value_dim]` and a log-sum-exp `[1, 1, q_len]`."""
    given = _Given([Outputs(out, lse) for out, lse in results])
    family = Family(vector.family, "", vector.operation, vector.model, (vector,))
    report = run(given, [family], str(dtype).removeprefix("torch."))
    (result,) = report.to_json()["vectors"]
    assert result["status"] == "passed", (
        f"{describe_failure(result)}. It is there for: {vector.reason}"
    )


def judge_states(vector: CacheVector, dtype: torch.dtype, states: list[State]) -> None:
    """Every number of the states, of one query each, as near to the exact one as it must be."""
    computed = [(float(s.m[0]), float(s.l[0]), s.o[0].tolist()) for s in states]
    wrong = list(wrong_states(vector, computed, FORMATS[str(dtype).removeprefix("torch.")]))
    assert not wrong, f"{wrong[0]}. It is there for: {vector.reason}"


def judge_gradients(
    vector: GradientVector, dtype: torch.dtype, gradients: Mapping[str, Tensor]
) -> None:
    """Every element of the gradients, by the names of `expected_gradients`, as near to the exact
    one as it must be."""
    assert gradients.keys() == expected_gradients(vector).keys()
    computed = {name: gradient_inputs.array(name, gradient) for name, gradient in gradients.items()}
    rounding = RoundingModel.float64() if dtype == torch.float64 else RoundingModel.float32()
    wrong = list(wrong_gradients(vector, computed, rounding))
    assert not wrong, f"{wrong[0]}. It is there for: {vector.reason}"


def judge_tangents(
    vector: TangentVector, dtype: torch.dtype, tangents: Mapping[str, Tensor]
) -> None:
    """Every element of the tangents of output and log-sum-exp as near to the exact one as it must
    be."""
    assert tangents.keys() == expected_tangents(vector).keys()
    computed = {name: tangent.double().numpy()[0, 0] for name, tangent in tangents.items()}
    rounding = RoundingModel.float64() if dtype == torch.float64 else RoundingModel.float32()
    wrong = list(wrong_tangents(vector, computed, rounding))
    assert not wrong, f"{wrong[0]}. It is there for: {vector.reason}"


def judge_modules(vector: LayerVector | TransformerVector, dtype: torch.dtype) -> None:
    """What `pyimpl.modules` gives for the vector, with a cache too where there is one: every number
    as near to the enclosed one as it must be."""
    found = list(modules.wrong(vector, dtype))
    assert not found, f"{vector.id}: {found[0]}. It is there for: {vector.reason}"
