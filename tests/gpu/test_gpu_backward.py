"""The compiled kernels of the backward pass on a GPU. Run alone: `python -m pytest tests/gpu`.

Skipped where `gpu_device` says.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from attention_checks import score_options
from backward_checks import judge_gradients, public_gradients
from gpu_device import DEVICE, length, needs_gpu, needs_hopper, skip_elsewhere

from pyimpl.backends.kernels.backward import backward
from pyimpl.backends.kernels.forward import forward
from pyimpl.internal.gradients import Wanted

skip_elsewhere()

BACKEND = "triton"
Q_LEN, KV_LEN = length(257), length(300)
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# Sizes of the tensors that are options.
OPTIONS = {
    "plain": {},
    "causal": {"right": 0},
    "window": {"left": length(40), "right": 3, "shift": KV_LEN - Q_LEN},
    "softcap and slopes": {"softcap": 2.0, "alibi_slopes": (1, 4), "sinks": (4,)},
    "bias": {"bias": (4, 1, KV_LEN)},
    "mask": {"mask": (1, 1, Q_LEN, KV_LEN)},
}


def normal(*size: int, dtype: torch.dtype = torch.float32, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator(device=DEVICE).manual_seed(seed + sum(size))
    return torch.randn(*size, generator=generator, device=DEVICE).to(dtype)


def problem(dtype: torch.dtype, name: str, head_dim: int) -> tuple[Any, ...]:
    """query, key, value, options, grad_out and grad_lse; heads are grouped, lengths ragged."""
    query = normal(2, 4, Q_LEN, head_dim, dtype=dtype)
    key, value = (normal(2, 2, KV_LEN, head_dim, dtype=dtype, seed=seed) for seed in (1, 2))
    given = {n: normal(*x) if isinstance(x, tuple) else x for n, x in OPTIONS[name].items()}
    if "mask" in given:
        given["mask"] = given["mask"] > -0.5
        given["mask"][:, :, ::4] = False
    grad_out = normal(*query.shape, dtype=dtype, seed=3)
    grad_lse = normal(*query.shape[:3], seed=4)
    return query, key, value, score_options(query, **given), grad_out, grad_lse


@pytest.mark.parametrize("head_dim", [18, 64, 128, 256])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_are_within_the_tolerance(dtype, name: str, head_dim: int) -> None:
    given = problem(dtype, name, head_dim)
    found = public_gradients(*given, BACKEND)
    judge_gradients(found, *given, computed=torch.float32, weights=dtype, truncating=True)
    again = public_gradients(*given, BACKEND)
    for one in found:
        assert torch.equal(found[one], again[one])


@pytest.mark.parametrize("head_dim", [18, 64, 128, 256])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_by_atomic_additions_are_within_the_tolerance(
    dtype, name: str, head_dim: int
) -> None:
    query, key, value, options, *of_outputs = problem(dtype, name, head_dim)
    found = backward(
        query, key, value, *forward(query, key, value, options), *of_outputs, options, Wanted(),
        atomics=True,
    )  # fmt: skip
    named = {"query": found.query, "key": found.key, "value": found.value}
    judge_gradients(
        {n: x.to(dtype) for n, x in named.items()}, query, key, value, options, *of_outputs,
        computed=torch.float32, weights=dtype, truncating=True,
    )  # fmt: skip


@needs_hopper
@pytest.mark.parametrize(
    ("head_dim", "atomics"), [(64, False), (64, True), (128, False), (128, True), (256, False)]
)
@pytest.mark.parametrize("name", ["plain", "causal", "window"])
@pytest.mark.parametrize("dtype", DTYPES[1:], ids=str)
def test_gradients_by_the_gluon_kernel_are_within_the_tolerance(
    dtype, name: str, head_dim: int, atomics: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All three by Gluon kernels: dQ by its own, or by the additions of the one for dK and dV."""
    from pyimpl.backends.kernels.hopper import backward as on_hopper
    from pyimpl.backends.kernels.hopper import queries

    launched = []

    def note(launch: Any) -> Any:
        return lambda *given, **named: launched.append(launch) or launch(*given, **named)

    wanted = [on_hopper.launch] if atomics else [on_hopper.launch, queries.launch]
    for module in (on_hopper, queries):
        monkeypatch.setattr(module, "launch", note(module.launch))
    query, key, value, options, *of_outputs = problem(dtype, name, head_dim)
    rows = forward(query, key, value, options)

    def compute() -> dict[str, torch.Tensor]:
        found = backward(
            query, key, value, *rows, *of_outputs, options, Wanted(), atomics=atomics, hopper=True,
            hopper_queries=True,
        )  # fmt: skip
        return {"query": found.query, "key": found.key, "value": found.value}

    found = compute()
    assert launched == wanted
    judge_gradients(
        found, query, key, value, options, *of_outputs,
        computed=torch.float32, weights=dtype, truncating=True,
    )  # fmt: skip
    again = compute()
    for one in ("key", "value") if atomics else found:
        assert torch.equal(found[one], again[one])


def gradients(*given: torch.Tensor) -> list[torch.Tensor]:
    query, key, value, grad_out = given
    options = score_options(query)
    return list(public_gradients(query, key, value, options, grad_out, None, BACKEND).values())


@needs_gpu
def test_more_heads_than_a_grid_has_in_y() -> None:
    given = [normal(70_000, 1, n, 16, seed=seed) for seed, n in enumerate((1, 3, 3, 1))]
    found = gradients(*given)
    for one, other in zip(found, gradients(*(x[-1:] for x in given)), strict=True):
        assert torch.equal(one[-1:], other)


@needs_gpu
def test_offsets_past_32_bits() -> None:
    """The second batch element starts 2³¹ elements after the first."""
    if torch.cuda.mem_get_info()[0] < 6 * 2**30:
        pytest.skip("needs 6 GiB of free GPU memory")
    given = [normal(2, 1, 40, 16, dtype=torch.bfloat16, seed=seed) for seed in range(4)]
    expected = gradients(*given)
    buffer = torch.empty(2**31 + 40 * 16, dtype=torch.bfloat16, device=DEVICE)
    for place, tensor in enumerate(given):
        far = buffer.as_strided((2, 1, 40, 16), (2**31, 40 * 16, 16, 1)).copy_(tensor)
        changed = [far if i == place else x for i, x in enumerate(given)]
        for one, other in zip(gradients(*changed), expected, strict=True):
            assert torch.equal(one, other)
