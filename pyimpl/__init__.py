"""Attention for PyTorch whose parts mirror, one to one, a machine-checked Lean specification.

```python
import torch
from pyimpl import attention

# [batch, heads, length, head_dim]
q, k, v = (torch.randn(2, 8, 1000, 64) for _ in range(3))
out, lse = attention(q, k, v, is_causal=True, return_lse=True)
```

Triton kernels run on a GPU, a tile loop in PyTorch elsewhere. Every function is run on the
project's test vectors, whose answers Lean computed.

| To compute | call |
| --- | --- |
| attention: masks, bias, windows, softcap, ALiBi, sinks, dropout, gradients | `pyimpl.attention` |
| a part of a larger call, by its places there | `attention` with a `Part` |
| attention of packed sequences of different lengths | `attention_varlen` |
| a decoding step: few queries, a long contiguous or paged cache | `attention_decode` |
| attention of requests that share a prefix of keys | `attention_cascade` |
| attention of one sequence by several processes | `pyimpl.distributed` |
| single-process simulation of ring attention | `simulate_ring` |
| one output from outputs and log-sum-exps over parts of the keys | `merge_states` |
| layers up to a Transformer | `pyimpl.modules` |
| the state (m, l, o) of online softmax, step by step | `pyimpl.state` |
| the state of a row whose keys are appended, deleted or replaced | `pyimpl.cache` |
| which weights a dropout seed drops | `pyimpl.dropout` |
| pictures of tiles, errors and states | `pyimpl.visualize` |
| PyTorch's SDPA replaced for a while, or models of transformers | `pyimpl.integrations` |

To read how it works, begin with `pyimpl.backends.reference`, attention by its definition, and
`pyimpl.backends.tiled`, the same by tiles. `implements` names the Lean definition of a function.
"""

from pyimpl.attention import attention
from pyimpl.cascade import attention_cascade
from pyimpl.decode import attention_decode
from pyimpl.internal.implements import implements
from pyimpl.internal.part import Part
from pyimpl.merge import merge_states
from pyimpl.ring import simulate_ring
from pyimpl.varlen import attention_varlen

__version__ = "0.1.0"

__all__ = [
    "Part",
    "attention",
    "attention_cascade",
    "attention_decode",
    "attention_varlen",
    "implements",
    "merge_states",
    "simulate_ring",
]
