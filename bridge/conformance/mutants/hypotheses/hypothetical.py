"""Hypotheses about the fault of a function, as functions that are called like it."""

from __future__ import annotations

import itertools
from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bridge.conformance.adapters.adapter import ALL_DTYPES
from bridge.conformance.adapters.differentiate import ByAutograd
from bridge.conformance.adapters.grouped_heads import GroupedHeads
from bridge.conformance.mutants.attention import TILED_MUTANTS
from bridge.conformance.mutants.hypotheses.call import Call, Hypothesis, Parts
from bridge.conformance.mutants.hypotheses.layout import Layout, layout_of
from bridge.conformance.mutants.planting import mutated_module
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tensors.own_options import score_options
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.row_weights import ScoreChanges
from bridge.conformance.tolerances.tolerance import attention_tolerance, lse_tolerance
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.decode import DecodeVector
from bridge.vectors.model.operations import (
    CascadeVector,
    CombineVector,
    ComesToAttention,
    PagedVector,
    VarlenVector,
)
from pyimpl.backends import reference, reference_backward, tiled
from pyimpl.internal.arguments import mask_as_4d, resolve_scale
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.scores import ScoreOptions, alignment_shift


class _Differentiable(torch.autograd.Function):
    """`pyimpl.reference` with its own backward pass, for the gradients by query, key, value and
    bias."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, bias: Any, call: Call) -> Any:
        out, lse = reference.attention(query, key, value, call.options)
        ctx.save_for_backward(query, key, value, out, lse)
        ctx.call = call
        return out, lse

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        query, key, value, out, lse = ctx.saved_tensors
        options, (by_out, by_lse) = ctx.call.options, grads
        biased = options.bias is not None
        if ctx.call.backward is not None:
            options, out, by_lse = ctx.call.backward(options, out, by_lse)
        found: Gradients = reference_backward.attention_backward(
            query, key, value, out, lse, by_out, by_lse, options, Wanted(bias=biased)
        )
        return found.query, found.key, found.value, found.bias, None


class Planted:
    """A hypothesis as a function that is called as SDPA is, with the options of `pyimpl.attention`.

    alignment: of `is_causal` and `window` without an argument for it. wide: the dtype in which the
    suspected function computes. touched: set by a call in which the mutant shows; one in which it
    does not returns zeros, but where several calls give the result together: gradients, layouts.
    allowing: a rounding model, for which the tolerances of the results are returned in their place;
    None: the results. To be closed (`close`), since a planted loop is a file.
    """

    def __init__(self, hypothesis: Hypothesis, alignment: Any, wide: torch.dtype) -> None:
        self.hypothesis, self.alignment, self.wide = hypothesis, alignment, wide
        self.allowing: RoundingModel | None = None
        self.touched = False
        self._stack = ExitStack()
        self._flash: Any = None
        if hypothesis.loop is not None:
            (mutant,) = (mutant for mutant in TILED_MUTANTS if mutant.name == hypothesis.loop)
            self._flash = self._stack.enter_context(mutated_module(mutant)).flash

    def close(self) -> None:
        """Take the planted loop away."""
        self._stack.close()

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
        window: tuple[int | None, int | None] = (None, None),
        causal_alignment: str | None = None,
        softcap: float | None = None,
        alibi_slopes: Tensor | None = None,
        sinks: Tensor | None = None,
        bias: Tensor | None = None,
        return_lse: bool = False,
    ) -> Parts:
        boolean = attn_mask is not None and attn_mask.dtype == torch.bool
        if attn_mask is not None and not boolean:
            bias = attn_mask
        named = {"attn_mask": attn_mask is not None, "is_causal": is_causal,
                 "window": window != (None, None)}  # fmt: skip
        alignment: Any = causal_alignment or self.alignment
        options = ScoreOptions(
            scale=resolve_scale(scale, query.shape[-1]),
            softcap=softcap,
            alibi_slopes=None if alibi_slopes is None else alibi_slopes[None],
            bias=bias,
            mask=attn_mask if boolean else None,
            left=window[0],
            right=0 if is_causal else window[1],
            shift=alignment_shift(alignment, query.shape[2], key.shape[2]),
            sinks=sinks,
        )
        by = frozenset(name for name, given in named.items() if given)
        return self.attend(Call(query, key, value, options, by, self.wide))

    def attend_layout(self, layout: Layout) -> Parts:
        """Output `[1, 1, rows, value_dim]` and log-sum-exp, or their tolerances; 0 in rows that are
        not computed."""
        rows, value_dim = len(layout.query), layout.value_dim
        out = layout.query.new_zeros(1, 1, rows, value_dim)
        lse = layout.query.new_full((1, 1, rows), -torch.inf)
        written = torch.zeros(rows, dtype=torch.bool)
        changed = layout if self.hypothesis.layout is None else self.hypothesis.layout(layout)
        self.touched |= changed is not None and changed is not layout
        for piece in () if changed is None else changed.pieces():
            place = slice(piece.start, piece.stop)
            found = self.attend(piece.call, together=True)
            out[:, :, place] += piece.weight * found[0]
            # A tolerance is that of the part with the largest; results are added up.
            join = torch.logaddexp if self.allowing is None else torch.maximum
            lse[:, :, place] = join(lse[:, :, place], found[1])
            written[place] = True
        return out, torch.where(written, lse, 0.0)

    def attend(self, call: Call, *, together: bool = False) -> Parts:
        """Output and log-sum-exp, or their tolerances. together: with those of other calls."""
        changed = self.hypothesis.change(call)
        if changed is None and (together or call.query.requires_grad):
            changed = call
        elif changed is not None:
            self.touched = True
        if changed is None:
            out = call.query.new_zeros(*call.query.shape[:-1], call.value.shape[-1])
            return out, out[..., 0] if out.shape[-1] else out.sum(-1)
        if self.allowing is not None:
            return self._tolerances(changed, self.allowing)
        if self._flash is not None:
            parts = self._run_loop(changed, changed.value)
        else:
            apply: Any = _Differentiable.apply
            out, lse = apply(
                changed.query, changed.key, changed.value, changed.options.bias, changed
            )
            parts = out, lse
        if self.hypothesis.result is not None:
            parts = self.hypothesis.result(changed, *parts)
        return parts

    def _run_loop(self, call: Call, value: Tensor, flash: Any = None) -> Parts:
        run = self._flash if flash is None else flash
        found: Parts = run(
            call.query, call.key, value, call.options, block_m=16, block_n=self.hypothesis.tile
        )
        return found

    def _tolerances(self, call: Call, rounding: RoundingModel) -> Parts:
        """The tolerances of the changed arguments; for a planted loop those of the right one, as
        many times larger as the values' absolute values come out larger in it."""
        q, k, v = (x.detach().numpy() for x in (call.query, call.key, call.value))
        if call.group != 1:
            k, v = (np.repeat(x, call.group, axis=1) for x in (k, v))
        o = call.options
        added = _additions(call)
        sink = None if o.sinks is None or not len(o.sinks) else float(o.sinks[0])
        asked: dict[str, Any] = {
            "scale": o.scale,
            "mask": call.visible_pairs().numpy(),
            "rounding": rounding,
            "changes": ScoreChanges(o.softcap, added, sink),
        }
        out = torch.from_numpy(attention_tolerance(q, k, v, **asked))
        lse = torch.from_numpy(lse_tolerance(q, k, **asked))
        if self._flash is not None:
            sizes = [
                self._run_loop(call, call.value.abs(), flash)[0]
                for flash in (self._flash, tiled.flash)
            ]
            ratio = torch.nan_to_num(sizes[0] / sizes[1], nan=1.0)
            out = out * ratio.clamp_min(1.0)
        if self.hypothesis.tolerance is not None:
            out, lse = self.hypothesis.tolerance(call, out, lse)
        return out, lse


