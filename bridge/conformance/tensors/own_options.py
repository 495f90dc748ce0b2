"""The options of `pyimpl` from those of a batch, and as arguments of `pyimpl.attention`."""

from __future__ import annotations

from typing import Any

from bridge.conformance.tensors.batch import Batch
from pyimpl.internal.arguments import resolve_scale
from pyimpl.internal.scores import CHANGES, ScoreOptions


def score_options(batch: Batch) -> ScoreOptions:
    """The options of the batch, as the implementations of `pyimpl` take them."""
    slopes = batch.slopes()
    window, mask, alibi = batch.window, batch.mask, batch.alibi
    if window is not None and alibi is not None and alibi.shift != window.shift:
        # The options have one alignment for both.
        window, mask = None, batch.boolean
    shift = window.shift if window is not None else 0 if alibi is None else alibi.shift
    return ScoreOptions(
        scale=resolve_scale(batch.given_scale, batch.query.shape[-1]),
        softcap=batch.softcap,
        alibi_slopes=None if slopes is None else slopes[None],
        bias=batch.bias,
        mask=mask,
        left=None if window is None else window.left,
        right=None if window is None else window.right,
        shift=shift,
        **batch.of_heads(),
    )


def keywords(options: ScoreOptions) -> dict[str, Any]:
    """The options as arguments of `pyimpl.attention`."""
    return {
        **{change.name: getattr(options, change.name) for change in CHANGES},
        "scale": options.scale,
        "attn_mask": options.mask,
        "window": (options.left, options.right),
        "causal_alignment": "bottom-right" if options.shift else "top-left",
        "enable_gqa": True,
        "dropout_p": 0.0 if options.dropout is None else options.dropout.p,
        "dropout_seed": None if options.dropout is None else options.dropout.seed,
    }
