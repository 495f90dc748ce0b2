"""Which weights dropout keeps: a function of seed, head, query and key (`Dropout.kept_weights`), by
the counter-based generator `philox4x32`.

```python
import torch
from pyimpl.dropout import Dropout

seed = torch.tensor(7)  # as `dropout_seed=7` of `pyimpl.attention`
kept = Dropout(0.1, seed).kept_weights(batch, heads, range(q_len), range(kv_len))
```
"""

from pyimpl.internal.dropout import Dropout, philox4x32

__all__ = ["Dropout", "philox4x32"]
