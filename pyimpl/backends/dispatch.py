"""Which implementation runs: "triton", "gluon", "tiled" or "reference", for all public functions.

This is the one place that knows which operations have a Triton kernel. "gluon" are kernels for
plain attention on Hopper GPUs; the Triton kernels compute the rest of the backward pass.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable
from typing import Literal

import torch
from torch import Tensor

from pyimpl.backends import reference, reference_backward, tiled, tiled_backward
from pyimpl.internal.arguments import compute_dtype, empty_output
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.scores import ScoreOptions

Backend = Literal["auto", "triton", "gluon", "tiled", "reference"]


def forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    backend: Backend,
    *,
    wide: bool = False,
) -> tuple[Tensor, Tensor]:
    """Output in the dtype of `query`, laid out as `empty_output` does, and natural log-sum-exp in
    `compute_dtype(query.dtype)`, dense.

    Arguments as for `reference.attention`. "auto" is gluon where it was seen right and faster
    (`hopper.choice.is_chosen`), triton on CUDA where it can, otherwise tiled. wide: the output is
    in the dtype of the log-sum-exp too, as outputs over parts of the keys have to be, lest each is
    rounded before they are combined.

    Raises:
        ValueError: the backend "triton" or "gluon" does not take these arguments.
        ImportError: one of these where Triton is not installed.
    """
    if backend == "gluon" or (backend == "auto" and query.is_cuda and not wide):
        found = _by_gluon(query, key, value, options, backend)
        if found is not None:
            return found
    backend = choose_backend(backend, query, value)
    if backend == "triton":
        from pyimpl.backends.kernels.forward import forward as kernel

        return kernel(query, key, value, options, wide=wide)
    if backend == "tiled":
        return tiled.flash(query, key, value, options, wide=wide)
    out, lse = reference.attention(query, key, value, options)
    rounded = empty_output(query, value.shape[-1], wide=wide).copy_(out)
    return rounded, lse.to(compute_dtype(query.dtype))


def backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    wanted: Wanted,
    backend: Backend,
    *,
    delta: Tensor | None = None,
    wide: bool = False,
) -> Gradients:
    """dQ, dK, dV and the other wanted gradients, in any dtype; wide: in
    `compute_dtype(query.dtype)` or wider.

    `out` and `lse` are the results of `forward`, or those over more keys than these, as where keys
    are split; `grad_out` and `grad_lse` (None: 0) are their gradients, of any strides; the rest as
    for `forward`, with the same errors. delta: `row_gradient` of these, where it is known; `out`
    and `grad_lse` are not read then.
    """
    asked = backend
    backend = choose_backend(backend_of_backward(backend), query, value)
    if backend == "triton":
        from pyimpl.backends.kernels.backward import backward as kernels

        on_hopper = None if asked == "auto" else asked == "gluon"
        return kernels(
            query, key, value, out, lse, grad_out, grad_lse, options, wanted,
            delta=delta, wide=wide, hopper=on_hopper, hopper_queries=on_hopper,
        )  # fmt: skip
    if backend == "tiled":
        return tiled_backward.flash_backward(
            query, key, value, out, lse, grad_out, grad_lse, options, wanted,
            delta=delta, wide=wide,
        )  # fmt: skip
    if delta is not None:
        return reference_backward.attention_backward(
            query, key, value, out, lse, grad_out, grad_lse, options, wanted, delta=delta
        )
    # Rows that the forward pass returned are computed anew, without its rounding; others, over more
    # keys than these, count as they are given.
    own_out, own_lse = reference.attention(query, key, value, options)
    own = (lse == own_lse.to(lse.dtype)) & (out == own_out.to(out.dtype)).all(-1)
    out = torch.where(own.unsqueeze(-1), own_out, out.double())
    lse = torch.where(own, own_lse, lse.double())
    return reference_backward.attention_backward(
        query, key, value, out, lse, grad_out, grad_lse, options, wanted
    )


def _by_gluon(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions, backend: Backend
) -> tuple[Tensor, Tensor] | None:
    """Attention by the Gluon kernel; None where "auto" does not take it. Raises as `forward`."""
    if not triton_installed():
        if backend == "auto":
            return None
        raise ImportError("backend 'gluon' needs the package triton, which is not installed")
    from pyimpl.backends.kernels.hopper import choice

    if backend == "auto":
        if not choice.is_chosen(query, key, value, options):
            return None
    elif not choice.IS_WRITTEN_FOR_THIS_TRITON:
        # It cannot import the kernel, which otherwise refuses such a call itself.
        raise ValueError(choice.why_not(query, key, value, None, options))
    from pyimpl.backends.kernels.hopper.forward import forward as kernel

    return kernel(query, key, value, options)


def backend_of_backward(backend: Backend) -> Backend:
    """The backend of the backward pass after a forward pass by this one: where no Gluon kernel
    takes it, the Triton kernels do."""
    return "triton" if backend == "gluon" else backend


def choose_backend(backend: Backend, query: Tensor, value: Tensor) -> Backend:
    """The implementation that runs where there is no Gluon kernel: never "auto".

    Raises:
        ValueError: the backend "triton" does not take these tensors, or it is "gluon".
        ImportError: backend "triton" where Triton is not installed.
    """
    if backend == "gluon":
        raise ValueError(
            "backend 'gluon' has kernels for pyimpl.attention alone; here it must be 'auto', "
            "'triton', 'tiled' or 'reference'"
        )
    if backend == "auto":
        wanted = query.is_cuda and triton_installed() and _why_not(query, value) is None
        return "triton" if wanted else "tiled"
    if backend == "triton":
        if not triton_installed():
            raise ImportError("backend 'triton' needs the package triton, which is not installed")
        refusal = _why_not(query, value)
        if refusal is not None:
            raise ValueError(refusal)
    return backend


@functools.cache
def triton_installed() -> bool:
    """Whether the package triton can be imported."""
    return importlib.util.find_spec("triton") is not None


def _why_not(query: Tensor, value: Tensor) -> str | None:
    """The sentence that says why the kernels cannot take tensors of this kind, or None."""
    return _import_why_not()(query, value)


@functools.cache
def _import_why_not() -> Callable[[Tensor, Tensor], str | None]:
    """Who knows. An import in each call would take as long as the answer."""
    from pyimpl.backends.kernels.parts.launch import why_not

    return why_not
