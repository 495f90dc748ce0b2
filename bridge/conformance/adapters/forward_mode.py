"""Tangents of attention functions: by PyTorch's forward mode, `torch.func.jvp`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.func import jvp

from bridge.conformance.tensors.batch import DTYPES, Batch, Misbehaviour, Outputs, array, stack
from bridge.conformance.tolerances.tangents import LSE, OUTPUT
from bridge.vectors.model.attention import Matrix
from bridge.vectors.model.tangents import TangentVector

# Tangents by the names of `expected_tangents`: `[1, 1, q_len, value_dim]` and `[1, 1, q_len]`.
Tangents = Mapping[str, Tensor]
# The function to differentiate. It takes a batch whose query, key, value and bias carry tangents,
# and by name the slopes and the sinks, `[1]`, where there are any, which do so too.
Function = Callable[[Batch, Mapping[str, Tensor]], Outputs]


def inputs_of(
    vector: TangentVector, dtype: str, device: str
) -> tuple[Batch, dict[str, Tensor], dict[str, Tensor]]:
    """The problem without rates; by the names of `pyimpl.attention` all inputs that change; and
    their rates."""
    batch = stack((vector.attention(),), dtype, device)

    def matrix(rows: Matrix | None) -> Tensor:
        return torch.from_numpy(array(rows or ()))[None, None].to(DTYPES[dtype]).to(device)

    inputs = {name: x for name, x in batch.inputs().items() if name != "mask"}
    rates = {
        "query": matrix(vector.tangent_q),
        "key": matrix(vector.tangent_k),
        "value": matrix(vector.tangent_v),
    }
    if batch.bias is not None:
        rates["bias"] = matrix(vector.tangent_bias)
    others = {
        "alibi_slopes": (batch.slopes(), vector.tangent_slope),
        "sinks": (batch.of_heads().get("sinks"), vector.tangent_sink),
    }
    for name, (given, rate) in others.items():
        if given is not None:
            inputs[name], rates[name] = given, torch.full_like(given, float(rate or 0))
    return batch, inputs, rates


def by_jvp(vector: TangentVector, dtype: str, device: str, function: Function) -> Tangents:
    """The tangents of the function's results. Raises Misbehaviour for tangents of another form."""
    batch, inputs, rates = inputs_of(vector, dtype, device)

    def call(*tensors: Tensor) -> tuple[Tensor, ...]:
        given: dict[str, Any] = dict(zip(inputs, tensors, strict=True))
        others: dict[str, Tensor] = {
            name: given.pop(name) for name in ("alibi_slopes", "sinks") if name in given
        }
        found = function(replace(batch, **given), others)
        return (found.out,) if found.lse is None else (found.out, found.lse)

    # With has_aux it returns three values.
    tangents = jvp(call, tuple(inputs.values()), tuple(rates[name] for name in inputs))[1]
    named = dict(zip((OUTPUT, LSE), tangents, strict=False))
    shape = (1, 1, vector.q_len, vector.value_dim)
    for name, tangent in named.items():
        wanted = shape if name == OUTPUT else shape[:-1]
        if tuple(tangent.shape) != wanted:
            raise Misbehaviour(
                f"has a tangent of the {name} of shape {tuple(tangent.shape)} instead of {wanted}"
            )
    return named
