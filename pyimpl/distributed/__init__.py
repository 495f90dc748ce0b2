"""Attention of one sequence by several processes of `torch.distributed`: context parallelism.

```python
from pyimpl.distributed import Shards, ring_attention

# in each process of a group, which holds a part of every sequence
shards = Shards.zigzag(length, torch.distributed.get_world_size())
out = ring_attention(q, k, v, shards=shards, is_causal=True)
```

| To compute | call |
| --- | --- |
| attention with the sequence in shards, keys passed around | `ring_attention` |
| attention with the sequence in shards, by heads | `ulysses_attention` |
| a decoding step over a cache of keys in shards | `decode_attention` |
| a module with its sequence in shards | `ContextParallel` |
| which places each process holds | `Shards` |
"""

from pyimpl.distributed.attention import ring_attention
from pyimpl.distributed.context import ContextParallel
from pyimpl.distributed.decode import decode_attention
from pyimpl.distributed.internal.shards import Shards
from pyimpl.distributed.ulysses import ulysses_attention

__all__ = [
    "ContextParallel",
    "Shards",
    "decode_attention",
    "ring_attention",
    "ulysses_attention",
]
