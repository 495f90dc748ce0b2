"""The compiled kernels of the backward pass on a GPU. Run alone: `python -m pytest tests/gpu`.

Skipped without CUDA, or where an earlier test has set Triton's interpreter for the process.
"""

from __future__ import annotations

import pytest
import torch

if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device", allow_module_level=True)

from pyimpl import attention
from pyimpl.kernels._numerics import INTERPRETED

if INTERPRETED.value:
    pytest.skip("TRITON_INTERPRET is set: run tests/gpu alone", allow_module_level=True)

# What rounding to the dtype leaves of a gradient, of normal inputs, beside its largest element.
TOLERANCE = {torch.float32: 1e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}
OPTIONS = {
    "plain": {},
    "causal": {"is_causal": True},
    "window": {"window": (40, 3), "causal_alignment": "bottom-right"},
    "softcap and slopes": {"softcap": 2.0, "alibi_slopes": (4,), "sinks": (4,)},
    "bias": {"bias": (4, 1, 300)},
}


@pytest.mark.parametrize("head_dim", [18, 64, 128, 256])
@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
def test_gradients_are_those_of_the_reference(dtype, name: str, head_dim: int) -> None:
    generator = torch.Generator(device="cuda").manual_seed(0)

    def normal(*size: int, kind: torch.dtype = dtype) -> torch.Tensor:
        numbers = torch.randn(*size, generator=generator, device="cuda")
        return numbers.to(kind).requires_grad_()

    given = {"query": normal(2, 4, 257, head_dim)}
    given |= {n: normal(2, 2, 300, head_dim) for n in ("key", "value")}
    options = dict(OPTIONS[name])
    for option, sizes in options.items():
        if isinstance(sizes, tuple) and option != "window":
            given[option] = normal(*sizes, kind=torch.float32)
    found = []
    for backend in ("triton", "reference"):
        outputs = attention(**(options | given), enable_gqa=True, return_lse=True, backend=backend)
        grads = [torch.cos(torch.arange(x.numel(), device="cuda")).view_as(x) for x in outputs]
        grads = [g.to(x.dtype) for g, x in zip(grads, outputs, strict=True)]
        found.append(torch.autograd.grad(outputs, list(given.values()), grads))
    for one, other in zip(*found, strict=True):
        error = (one.double() - other.double()).abs().max()
        assert error <= TOLERANCE[dtype] * max(1.0, float(other.abs().max()))
