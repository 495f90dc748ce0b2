"""The bound of gradients passes what is right, in every implementation, and notices what is not."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch

import pyimpl
from bridge.conformance import gradients
from bridge.conformance.gradients import Floats
from bridge.vectors.gradients import GradientVector
from bridge.vectors.load import default_directory, load

VECTORS = [v for f in load(default_directory()) for v in f.vectors if isinstance(v, GradientVector)]
FLOAT32, FLOAT64 = 2.0**-24, 2.0**-53


def test_there_are_enough() -> None:
    assert len(VECTORS) >= 150
    assert {v.lean for v in VECTORS} == {
        "Attention.Spec.groupedQueryVjp",
        "Attention.Spec.flashBackward",
        "Attention.Spec.flashBackwardOneLoop",
    }


def test_the_exact_gradients_pass() -> None:
    for vector in VECTORS:
        assert list(gradients.wrong_gradients(vector, gradients.expected(vector), FLOAT64)) == []


def test_the_bound_is_of_the_size_of_some_roundings() -> None:
    """A bound that let anything pass would be none: 16-bit roundings are beyond it."""
    for vector in VECTORS:
        for name, bound in gradients.allowances(vector, FLOAT32).items():
            right = gradients.expected(vector)[name]
            largest = max(np.abs(right).max(), np.abs(gradients.floats(vector.grad_output)).max())
            assert bound.max() <= 2.0**-8 * 1024 * max(largest, 1.0), (vector.id, name)


def test_what_is_further_away_is_named() -> None:
    vector = next(v for v in VECTORS if v.id == "gradient-003")
    for name, bound in gradients.allowances(vector, FLOAT32).items():
        got = gradients.expected(vector)
        got[name] = got[name].copy()
        got[name][0, 1, 0] += 2 * bound[0, 1, 0]
        (said,) = gradients.wrong_gradients(vector, got, FLOAT32)
        assert said.startswith(f"gradient-003: d{name}[0, 1, 0] is ")
        got[name][0, 1, 0] = math.nan
        (said,) = gradients.wrong_gradients(vector, got, FLOAT32)
        assert "is nan" in said


def test_a_wrong_shape() -> None:
    vector = VECTORS[0]
    with pytest.raises(ValueError, match=r"dq is \(2,\), should be"):
        list(gradients.wrong_gradients(vector, {"q": np.zeros(2)}, FLOAT32))


def computed(vector: GradientVector, backend: str, dtype: torch.dtype) -> dict[str, Floats]:
    """The gradients by autograd through `pyimpl.attention`."""

    def given(matrices: object) -> torch.Tensor:
        return torch.from_numpy(gradients.floats(matrices)).to(dtype)[None]

    inputs = [given(m).requires_grad_() for m in (vector.q, vector.k, vector.v)]
    bias = torch.zeros(1, vector.num_heads, vector.q_len, vector.kv_len, dtype=dtype)
    bias.requires_grad_()
    outputs = pyimpl.attention(
        *inputs,
        scale=float(vector.scale) * math.log(2.0),
        attn_mask=torch.from_numpy(gradients.visible(vector)),
        bias=bias,
        enable_gqa=True,
        return_lse=True,
        backend=backend,
    )
    by = [given(vector.grad_output), given([vector.grad_log_sum_exp])[0]]
    found = torch.autograd.grad(outputs, [*inputs, bias], by)
    return {name: g[0].double().numpy() for name, g in zip(gradients.NAMES, found, strict=True)}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("backend", ["reference", "tiled"])
def test_every_vector(backend: str, dtype: torch.dtype) -> None:
    for vector in VECTORS:
        unit = torch.finfo(dtype).eps / 2
        assert list(gradients.wrong_gradients(vector, computed(vector, backend, dtype), unit)) == []


def test_triton() -> None:
    """In the interpreter, which is slow: every fourth vector."""
    for vector in VECTORS[::4]:
        found = computed(vector, "triton", torch.float32)
        assert list(gradients.wrong_gradients(vector, found, FLOAT32)) == []


Fault = Callable[..., tuple[Floats, Floats, Floats, Floats]]


def by_formulas(
    vector: GradientVector,
    *,
    without_delta: bool = False,
    scale_power: int = 1,
    stale_maximum: bool = False,
    group_sum: bool = True,
    masked_kept: bool = False,
    without_lse: bool = False,
    exchanged: bool = False,
) -> dict[str, Floats]:
    """The gradients in float64 as the papers write them, with a fault."""
    group = vector.num_heads // vector.num_kv_heads
    scale = float(vector.scale) * math.log(2.0)
    q, k, v, dO = map(gradients.floats, (vector.q, vector.k, vector.v, vector.grad_output))
    dL = gradients.floats([vector.grad_log_sum_exp])[0]
    seen = gradients.visible(vector)
    found = {name: np.zeros_like(x) for name, x in gradients.expected(vector).items()}
    for h in range(vector.num_heads):
        of = h // group
        scores = np.where(seen, scale * q[h] @ k[of].T, -np.inf)
        largest = np.max(scores, axis=1, keepdims=True)
        largest = np.where(np.isneginf(largest), 0.0, largest)
        weights = np.exp(scores - largest)
        total = weights.sum(axis=1, keepdims=True)
        p = weights / np.where(total == 0, 1.0, total)
        out = p @ v[of]
        if stale_maximum:
            # P against the maximum of the first half of the keys.
            half = np.max(scores[:, : vector.kv_len // 2 + 1], axis=1, keepdims=True)
            p = p * np.exp(largest - np.where(np.isneginf(half), largest, half))
        if masked_kept:
            p = np.where(seen, p, 1.0 / vector.kv_len)
        delta = 0.0 if without_delta else (dO[h] * out).sum(axis=1, keepdims=True)
        extra = 0.0 if without_lse else dL[h][:, None]
        dS = p * (dO[h] @ v[of].T - delta + extra)
        parts = {
            "q": scale**scale_power * dS @ k[of],
            "k": scale**scale_power * dS.T @ q[h],
            "v": p.T @ dO[h],
        }
        if exchanged and parts["k"].shape == parts["v"].shape:
            parts["k"], parts["v"] = parts["v"], parts["k"]
        found["q"][h], found["bias"][h] = parts["q"], dS
        for name in "kv":
            if group_sum:
                found[name][of] += parts[name]
            else:
                found[name][of] = parts[name]
    return found


FAULTS: dict[str, dict[str, object]] = {
    "D missing": {"without_delta": True},
    "scale twice": {"scale_power": 2},
    "scale missing": {"scale_power": 0},
    "P from a stale maximum": {"stale_maximum": True},
    "group sum dropped": {"group_sum": False},
    "masked P not zero": {"masked_kept": True},
    "gradient of the log-sum-exp ignored": {"without_lse": True},
    "dK and dV exchanged": {"exchanged": True},
}


def caught(fault: dict[str, object], family: str) -> int:
    """How many vectors of the family see it, in the coarsest arithmetic that is judged."""
    vectors = [v for v in VECTORS if v.family == family]
    return sum(
        any(gradients.wrong_gradients(v, by_formulas(v, **fault), FLOAT32))  # type: ignore[arg-type]
        for v in vectors
    )


def test_the_formulas_without_a_fault_pass() -> None:
    for vector in VECTORS:
        assert list(gradients.wrong_gradients(vector, by_formulas(vector), FLOAT64)) == []


@pytest.mark.parametrize("name", FAULTS)
def test_the_drawn_vectors_catch_every_fault(name: str) -> None:
    assert caught(FAULTS[name], "gradient-drawn") >= 3


@pytest.mark.parametrize("name", [n for n in FAULTS if n != "group sum dropped"])
def test_the_vectors_of_one_head_catch_every_fault_of_one_head(name: str) -> None:
    assert caught(FAULTS[name], "gradient") >= 1
