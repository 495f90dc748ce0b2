"""Gradients of attention functions: by autograd, or by a backward pass of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.tensors.batch import (
    DTYPES,
    Batch,
    Misbehaviour,
    Outputs,
    is_unchanged,
    stack,
)
from bridge.conformance.tensors.gradient_inputs import ORDER, Inputs, inputs_of
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import GroupedQueryVector
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.scores import DIFFERENTIABLE, ScoreOptions

# Gradients by the names of `expected_gradients`, as `gradient_inputs.array` takes them.
Found = Mapping[str, Tensor]
# A backward pass of `pyimpl`: called as `pyimpl.backends.reference_backward.attention_backward` is.
Backward = Callable[..., Gradients]
_INPUTS = {"q": "query", "k": "key", "v": "value", "bias": "bias"}


def in_one_call(
    problems: Sequence[AttentionVector], group: int, dtype: str, device: str, entries: int = 1
) -> Batch:
    """The problems of query heads that share keys and values, `group` each, as one call of several
    heads of so many entries: query [entries, heads, q_len, head_dim], key and value with fewer
    heads."""
    batch = stack(tuple(problems), dtype, device)

    def heads(tensor: Tensor | None, step: int = 1) -> Tensor | None:
        if tensor is None:
            return None
        return tensor[::step].reshape(entries, -1, *tensor.shape[2:])

    given: dict[str, Any] = {
        "query": heads(batch.query),
        "key": heads(batch.key, group),
        "value": heads(batch.value, group),
        "mask": heads(batch.mask),
        "bias": heads(batch.bias),
    }
    return replace(batch, **given)


def by_autograd(
    vector: GradientVector,
    dtype: str,
    device: str,
    run: Callable[[Batch], Outputs],
    *,
    biased: bool = False,
    by_bias: bool = False,
) -> Found:
    """The gradients of `run`'s results for the heads of the vector. biased: with a bias of 0, if
    the vector has none; by_bias: the gradient by the bias too. Raises Misbehaviour where autograd
    has none."""
    group = vector.num_heads // vector.num_kv_heads
    problems = vector.attentions(biased=biased)
    batch = in_one_call(problems, group, dtype, device, vector.batch)
    leaves = {
        name: tensor.detach().clone().requires_grad_()
        for name, tensor in batch.inputs().items()
        if name != "mask" and (name != "bias" or by_bias)
    }
    given: dict[str, Any] = dict(leaves)
    found = run(replace(batch, **given))
    by = inputs_of(vector, DTYPES[dtype], device=device)
    outputs, grads = [found.out], [by.grad_out]
    if vector.by_log_sum_exp:
        if found.lse is None:
            raise Misbehaviour("returned no log-sum-exp to differentiate")
        outputs, grads = [*outputs, found.lse], [*grads, by.grad_lse.to(found.lse.dtype)]
    # Gradients of sums: PyTorch imports its symbolic shapes where it is given others.
    sums = [(x * grad).sum() for x, grad in zip(outputs, grads, strict=True)]
    gradients = torch.autograd.grad(sums, list(leaves.values()), allow_unused=True)
    named = dict(zip(leaves, gradients, strict=True))
    for name, gradient in named.items():
        if gradient is None:
            raise Misbehaviour(f"has no gradient by {name}")
        if not is_unchanged(leaves[name], getattr(batch, name)):
            raise Misbehaviour(f"changed its inputs: {name}")
    if vector.shares_bias:
        # It was given to every head and query; the sum over them is not the function's.
        named.pop("bias", None)
    return {short: named[name] for short, name in _INPUTS.items() if name in named}


class ByAutograd:
    """The part of adapters whose function autograd can differentiate. by_lse: from the log-sum-exp
    too; by_bias: by a bias too."""

    takes: frozenset[str]
    by_lse = by_bias = False

    def no_gradients(self: Any, vector: GradientVector, device: str) -> str | None:
        heads = GroupedQueryVector.operation
        if vector.num_heads != vector.num_kv_heads and heads not in getattr(self, "operations", ()):
            return f"takes no vectors of {heads}"
        takes = {option.replace("sink", "sinks") for option in self.takes}
        missing = sorted(vector.options - takes)
        if missing:
            return f"takes no {' and no '.join(missing)}"
        if not _alike(vector):
            return "its adapter gives every head the same slope and sink"
        if vector.by_log_sum_exp and not self.by_lse:
            return "has no gradient by the log-sum-exp"
        return None

    def gradients(self: Any, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        """The gradients without a bias and, if there are gradients by one, with a bias of 0."""
        ways = (False, True) if self.by_bias and vector.bias is None else (False,)
        return [
            by_autograd(vector, dtype, device, self.run, biased=way, by_bias=self.by_bias)
            for way in ways
        ]


def _alike(vector: GradientVector) -> bool:
    slopes = () if vector.alibi is None else vector.alibi.slopes
    return len(set(slopes)) <= 1 and len(set(vector.sinks or ())) <= 1


class OwnBackward:
    """The part of adapters whose implementation brings a backward pass: it starts from its own
    forward results, and where the vector has no bias, runs without one and with one of 0."""

    forward: Callable[[Tensor, Tensor, Tensor, ScoreOptions], Outputs]
    backward: Backward

    def no_gradients(self, vector: GradientVector, device: str) -> str | None:
        return None

    def gradients(self: Any, vector: GradientVector, dtype: str, device: str) -> list[Found]:
        ways = (False, True) if vector.bias is None else (False,)
        return [
            self._gradients(inputs_of(vector, DTYPES[dtype], device=device, zero_bias=zero_bias))
            for zero_bias in ways
        ]

    def _gradients(self: Any, given: Inputs) -> Found:
        options, inputs = given.options, given[:3]
        outputs = self.forward(*inputs, options)
        there = options.tensors()
        wanted = Wanted(**{name: one.name in there for name, one in DIFFERENTIABLE.items()})
        by = given.grad_out, given.grad_lse
        found = self.backward(*inputs, outputs.out, outputs.lse, *by, options, wanted)
        each = zip(ORDER, found.round_to_inputs(*inputs, options), strict=True)
        return {name: gradient for name, gradient in each if gradient is not None}
