"""What becomes of the scores between the product q·k and the softmax, and of the weights after it,
in one value that every implementation takes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from pyimpl.dropout import Dropout
from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import Alignment, Window
from pyimpl.internal.implements import implements

NO_BOUND = 1 << 40


@dataclass(frozen=True)
class ScoreOptions:
    """The score of query i and key j is scale·⟨qᵢ, kⱼ⟩, then in this order:

    softcap: cap·tanh(score / cap), cap > 0 (`Attention.Spec.ScoreMod.softcap`);
    alibi_slopes `[batch|1, heads]`, floating: − slope·|i + shift − j| is added
        (`Attention.Spec.ScoreMod.alibi`);
    bias, floating, broadcastable to `[batch, heads, q_len, kv_len]`: added; −∞ masks the pair
        (`Attention.Spec.ScoreMod.bias`);
    mask, boolean, broadcastable likewise: False masks the pair (`Attention.Spec.Mask`);
    left, right: the pair is masked unless i + shift − left ≤ j ≤ i + shift + right, None: no bound
        on that side (`Attention.Spec.Mask.window`); causal is right = 0.

    shift is where query 0 stands on the axis of the keys: 0 when aligned top-left, kv_len − q_len
    when bottom-right (`Attention.Spec.Alignment`).

    sinks `[heads]`, floating: one more score in every softmax of the head, without a value
    (`Attention.Spec.attentionSink`).

    dropout: of the weights, which are normalised before: the log-sum-exp is that without it.
    """

    scale: float
    softcap: float | None = None
    alibi_slopes: Tensor | None = None
    bias: Tensor | None = None
    mask: Tensor | None = None
    left: int | None = None
    right: int | None = None
    shift: int = 0
    sinks: Tensor | None = None
    dropout: Dropout | None = None

    def flat(self) -> tuple[Tensor | int | float | None, ...]:
        """The fields in order, as the operators take them (`SCHEMA`)."""
        *own, dropout = (getattr(self, field.name) for field in fields(self))
        return (*own, 0.0, None) if dropout is None else (*own, dropout.p, dropout.seed)

    @classmethod
    def of_flat(cls, *flat: Any) -> ScoreOptions:
        """The options of which `flat` gives this."""
        *own, p, seed = flat
        options = cls(*own)
        return replace(options, dropout=Dropout(p, seed)) if p else options


# What `ScoreOptions.flat` gives, as PyTorch's operator schemas write it.
SCHEMA = (
    "float scale, float? softcap, Tensor? alibi_slopes, Tensor? bias, Tensor? mask, "
    "SymInt? left, SymInt? right, SymInt shift, Tensor? sinks, float dropout_p, "
    "Tensor? dropout_seed"
)
NAMES = tuple(argument.split()[-1] for argument in SCHEMA.split(", "))


@implements("Attention.Spec.Alignment.shift")
def alignment_shift(alignment: Alignment, q_len: int, kv_len: int) -> int:
    """By how much a query's place on the axis of the keys differs from its own number."""
    return kv_len - q_len if alignment == "bottom-right" else 0


def checked_options(
    query: Tensor,
    batch: int,
    heads: int,
    *,
    is_causal: bool,
    window: Window,
    softcap: float | None,
    alibi_slopes: Tensor | None,
    sinks: Tensor | None,
    scale: float | None,
) -> ScoreOptions:
    """The options that all public functions have, checked but for the numbers in their tensors
    (`checked_numbers`); aligned top-left, without mask and bias.

    `query` `[..., head_dim]` gives dtype and device; slopes may be given for each of `batch`
    sequences. Raises TypeError, ValueError or NotImplementedError, as `pyimpl.attention` does.
    """
    check.check_bool("is_causal", is_causal)
    check.check_window(window)
    check.check_scale(scale, query.dtype)
    factor = check.resolve_scale(scale, query.shape[-1])
    check.check_softcap(softcap, factor, query.dtype)
    if alibi_slopes is not None:
        shapes = [[heads], [batch, heads]]
        given = check.check_per_head("alibi_slopes", alibi_slopes, query, shapes)
        alibi_slopes = given.reshape(-1, heads) if heads else None
    if sinks is not None:
        sinks = check.check_per_head("sinks", sinks, query, [[heads]])
    # A bound beyond any length hides nothing.
    left, right = (None if n is None or n >= NO_BOUND else check.whole(n) for n in window)
    return ScoreOptions(
        scale=factor,
        softcap=None if softcap is None else float(softcap),
        alibi_slopes=alibi_slopes,
        left=left,
        right=0 if is_causal else right,
        sinks=sinks,
    )


def checked_numbers(options: ScoreOptions, dtype: torch.dtype) -> ScoreOptions:
    """The options with the numbers in their tensors checked, for inputs of this dtype; a `mask`
    that is floating, which the user gave as `attn_mask`, becomes the bias.

    A device is waited for, so this runs inside of the operators, which `torch.compile` does not
    look into. Raises ValueError for NaN, +∞ and what is too large.
    """
    mask, bias = options.mask, options.bias
    slopes, sinks = options.alibi_slopes, options.sinks
    if bias is not None:
        bias = check.checked_numbers("bias", bias, dtype, finite=False)
    if mask is not None and mask.dtype != torch.bool:
        bias = check.checked_numbers("attn_mask", mask, dtype, finite=False)
        mask = None
    if slopes is not None:
        slopes = check.checked_numbers("alibi_slopes", slopes, dtype, finite=True)
    if sinks is not None:
        sinks = check.checked_numbers("sinks", sinks, dtype, finite=False)
    return replace(options, mask=mask, bias=bias, alibi_slopes=slopes, sinks=sinks)
