"""Gradients of attention functions: by autograd, or by a backward pass of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.batch import DTYPES, Batch, Misbehaviour, Outputs, stack
from bridge.conformance.gradients import floats
from bridge.vectors.gradients import GradientVector
from bridge.vectors.model import AttentionVector
from bridge.vectors.operations import GroupedQueryVector
from pyimpl._gradients import Gradients, Wanted
from pyimpl._scores import ScoreOptions

# Named as the inputs of a vector: "q", "k", "v", "bias", each [heads, length, columns].
Found = Mapping[str, Tensor]
# A backward pass of `pyimpl`: called as `pyimpl.reference_backward.attention_backward` is.
Backward = Callable[..., Gradients]
_INPUTS = {"q": "query", "k": "key", "v": "value", "bias": "bias"}


def in_one_call(problems: Sequence[AttentionVector], group: int, dtype: str, device: str) -> Batch:
    """The problems of query heads that share keys and values, `group` each, as one batch of several
    heads: query [1, heads, q_len, head_dim], key and value with fewer heads."""
    batch = stack(tuple(problems), dtype, device)

    def heads(tensor: Tensor | None, step: int = 1) -> Tensor | None:
        return None if tensor is None else tensor[::step].transpose(0, 1)

    given: dict[str, Any] = {
        "query": heads(batch.query),
        "key": heads(batch.key, group),
        "value": heads(batch.value, group),
        "mask": heads(batch.mask),
        "bias": heads(batch.bias),
    }
    return replace(batch, **given)


def cotangents(vector: GradientVector, dtype: str, device: str) -> tuple[Tensor, Tensor]:
    """The gradients by the output, [1, heads, q_len, value_dim] in the dtype, and by the
    log-sum-exp, [1, heads, q_len] in float32 (float64 for float64)."""
    wide = torch.float64 if dtype == "float64" else torch.float32
    by_out = torch.from_numpy(floats(vector.grad_output)).to(DTYPES[dtype])[None]
    by_lse = torch.from_numpy(floats([vector.grad_log_sum_exp])).to(wide)
    return by_out.to(device), by_lse.to(device)


def by_autograd(
    vector: GradientVector,
    dtype: str,
    device: str,
    run: Callable[[Batch], Outputs],
    *,
    biased: bool = False,
) -> Found:
    """The gradients by what `run` returns for the heads of the vector. biased: with a bias of 0 and
    the gradient by it. Raises Misbehaviour where autograd knows of none."""
    group = vector.num_heads // vector.num_kv_heads
    batch = in_one_call(vector.attentions(biased=biased), group, dtype, device)
    leaves = {
        name: tensor.detach().clone().requires_grad_()
        for name, tensor in batch.inputs().items()
        if name != "mask"
    }
    given: dict[str, Any] = dict(leaves)
    found = run(replace(batch, **given))
    by_out, by_lse = cotangents(vector, dtype, device)
    outputs, grads = [found.out], [by_out]
    if vector.by_log_sum_exp:
        if found.lse is None:
            raise Misbehaviour("returned no log-sum-exp to differentiate")
        outputs, grads = [*outputs, found.lse], [*grads, by_lse.to(found.lse.dtype)]
    gradients = torch.autograd.grad(outputs, list(leaves.values()), grads, allow_unused=True)
    named = dict(zip(leaves, gradients, strict=True))
    for name, gradient in named.items():
        if gradient is None:
            raise Misbehaviour(f"has no gradient by {name}")
        if not torch.equal(leaves[name], getattr(batch, name)):
            raise Misbehaviour(f"changed its inputs: {name}")
    return {short: named[name][0] for short, name in _INPUTS.items() if name in named}


class ByAutograd:
    """What an adapter has whose function autograd can differentiate, by its output alone unless
    `by_lse`."""

    by_lse = False

    def no_gradients(self: Any, vector: GradientVector) -> str | None:
        heads = GroupedQueryVector.operation
        if vector.num_heads != vector.num_kv_heads and heads not in getattr(self, "operations", ()):
            return f"takes no vectors of {heads}"
        if vector.by_log_sum_exp and not self.by_lse:
            return "has no gradient by the log-sum-exp"
        return None

    def gradients(self: Any, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        return [by_autograd(vector, dtype, device, self.run)]


class OwnBackward:
    """What an adapter has whose implementation brings a backward pass: from what it gives forwards,
    without a bias, and with one of 0."""

    score_options: Callable[[Batch], ScoreOptions]

    def no_gradients(self, vector: GradientVector) -> str | None:
        return None

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        return [self._gradients(vector, dtype, device, biased) for biased in (False, True)]

    def _gradients(
        self: Any, vector: GradientVector, dtype: str, device: str, biased: bool
    ) -> Found:
        group = vector.num_heads // vector.num_kv_heads
        batch = in_one_call(vector.attentions(biased=biased), group, dtype, device)
        options, inputs = self.score_options(batch), (batch.query, batch.key, batch.value)
        outputs = self.run(batch)
        by_outputs = cotangents(vector, dtype, device)
        gradients = self.backward(
            *inputs, outputs.out, outputs.lse, *by_outputs, options, Wanted(bias=biased)
        ).rounded(*inputs, options)
        named = {"q": gradients.query, "k": gradients.key, "v": gradients.value}
        if biased:
            named["bias"] = gradients.bias
        return {name: tensor[0] for name, tensor in named.items()}
