"""Keys and values as a module projected them: a decoder's cache holds them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeysValues:
    """The keys `[batch, kv_len, num_kv_heads · head_dim]` and the values `[batch, kv_len,
    num_kv_heads · value_head_dim]` that `MultiHeadAttention.project` made of its inputs; batch 1
    for inputs without one.
    """

    keys: Tensor
    values: Tensor

    @property
    def length(self) -> int:
        """kv_len."""
        return self.keys.shape[1]

    def concatenate(self, later: KeysValues) -> KeysValues:
        """Those of both, `later` behind these, as new tensors.

        Raises:
            ValueError: `later` has another batch or other widths.
        """
        for name in ("keys", "values"):
            mine: Tensor = getattr(self, name)
            theirs: Tensor = getattr(later, name)
            if theirs.shape[::2] != mine.shape[::2]:
                raise ValueError(
                    f"the {name} that follow must have the batch and width of these, "
                    f"{list(mine.shape[::2])}, not {list(theirs.shape[::2])}"
                )
        return KeysValues(
            torch.cat((self.keys, later.keys), 1), torch.cat((self.values, later.values), 1)
        )
