"""Packed documents, without padding

Documents of different lengths lie one after another in one tensor; their prefix sums say where each
begins, and no token sees another document. Nothing is computed for padding.
Output and gradients are those of one document at a time.

It prints:

    4 documents, 24 tokens packed, 44 with padding
    outputs and gradients: those of each document alone
"""

import torch

from pyimpl import attention, attention_varlen

LENGTHS = [3, 11, 8, 2]

torch.manual_seed(0)
total = sum(LENGTHS)
q, k, v = (torch.randn(total, 4, 16, dtype=torch.float64, requires_grad=True) for _ in range(3))
cu_seqlens = torch.tensor([0, *LENGTHS]).cumsum(0)

packed = attention_varlen(q, k, v, cu_seqlens, cu_seqlens, is_causal=True)
(packed**2).sum().backward()
gradients = [x.grad.clone() for x in (q, k, v)]

# The same, one document at a time: [1, length, heads, dim].
for x in (q, k, v):
    x.grad = None
alone = [
    attention(*(x[None] for x in document), is_causal=True, layout="bnhd")[0]
    for document in zip(*(x.split(LENGTHS) for x in (q, k, v)), strict=True)
]
(torch.cat(alone) ** 2).sum().backward()

print(
    f"{len(LENGTHS)} documents, {total} tokens packed,",
    f"{len(LENGTHS) * max(LENGTHS)} with padding",
)
torch.testing.assert_close(packed, torch.cat(alone))
torch.testing.assert_close(gradients, [x.grad for x in (q, k, v)])
print("outputs and gradients: those of each document alone")
