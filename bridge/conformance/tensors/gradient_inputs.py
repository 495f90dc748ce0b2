"""A vector of gradients as inputs of `pyimpl`, and the results as the arrays that are judged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from bridge.conformance.tensors.batch import read_only
from bridge.conformance.tensors.own_options import keywords
from bridge.vectors.model.attention import Matrix
from bridge.vectors.model.gradients import PER_HEAD, GradientVector
from bridge.vectors.model.kept import keep
from bridge.vectors.model.sampled import visible_pairs
from pyimpl.internal.arguments import compute_dtype
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.scores import DIFFERENTIABLE, ScoreOptions

Floats = npt.NDArray[np.float64]

# The fields of `pyimpl.internal.gradients.Gradients`, by the names of `expected_gradients`.
ORDER = ("q", "k", "v", *DIFFERENTIABLE)


def floats(matrices: Sequence[Matrix]) -> Floats:
    """Exact numbers, rounded to float64."""
    return np.array([[[float(x) for x in row] for row in m] for m in matrices])


def visible(vector: GradientVector) -> npt.NDArray[np.bool_]:
    """The pairs that the masks allow: [1, 1, q_len, kv_len], or [batch, heads, q_len, kv_len] where
    there is one for each head."""
    each = [visible_pairs(mask, tuple(range(vector.q_len)), vector.kv_len) for mask in vector.masks]
    outer = (1, 1) if len(each) == 1 else (vector.batch, -1)
    return np.stack(each).reshape(*outer, vector.q_len, vector.kv_len)


@keep
def floats_of(vector: GradientVector) -> dict[str, Floats]:
    """The numbers of a vector by the names of its fields, of the given ones alone."""
    names = ("q", "k", "v", "grad_output", "grad_log_sum_exp", "bias", *PER_HEAD)
    given = {name: getattr(vector, name) for name in names}
    given["slopes"] = None if vector.alibi is None else vector.alibi.slopes
    exact = np.vectorize(_float, otypes=[np.float64])
    return {
        name: read_only(exact(np.array(numbers, dtype=object)))
        for name, numbers in given.items()
        if numbers is not None
    }


class Inputs(NamedTuple):
    """Tensors `[batch, heads, length, size]`, the gradient of the log-sum-exp
    `[batch, heads, q_len]`."""

    query: Tensor
    key: Tensor
    value: Tensor
    grad_out: Tensor
    grad_lse: Tensor
    options: ScoreOptions

    def keywords(self) -> dict[str, Any]:
        """The options as arguments of `pyimpl.attention`."""
        return keywords(self.options)

    def by(self) -> dict[str, Tensor]:
        """The tensors by which there is a gradient, in the order of `ORDER`."""
        others = (getattr(self.options, change.name) for change in DIFFERENTIABLE.values())
        all_of_them = zip(ORDER, (self.query, self.key, self.value, *others), strict=True)
        return {name: x for name, x in all_of_them if x is not None}


def inputs_of(
    vector: GradientVector,
    dtype: torch.dtype,
    *,
    device: str = "cpu",
    zero_bias: bool = True,
    requires_grad: bool = False,
) -> Inputs:
    """The tensors of a vector. A window is given by its bounds where ALiBi counts from the same
    place, else as the mask that it is.

    Slopes, sinks and the gradient of the log-sum-exp are in float32 at least.

    zero_bias: a vector without a bias gets one of 0, so that the gradients by the scores are
    judged. requires_grad: all that there is a gradient by asks for it.
    """

    wide = compute_dtype(dtype)

    numbers = floats_of(vector)

    def tensor(name: str, dtype: torch.dtype = dtype) -> Tensor:
        return torch.tensor(numbers[name]).to(dtype).to(device)

    def by_entry(name: str, dtype: torch.dtype = dtype) -> Tensor:
        found = tensor(name, dtype)
        return found.reshape(vector.batch, -1, *found.shape[1:])

    def require_grad(x: Tensor) -> Tensor:
        return x.requires_grad_(requires_grad)

    per_head: dict[str, Any] = {
        name: require_grad(tensor(name, wide)) for name in PER_HEAD if name in numbers
    }
    bias = None
    if vector.bias is not None:
        bias = require_grad(by_entry("bias"))
    elif zero_bias:
        sizes = (vector.batch, vector.num_heads // vector.batch, vector.q_len, vector.kv_len)
        bias = require_grad(torch.zeros(sizes, dtype=dtype, device=device))
    first, *others = vector.masks
    window, mask = None if others else first.window, None
    shift = 0 if vector.alibi is None else vector.alibi.shift
    if window is not None and vector.alibi is None:
        shift = window.shift
    if window is not None and window.shift != shift:
        window = None
    if window is None and (others or first.kind != "none"):
        mask = torch.from_numpy(visible(vector)).to(device)
    return Inputs(
        require_grad(by_entry("q")),
        require_grad(by_entry("k")),
        require_grad(by_entry("v")),
        by_entry("grad_output"),
        by_entry("grad_log_sum_exp", wide),
        ScoreOptions(
            scale=vector.natural_scale,
            softcap=None if vector.softcap is None else float(vector.softcap),
            alibi_slopes=None
            if vector.alibi is None
            else require_grad(tensor("slopes", wide)[None]),
            bias=bias,
            mask=mask,
            left=None if window is None else window.left,
            right=None if window is None else window.right,
            shift=shift,
            **per_head,
            dropout=_dropout(vector, device),
        ),
    )


def _dropout(vector: GradientVector, device: str) -> Dropout | None:
    if not vector.dropout or vector.dropout[0].p == 0:
        return None
    seed = torch.tensor(vector.dropout_seed, dtype=torch.int64, device=device)
    return Dropout(float(vector.dropout[0].p), seed)


def array(name: str, gradient: Tensor) -> Floats:
    """A gradient of the input of this name, of the shape of `expected_gradients`."""
    found = gradient.detach().double().cpu().numpy()
    return np.asarray(found if name in PER_HEAD else found.reshape(-1, *found.shape[2:]))


def _float(x: Any) -> float:
    return -math.inf if x is None else float(x)
