"""Which functions are run, how they are called, and of which versions they are."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch

SDPA = "torch.nn.functional:scaled_dot_product_attention"


@dataclass(frozen=True)
class Called:
    """A function as it is run. name: as `conform` takes it; short: the heading of its column;
    function: what it is; how: what a reader has to know of the call; packages: whose versions
    matter."""

    name: str
    short: str
    function: str
    how: str
    packages: tuple[str, ...] = ("torch",)
    # Those that it is run in; none: all that it takes.
    dtypes: tuple[str, ...] = ()


CALLED = (
    Called(
        SDPA,
        "SDPA",
        "`torch.nn.functional.scaled_dot_product_attention`",
        "As anybody's function (docs/conform.md), with the rounding model `generous`; PyTorch "
        "chooses the backend.",
    ),
    Called(
        "sdpa-flash",
        "SDPA flash",
        "PyTorch's flash backend for CPUs",
        "By `torch.ops.aten._scaled_dot_product_flash_attention_for_cpu`, the operator below SDPA, "
        "which returns the log-sum-exp too. Causal masks are given as `is_causal`, others as "
        "numbers to add. A head_dim other than value_dim is padded with zeros.",
    ),
    Called(
        "sdpa-math",
        "SDPA math",
        "PyTorch's math backend",
        "By SDPA within `sdpa_kernel([SDPBackend.MATH])`. Causal masks are given as `is_causal`, "
        "others as Booleans, or as numbers to add where there is a bias.",
    ),
    Called(
        "sdpa-math-reduced",
        "SDPA math, reduced",
        "PyTorch's math backend in 16 bits, after `allow_fp16_bf16_reduction_math_sdp(True)`",
        "As the math backend.",
    ),
    Called(
        "flex",
        "Flex",
        "`torch.nn.attention.flex_attention`, not compiled",
        "Softcap, slopes and bias as `score_mod`, masks as a block mask.",
    ),
    Called(
        "jax",
        "JAX",
        "`jax.nn.dot_product_attention`, compiled by XLA",
        "With `jax_enable_x64`. Causal masks are given as `is_causal`, windows as "
        "`local_window_size` where that can say them, other masks as Booleans, a bias as `bias`. "
        "XLA compiles each shape for a second or so, so it is run in float32 alone.",
        ("jax", "jaxlib"),
        ("float32",),
    ),
    Called(
        "onnxruntime",
        "ONNX Runtime",
        "the operator Attention of ONNX, operator set 23, by ONNX Runtime's CPU provider",
        "Causal masks are given as `is_causal`, others as Booleans, or as numbers to add where "
        "there is a bias.",
        ("onnxruntime", "onnx"),
    ),
    Called(
        "hf-eager",
        "HF eager",
        "`eager_attention_forward` of transformers' Gemma 2",
        "A masked pair gets the lowest finite number added, as in the masks that transformers "
        "makes.",
        ("transformers", "torch"),
    ),
    Called(
        "pyimpl-tiled",
        "pyimpl",
        "this project's tile loop, for comparison; `make verify` runs all of its implementations",
        "`backends.tiled.flash` with tiles of 4 queries and 8 keys, and the public functions with "
        'backend="tiled".',
    ),
)


def find_function(name: str) -> Called:
    """The function of that name. Raises KeyError where there is none."""
    known = {one.name: one for one in CALLED}
    if name not in known:
        raise KeyError(f"no function {name!r} is run; there are {', '.join(known)}")
    return known[name]


def versions(one: Called) -> dict[str, str]:
    """By package, its version."""
    return {package: metadata.version(package) for package in one.packages}


def machine() -> dict[str, Any]:
    """What results may depend on beside the versions: PyTorch has other kernels for processors with
    other instructions."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": min(torch.get_num_threads(), os.cpu_count() or 1),
    }
