"""Where the tests of this folder run: on a GPU.

With ATTENTION_GPU_TESTS=interpreter and TRITON_INTERPRET=1 in the environment they run on the CPU,
a part of them and at smaller lengths: to see that the tests themselves are right.
"""

from __future__ import annotations

import os

import pytest
import torch

ON_GPU = os.environ.get("ATTENTION_GPU_TESTS") != "interpreter"
DEVICE = "cuda" if ON_GPU else "cpu"

needs_gpu = pytest.mark.skipif(not ON_GPU, reason="of no use without a GPU")


needs_hopper = pytest.mark.skipif(
    not (ON_GPU and torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)),
    reason="of a Hopper GPU",
)


def skip_elsewhere() -> None:
    """Skip the module that calls this, unless its tests can run."""
    if ON_GPU and not torch.cuda.is_available():
        pytest.skip("needs a CUDA device", allow_module_level=True)
    from pyimpl.backends.kernels.parts.numerics import INTERPRETED

    if ON_GPU and INTERPRETED.value:
        pytest.skip("TRITON_INTERPRET is set: run tests/gpu alone", allow_module_level=True)


def length(n: int) -> int:
    """`n`, or about a seventh of it where a GPU would be waited for."""
    return n if ON_GPU else -(-n // 7)
