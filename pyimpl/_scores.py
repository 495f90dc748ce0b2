"""What becomes of the scores between the product q·k and the softmax, in one value that every
implementation takes."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor

from pyimpl._arguments import Alignment, Window
from pyimpl._implements import implements


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


@implements("Attention.Spec.Alignment.shift")
def alignment_shift(alignment: Alignment, q_len: int, kv_len: int) -> int:
    """By how much a query's place on the axis of the keys differs from its own number."""
    return kv_len - q_len if alignment == "bottom-right" else 0


def window_bounds(window: Window, is_causal: bool, longest: int) -> Window:
    """(left, right) of the window, and of causality too if asked for: right = 0.

    A bound of at least `longest` ≥ q_len + kv_len hides nothing and becomes None.
    """
    left, right = (None if n is None or n >= longest else n for n in window)
    return left, 0 if is_causal else right
