"""Ring attention between processes: `Attention.Spec.ring`, forward and backward, as one autograd
function.

Every process keeps its queries. The keys and values go around: in each round a process takes those
that it holds into the outputs and log-sum-exps of its queries (`pyimpl.merge.combine`), while they
are sent on to the next process and the next ones arrive in another buffer. After `needed_rounds`
every query has met every key that it may see. Backward the keys and values go around once more,
followed by the sums of their gradients, which return to the owner at the end.
Source: Liu, Zaharia and Abbeel 2023, algorithm 1; Dao 2023, "FlashAttention-2", algorithm 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Numbers
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from pyimpl.autograd.attention import (
    as_flat,
    by_option,
    no_second_derivative,
    restore,
    save,
    wanted_gradients,
)
from pyimpl.backends.dispatch import Backend, backward, forward
from pyimpl.distributed.internal.blocks import Block, Sequence, blocks, needed_rounds
from pyimpl.distributed.internal.passing import GRADIENTS, KEYS, Carousel, Processes
from pyimpl.internal.arguments import compute_dtype, empty_output
from pyimpl.internal.gradients import Gradients, Wanted, row_gradient, sink_gradient, sum_to
from pyimpl.internal.implements import implements
from pyimpl.internal.scores import ScoreOptions, checked_numbers, cut, folds_into_query
from pyimpl.merge import combine

EVERY = slice(None)


@dataclass(frozen=True)
class Ring:
    """A call without its tensors and options: the processes, the shard of the sequence that each
    holds, and the backend of each process's own computation."""

    processes: Processes
    sequence: Sequence
    backend: Backend

    def options(self, flat: tuple[Any, ...], query: Tensor) -> ScoreOptions:
        """The options of `ScoreOptions.flat` as `blocks` takes them."""
        options = checked_numbers(ScoreOptions.of_flat(*flat), query.dtype)
        return replace(options, mask=as_4d(options.mask), bias=as_4d(options.bias))

    def blocks(self, source: int, options: ScoreOptions, query: Tensor) -> Iterator[Block]:
        """The queries of this process with the keys of process `source`."""
        return blocks(self.sequence, self.processes.rank, source, options, query)

    def backend_of(self, block: Block) -> Backend:
        """Of "auto" the backend for a block: the kernels number queries and keys one after another,
        of which dropout makes others where places are compared one by one."""
        dropout = block.options.dropout
        one_by_one = dropout is not None and dropout.query_numbers is not None
        return "tiled" if one_by_one and self.backend == "auto" else self.backend

    @implements("Attention.Spec.takeShard")
    @implements("Attention.Spec.takeMet")
    def take_in(
        self,
        out: Tensor,
        lse: Tensor,
        source: int,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        options: ScoreOptions,
    ) -> None:
        """Take the keys and values of process `source` into the outputs and log-sum-exps of the
        queries of this one, in `compute_dtype(query.dtype)`."""
        for block in self.blocks(source, options, query):
            rows, keys = block.rows, block.keys
            found = forward(
                query[:, :, rows], key[:, :, keys], value[:, :, keys], block.options,
                self.backend_of(block), wide=True,
            )  # fmt: skip
            before = out[:, :, rows], lse[:, :, rows]
            outs, lses = (torch.stack(pair) for pair in zip(before, found, strict=True))
            out[:, :, rows], lse[:, :, rows] = combine(outs, lses)

    @implements("Attention.Spec.ringProgram")
    def rounds(self, key: Tensor, value: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        """Whose keys and values are held, and these, in each round; the next are on their way
        while a round lasts."""
        batch, heads, _, head_dim = key.shape
        width = (head_dim, value.shape[-1])
        lengths = self.sequence.keys.lengths
        own = torch.cat((key.flatten(), value.flatten()))
        sizes = [batch * heads * n * sum(width) for n in lengths]
        carousel = Carousel(self.processes, sizes, own, KEYS)
        count = needed_rounds(self.sequence)
        held = own
        for t in range(count):
            number = carousel.number
            if t + 1 < count:
                carousel.pass_on()
            yield number, *as_pair(held, (batch, heads, lengths[number]), width)
            if t + 1 < count:
                held = carousel.arrive()


def as_4d(pairs: Tensor | None) -> Tensor | None:
    """A mask or bias as `[batch|1, heads|1, q_len|1, kv_len|1]`."""
    return None if pairs is None else pairs.view((1,) * (4 - pairs.dim()) + pairs.shape)


def as_pair(message: Tensor, shape: Numbers[int], width: tuple[int, int]) -> tuple[Tensor, Tensor]:
    """Keys and values, `[*shape, width]`, of one message that holds them one after the other."""
    size = math.prod(shape) * width[0]
    return message[:size].view(*shape, width[0]), message[size:].view(*shape, width[1])


@folds_into_query
@implements("Attention.Spec.ring")
@implements("Attention.Spec.RingNet.outputs")
def ring_forward(
    query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions, ring: Ring
) -> tuple[Tensor, Tensor]:
    """Output and natural log-sum-exp of the queries of this process over the keys of all, both in
    `compute_dtype(query.dtype)`.

    query, key, value: of this process, `[batch, heads, q_len, head_dim]` and so on; options: as for
    `blocks`. The outputs over parts of the keys are combined unrounded.
    """
    wide = compute_dtype(query.dtype)
    out = query.new_zeros(*query.shape[:-1], value.shape[-1], dtype=wide)
    lse = query.new_full(query.shape[:-1], -torch.inf, dtype=wide)
    if options.sinks is not None:
        # A sink counts once: a query has seen it before all keys.
        lse = options.sinks.to(wide).view(1, -1, 1).expand(query.shape[:-1]).clone()
    options = replace(options, sinks=None)
    for source, k, v in ring.rounds(key, value):
        ring.take_in(out, lse, source, query, k, v, options)
    return out, lse


@folds_into_query
@implements("Attention.Spec.backwardProgram")
@implements("Attention.Spec.takeParcel")
@implements("Attention.Spec.takeParcelMet")
@implements("Attention.Spec.RingNet.gradients")
def ring_backward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    lse: Tensor,
    grad_out: Tensor,
    grad_lse: Tensor | None,
    options: ScoreOptions,
    wanted: Wanted,
    ring: Ring,
) -> Gradients:
    """dQ, dK, dV of this process's shard, dK and dV summed over the queries of all processes, and
    the other gradients, which are wanted, by its own queries; in `compute_dtype(query.dtype)`.

    out and lse as `ring_forward` returned them, the output perhaps rounded; grad_lse None: 0.
    """
    wide = compute_dtype(query.dtype)
    delta = row_gradient(
        out.to(wide), grad_out.to(wide), None if grad_lse is None else grad_lse.to(wide)
    )
    total = _Sums(query, options, wanted)
    plain = replace(options, sinks=None)
    width = key.shape[-1], value.shape[-1]
    shape, lengths = key.shape[:2], ring.sequence.keys.lengths
    sizes = [shape.numel() * n * sum(width) for n in lengths]
    carousel = Carousel(ring.processes, sizes, key.new_empty(0, dtype=wide), GRADIENTS)
    last = needed_rounds(ring.sequence) - 1
    home = key.new_empty(sizes[ring.processes.rank], dtype=wide)
    for t, (source, k, v) in enumerate(ring.rounds(key, value)):
        sums = key.new_zeros(sizes[source], dtype=wide)
        grad_k, grad_v = as_pair(sums, (*shape, lengths[source]), width)
        for block in ring.blocks(source, plain, query):
            rows, keys = block.rows, block.keys
            # Where ALiBi is a part of the bias, so is its gradient.
            by_bias = wanted.bias or (wanted.slopes and block.distance is not None)
            found = backward(
                query[:, :, rows], k[:, :, keys], v[:, :, keys], out[:, :, rows], lse[:, :, rows],
                grad_out[:, :, rows], None, block.options, wanted._replace(bias=by_bias),
                ring.backend_of(block), delta=delta[:, :, rows], wide=True,
            )  # fmt: skip
            grad_k[:, :, keys] += found.key
            grad_v[:, :, keys] += found.value
            total.add(block, found)
        if t:
            # The processes before this one have added to the same keys.
            sums += carousel.arrive()
        if t < last:
            carousel.pass_on(sums)
        else:
            carousel.send_home(sums, home)
    grad_key, grad_value = as_pair(home, key.shape[:3], width)
    sinks = None
    if wanted.sinks and options.sinks is not None:
        sinks = sink_gradient(options.sinks, lse, delta)
    return Gradients(total.query, grad_key, grad_value, total.slopes, total.bias, sinks)


