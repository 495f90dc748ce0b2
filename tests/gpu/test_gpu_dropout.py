"""Dropout in the compiled kernels on a GPU. Run alone: `python -m pytest tests/gpu`.

Skipped without CUDA, or where an earlier test has set Triton's interpreter for the process.
"""

from __future__ import annotations

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from pyimpl import attention, attention_varlen
from pyimpl.dropout import Dropout
from pyimpl.kernels._numerics import INTERPRETED

if INTERPRETED.value:
    pytest.skip("TRITON_INTERPRET is set: run tests/gpu alone", allow_module_level=True)

SEED = 0x1234567890ABCDEF
# As in `test_gpu_backward`, for outputs too.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


def alike(found: list[torch.Tensor], expected: list[torch.Tensor], dtype: torch.dtype) -> None:
    for one, other in zip(found, expected, strict=True):
        error = (one.double() - other.double()).abs().max()
        assert error <= TOLERANCE[dtype] * max(1.0, float(other.abs().max()))


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_the_kernels_keep_what_the_cpu_keeps(p: float, dtype: torch.dtype) -> None:
    """Of equal scores each weight is 1 / kv_len, and of the identity as values the output."""
    query = torch.zeros(2, 3, 300, 64, device="cuda", dtype=dtype)
    value = torch.eye(200, device="cuda", dtype=dtype).expand(2, 3, 200, 200)
    key = torch.zeros(2, 3, 200, 64, device="cuda", dtype=dtype)
    out = attention(query, key, value, dropout_p=p, dropout_seed=SEED, backend="triton")
    expected = Dropout(p, torch.tensor(SEED)).kept(2, 3, range(300), range(200))
    assert torch.equal((out != 0).cpu(), expected)


@pytest.mark.parametrize("head_dim", [18, 64, 128, 256])
@pytest.mark.parametrize("options", [{}, {"is_causal": True}, {"bias": (4, 1, 300)}], ids=str)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_outputs_and_gradients(dtype: torch.dtype, options: dict, head_dim: int) -> None:
    generator = torch.Generator(device="cuda").manual_seed(0)

    def normal(*size: int, kind: torch.dtype = dtype) -> torch.Tensor:
        numbers = torch.randn(*size, generator=generator, device="cuda")
        return numbers.to(kind).requires_grad_()

    given = {"query": normal(2, 4, 257, head_dim)}
    given |= {n: normal(2, 2, 300, head_dim) for n in ("key", "value")}
    if "bias" in options:
        given["bias"] = normal(*options["bias"], kind=torch.float32)
    found = []
    for backend in ("triton", "reference"):
        out = attention(
            **(options | given), enable_gqa=True, dropout_p=0.3, dropout_seed=SEED, backend=backend
        )
        upstream = torch.cos(torch.arange(out.numel(), device="cuda")).view_as(out).to(dtype)
        found.append([out, *torch.autograd.grad(out, list(given.values()), upstream)])
    alike(*found, dtype)


def test_packed_sequences() -> None:
    """The sequences of keys begin at every remainder by 4."""
    lens = ([100, 0, 157, 40], [131, 66, 97, 6])
    sums = [torch.tensor([0, *n], device="cuda").cumsum(0) for n in lens]
    generator = torch.Generator(device="cuda").manual_seed(0)
    shapes = ((297, 4, 64), (300, 2, 64), (300, 2, 64))
    leaves = [
        torch.randn(*shape, generator=generator, device="cuda").requires_grad_() for shape in shapes
    ]
    found = []
    for backend in ("triton", "reference"):
        out = attention_varlen(
            *leaves, *sums, enable_gqa=True, dropout_p=0.3, dropout_seed=SEED, backend=backend
        )
        found.append([out, *torch.autograd.grad(out.cos().sum(), leaves)])
    alike(*found, torch.float32)


def test_a_seed_is_drawn_on_the_device() -> None:
    x = torch.randn(1, 2, 100, 64, device="cuda", dtype=torch.bfloat16)

    def seeded(function) -> list[torch.Tensor]:
        torch.manual_seed(7)
        return [function(x, x, x, dropout_p=0.5, backend="triton") for _ in range(2)]

    first, second = seeded(attention)
    assert not torch.equal(first, second)
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    for again in (seeded(attention), seeded(compiled)):
        assert torch.equal(first, again[0])
        assert torch.equal(second, again[1])
