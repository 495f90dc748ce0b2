"""The compiled forward kernel on a GPU. Run alone: `python -m pytest tests/gpu`.

Skipped where `gpu_device` says.
"""

from __future__ import annotations

import math

import pytest
import torch
from gpu_device import DEVICE, length, needs_gpu, skip_elsewhere
from kernel_checks import judge, score_options

from bridge.conformance.tolerances.rounding_model import RoundingModel
from pyimpl import attention
from pyimpl.backends.kernels.forward import forward
from pyimpl.backends.kernels.hopper import choice

skip_elsewhere()

DTYPES = {torch.float32: "float32", torch.float16: "float16", torch.bfloat16: "bfloat16"}
Q_LEN, KV_LEN = length(189), length(300)
SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (2, 3, 37, 53, 24, 40),
    (1, 2, 128, 256, 64, 64),
    (1, 2, length(257), length(511), 80, 96),
    (2, 1, length(300), length(200), 128, 128),
    (1, 1, length(70), length(300), 256, 256),
    (1, 2, 5, 0, 16, 16),
]


def inputs(shape, dtype: torch.dtype, masked: bool):
    batch, heads, q_len, kv_len, head_dim, value_dim = shape
    generator = torch.Generator(device=DEVICE).manual_seed(0)

    def normal(*size: int) -> torch.Tensor:
        return torch.randn(*size, generator=generator, device=DEVICE).to(dtype)

    mask = None
    if masked:
        mask = torch.rand(1, heads, q_len, kv_len, generator=generator, device=DEVICE) < 0.6
        mask[:, :, ::4] = False
    query = normal(batch, heads, q_len, head_dim)
    return (
        query,
        normal(batch, heads, kv_len, head_dim),
        normal(batch, heads, kv_len, value_dim),
        mask,
    )


def check(result, query, key, value, options) -> None:
    """Within the tolerance of a kernel whose matrix unit truncates."""
    dtype = DTYPES[query.dtype]
    rounding = RoundingModel.flash(dtype, denominator="unrounded", truncating=True)
    judge(result, query, key, value, options, rounding)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_against_reference(dtype: torch.dtype, shape, is_causal: bool, masked: bool) -> None:
    query, key, value, mask = inputs(shape, dtype, masked)
    options = score_options(query, mask=mask, is_causal=is_causal)
    result = forward(query, key, value, options)
    check(result, query, key, value, options)
    again = forward(query, key, value, options)
    assert torch.equal(result[0], again[0])


@pytest.mark.parametrize("head_dim", [64, 80, 100, 128, 256])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "changes",
    [
        {"left": length(70), "right": 0, "shift": KV_LEN - Q_LEN},
        {"left": 30, "right": 50},
        {"softcap": 3.0, "right": 0},
        {"alibi_slopes": torch.tensor([[0.5, 0.25, 0.1, -0.3]]), "right": 0},
        {"bias": torch.randn(4, Q_LEN, KV_LEN, generator=torch.Generator().manual_seed(1))},
        {"sinks": torch.tensor([0.5, 3.0, -1.0, -math.inf]), "left": 10, "shift": KV_LEN - Q_LEN},
    ],
    ids=lambda c: "+".join(c),
)
def test_changes_of_the_scores_with_grouped_heads(changes, dtype, head_dim: int) -> None:
    query, key, value, _ = inputs((2, 4, Q_LEN, KV_LEN, head_dim, head_dim), dtype, False)
    key, value = key[:, :2], value[:, :2]
    changes = {n: x.to(DEVICE) if isinstance(x, torch.Tensor) else x for n, x in changes.items()}
    options = score_options(query, **changes)
    check(forward(query, key, value, options), query, key, value, options)


@needs_gpu
def test_auto_is_the_kernel() -> None:
    query, key, value, _ = inputs((1, 2, 64, 64, 64, 64), torch.float16, False)
    options = score_options(query)
    out = forward(query, key, value, options)[0]
    assert torch.equal(attention(query, key, value, backend="triton"), out)
    if not choice.is_chosen(query, key, value, options):
        assert torch.equal(attention(query, key, value), out)


def test_transposed_layout() -> None:
    query, key, value, _ = inputs((2, 4, 100, 130, 64, 64), torch.bfloat16, False)
    expected = forward(query, key, value, score_options(query))[0]
    other = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in (query, key, value)]
    assert torch.equal(forward(*other, score_options(query))[0], expected)


@needs_gpu
def test_more_heads_than_a_grid_has_in_y() -> None:
    query, key, value, _ = inputs((70_000, 1, 1, 3, 16, 16), torch.float32, False)
    out = forward(query, key, value, score_options(query))[0]
    one = forward(query[-1:], key[-1:], value[-1:], score_options(query))[0]
    assert torch.equal(out[-1:], one)


@needs_gpu
def test_offsets_past_32_bits() -> None:
    """The second batch element starts 2³¹ elements after the first."""
    if torch.cuda.mem_get_info()[0] < 6 * 2**30:
        pytest.skip("needs 6 GiB of free GPU memory")
    query, key, value, _ = inputs((2, 1, 40, 40, 16, 16), torch.bfloat16, False)
    expected = forward(query, key, value, score_options(query))[0]
    buffer = torch.empty(2**31 + 40 * 16, dtype=torch.bfloat16, device=DEVICE)
    far = buffer.as_strided((2, 1, 40, 16), (2**31, 40 * 16, 16, 1))
    far.copy_(key)
    assert torch.equal(forward(query, far, value, score_options(query))[0], expected)
    far.copy_(value)
    assert torch.equal(forward(query, key, far, score_options(query))[0], expected)


def test_rows_without_a_key() -> None:
    query, key, value, _ = inputs((1, 1, 150, 200, 64, 64), torch.float16, False)
    mask = torch.zeros(150, 200, dtype=torch.bool, device=DEVICE)
    mask[10, 3] = True
    out, lse = forward(query, key, value, score_options(query, mask=mask))
    assert torch.equal(out[0, 0, 10], value[0, 0, 3])
    mask[10, 3] = False
    out, lse = forward(query, key, value, score_options(query, mask=mask))
    assert bool((out == 0).all())
    assert bool((lse == -math.inf).all())