class _Sums:
    """The gradients of the tensors that stay in their process, summed over blocks."""

    def __init__(self, query: Tensor, options: ScoreOptions, wanted: Wanted) -> None:
        wide = compute_dtype(query.dtype)
        self.query = query.new_zeros(query.shape, dtype=wide)
        self.slopes: Tensor | None = None
        self.bias: Tensor | None = None
        if wanted.slopes and options.alibi_slopes is not None:
            self.slopes = torch.zeros_like(options.alibi_slopes, dtype=wide)
        if wanted.bias and options.bias is not None:
            self.bias = torch.zeros_like(
                options.bias, dtype=wide, memory_format=torch.contiguous_format
            )

    def add(self, block: Block, found: Gradients) -> None:
        """Add the gradients of a block."""
        self.query[:, :, block.rows] += found.query
        by_bias = found.bias
        if self.slopes is not None and block.distance is not None:
            assert by_bias is not None
            slopes = -(block.distance.abs() * by_bias).sum(dim=(-2, -1))
            self.slopes += slopes if len(self.slopes) == len(slopes) else slopes.sum(0)
        elif self.slopes is not None:
            assert found.slopes is not None
            self.slopes += found.slopes
        if self.bias is not None:
            assert by_bias is not None
            dims = (EVERY, EVERY, block.rows, block.columns)
            some = cut(self.bias, *dims[:3])
            assert some is not None
            if some.shape[3] == 1:
                some += sum_to(by_bias, some.shape)
            else:
                some[..., block.columns] += sum_to(by_bias, (*some.shape[:3], by_bias.shape[3]))


