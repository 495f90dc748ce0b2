"""Which implementation runs: "triton", "tiled" or "reference", for all public functions.

This is the one place that knows which operations have a Triton kernel.
"""

from __future__ import annotations

import importlib.util
from typing import Literal

from torch import Tensor

from pyimpl import reference, tiled
from pyimpl._arguments import compute_dtype
from pyimpl._scores import ScoreOptions

Backend = Literal["auto", "triton", "tiled", "reference"]


def forward(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions, backend: Backend
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query` and natural log-sum-exp in `compute_dtype(query.dtype)`.

    Arguments as for `pyimpl.reference.attention`. "auto" is triton on CUDA where it can, otherwise
    tiled.

    Raises:
        ValueError: the backend "triton" does not take these arguments.
        ImportError: backend "triton" where Triton is not installed.
    """
    if backend == "auto":
        wanted = query.is_cuda and triton_installed() and _why_not(query, value, options) is None
        backend = "triton" if wanted else "tiled"
    if backend == "triton":
        if not triton_installed():
            raise ImportError("backend 'triton' needs the package triton, which is not installed")
        return _triton(query, key, value, options)
    if backend == "tiled":
        return tiled.flash(query, key, value, options)
    out, lse = reference.attention(query, key, value, options)
    return out.to(query.dtype), lse.to(compute_dtype(query.dtype))


def triton_installed() -> bool:
    """Whether the package triton can be imported."""
    return importlib.util.find_spec("triton") is not None


def _why_not(query: Tensor, value: Tensor, options: ScoreOptions) -> str | None:
    """The sentence that says why the kernel cannot take these arguments, or None if it can."""
    from pyimpl.kernels.forward import why_not

    lacking = {
        "softcap": options.softcap is not None,
        "alibi_slopes": options.alibi_slopes is not None,
        "bias": options.bias is not None,
        "sinks": options.sinks is not None,
        "window": options.left is not None or options.right not in (None, 0),
        "causal_alignment='bottom-right'": options.right == 0 and options.shift != 0,
        "enable_gqa": query.shape[1] != value.shape[1],
    }
    for name, given in lacking.items():
        if given:
            return f"backend 'triton' does not take {name} yet: use 'auto', 'tiled' or 'reference'"
    return why_not(query, value)


def _triton(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions
) -> tuple[Tensor, Tensor]:
    from pyimpl.kernels import forward as kernel

    refusal = _why_not(query, value, options)
    if refusal is not None:
        raise ValueError(refusal)
    return kernel.forward(
        query, key, value,
        mask=options.mask, is_causal=options.right == 0, scale=options.scale,
    )  # fmt: skip
