"""Helpers of the suites: how far two correct implementations may be apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.conformance.tolerances.row_weights import ScoreChanges
from bridge.conformance.tolerances.tolerance import attention_tolerance, lse_tolerance

BACKENDS = ["tiled", "reference"]
# No bound is derived through a whole model. Its logits, below 16, come of some hundred roundings
# one after another to float32, of unit 2⁻²⁴; mistakes move them a thousand times as far, which is
# asserted where models are compared.
LOGITS = 2.0**-14
MISTAKE = 1000 * LOGITS


def find_tolerances(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    *,
    scale: float,
    visible: Tensor,
    rounding_models: Sequence[RoundingModel],
    softcap: float | None = None,
    bias: Tensor | None = None,
    sinks: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The tolerances of output `[batch, heads, q_len, value_dim]` and log-sum-exp `[batch, heads,
    q_len]`, summed over the implementations that are compared.

    `query`, `key`, `value` in the layout "bhnd", with any number of key heads that divides the
    query's; `visible` (booleans) and `bias` broadcast to `[batch, heads, q_len, kv_len]`; `sinks`
    `[heads]`.
    """
    batch, heads, q_len, _ = query.shape
    group = heads // key.shape[1]
    visible = visible.expand(batch, heads, q_len, key.shape[2])
    q = query.double()
    # Keys that no query sees may hold any numbers.
    seen = visible.any(-2).unsqueeze(-1)
    k, v = (x.double().repeat_interleave(group, 1).where(seen, 0.0) for x in (key, value))
    added = None if bias is None else bias.double().expand_as(visible).numpy()
    out, lse = torch.zeros(*q.shape[:3], v.shape[-1]).double(), torch.zeros(q.shape[:3]).double()
    q, k, v = (x.numpy() for x in (q, k, v))
    for heads_of, sink in _heads(sinks):
        changes = ScoreChanges(softcap, None if added is None else added[:, heads_of], sink)
        part = [x[:, heads_of] for x in (q, k, v)]
        for rounding in rounding_models:
            rest: dict[str, Any] = {
                "scale": scale, "mask": visible[:, heads_of].numpy(), "rounding": rounding,
                "changes": changes,
            }  # fmt: skip
            out[:, heads_of] += torch.from_numpy(attention_tolerance(*part, **rest))
            lse[:, heads_of] += torch.from_numpy(lse_tolerance(*part[:2], **rest))
    return out, lse


def _heads(sinks: Tensor | None) -> list[tuple[slice, float | None]]:
    """All heads at once, or each with its sink."""
    if sinks is None:
        return [(slice(None), None)]
    return [(slice(h, h + 1), sink) for h, sink in enumerate(sinks.tolist())]


def agree(ours: Tensor, theirs: Tensor, tolerance: Tensor) -> None:
    """Fail unless the two are no further apart than allowed, in every element; −∞ is equal to
    itself."""
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    none = torch.isneginf(theirs)
    assert torch.equal(torch.isneginf(ours), none)
    error = torch.where(none, 0.0, ours.double() - torch.where(none, 0.0, theirs.double())).abs()
    assert bool((error <= tolerance).all()), f"{(tolerance).max()} over the tolerance"
