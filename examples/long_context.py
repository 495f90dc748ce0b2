"""Long context: a sliding window, and keys that every query sees

Each token sees itself, the 63 before it and, as in StreamingLLM, the first 4 of all, without which
the output of trained models falls apart (Xiao et al. 2023). The two parts are computed apart and
merged by their log-sum-exps: tiles outside of the window are never visited, and no mask of
6000 × 6000 is made. Then the same window with `sinks`, as gpt-oss has them: one more score in every
softmax, learned for each head, and no key behind it. A decoding step over the cache gives the row
that the whole sequence gave.

It prints:

    window and first keys: as with one mask of all pairs; a query sees 68 keys of 6000 at most
    window and learned sinks: a step of decoding gives the last row of the whole sequence
"""

import torch

from pyimpl import attention, attention_decode, merge_states

LENGTH, WINDOW, FIRST = 6000, 64, 4

torch.manual_seed(0)
q, k, v = (torch.randn(1, 2, LENGTH, 16, dtype=torch.float64) for _ in range(3))

# A query sees itself and the 63 before it …
recent = attention(q, k, v, window=(WINDOW - 1, 0), return_lse=True)
# … and the first keys, as far as the window has left them behind: no key may count twice.
places = torch.arange(LENGTH)[:, None]
left_behind = torch.arange(FIRST) <= places - WINDOW
first = attention(q, k[:, :, :FIRST], v[:, :, :FIRST], attn_mask=left_behind, return_lse=True)
outs, lses = (torch.stack(pair) for pair in zip(recent, first, strict=True))
out, _ = merge_states(outs, lses)

# The definition: one mask for all pairs, of the last 100 queries alone, or it would be large.
last = places[-100:]
keys = torch.arange(LENGTH)
mask = (keys <= last) & ((keys > last - WINDOW) | (keys < FIRST))
torch.testing.assert_close(out[:, :, -100:], attention(q[:, :, -100:], k, v, attn_mask=mask))
print(
    "window and first keys: as with one mask of all pairs; a query sees",
    f"{WINDOW + FIRST} keys of {LENGTH} at most",
)

sinks = torch.tensor([0.5, -1.0])  # of each head; a parameter in a model, with a gradient
whole = attention(q, k, v, window=(WINDOW - 1, 0), sinks=sinks)
step = attention_decode(q[:, :, -1:], k, v, window=(WINDOW - 1, 0), sinks=sinks)
torch.testing.assert_close(step, whole[:, :, -1:])
print("window and learned sinks: a step of decoding gives the last row of the whole sequence")