class RingAttention(torch.autograd.Function):
    """Output, in the dtype of query, and log-sum-exp of `ring_forward`, with `ring_backward`."""

    @staticmethod
    def forward(
        ctx: Any, ring: Ring, query: Tensor, key: Tensor, value: Tensor, *flat: Any
    ) -> tuple[Tensor, Tensor]:
        ctx.ring = ring
        out, lse = ring_forward(query, key, value, ring.options(flat, query), ring)
        rounded = empty_output(query, value.shape[-1]).copy_(out)
        save(ctx, flat, query, key, value, rounded, lse)
        return rounded, lse

    @staticmethod
    def backward(
        ctx: Any, grad_out: Tensor | None, grad_lse: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            no_second_derivative(ctx)
        (query, key, value, out, lse), flat = restore(ctx)
        kept, options = ScoreOptions.of_flat(*flat), ctx.ring.options(flat, query)
        if grad_out is None:
            grad_out = torch.zeros_like(out)
        given = ctx.needs_input_grad[4:]
        found = ring_backward(
            query,
            key,
            value,
            out,
            lse,
            grad_out,
            grad_lse,
            options,
            wanted_gradients(given),
            ctx.ring,
        ).round_to_inputs(query, key, value, options)
        pairs = kept.mask if kept.bias is None else kept.bias
        if found.bias is not None and pairs is not None:
            found = found._replace(bias=found.bias.view(pairs.shape))
        q, k, v, *others = as_flat(found, query)
        return (None, q, k, v, *by_option(given, *others))


attend: Callable[..., tuple[Tensor, Tensor]] = RingAttention.apply