def _additions(call: Call) -> Any:
    """The numbers that bias and slopes add to the scores, broadcast to all pairs; None: nothing."""
    o, (q_len, kv_len) = call.options, call.lengths
    added = None
    if o.bias is not None:
        bias = mask_as_4d(o.bias.detach(), q_len, kv_len)
        added = torch.where(torch.isneginf(bias), 0.0, bias).double()
    if o.alibi_slopes is not None:
        zeros = torch.zeros(1, o.alibi_slopes.shape[1], q_len, kv_len, dtype=torch.float64)
        slopes = reference.alibi(zeros, o.alibi_slopes, o.shift)
        added = slopes if added is None else added + slopes
    return None if added is None else added.numpy()


class PlantedBatches(ByAutograd, GroupedHeads):
    """A hypothesis of one of the built-in adapters, which take batches as they are."""

    dtypes = ALL_DTYPES
    by_lse = by_bias = True
    operations = GroupedHeads.operations | {
        kind.operation
        for kind in (VarlenVector, PagedVector, CascadeVector, CombineVector, DecodeVector)
    }

    def __init__(self, function: Planted, name: str, takes: frozenset[str]) -> None:
        self.function, self.name, self.takes = function, name, takes

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        return None

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        raise NotImplementedError("a hypothesis rounds as its function does")

    def run_vector(self, vector: ComesToAttention, dtype: str, device: str) -> list[Outputs]:
        layout = layout_of(vector, self.function.wide)
        if layout is None:
            return super().run_vector(vector, dtype, device)
        out, lse = self.function.attend_layout(layout)
        ends = [0, *itertools.accumulate(x.q_len for x in vector.attentions())]
        return [Outputs(out[:, :, a:b], lse[:, :, a:b]) for a, b in itertools.pairwise(ends)]

    def run(self, batch: Batch) -> Outputs:
        options = score_options(batch)
        by = {"is_causal"} if batch.is_causal else {"window"} if batch.window else set()
        if options.mask is not None:
            by = by | {"attn_mask"}
        out, lse = self.function.attend(
            Call(*batch.qkv, options, frozenset(by), self.function.wide)
        )
        return Outputs(out, lse)
