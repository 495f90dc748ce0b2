"""A call of `pyimpl.attention` as a part of a larger one: where it stands there.

```python
from pyimpl import Part, attention, merge_states

whole = (batch, heads, q_len, kv_len)
halves = [
    attention(
        q, k[:, :, n : n + half], v[:, :, n : n + half], is_causal=True, return_lse=True,
        part=Part(whole, first_key=n),
    )
    for n in (0, half)
]
out, lse = merge_states(*map(torch.stack, zip(*halves)))  # attention(q, k, v, is_causal=True)
```
"""

from __future__ import annotations

from dataclasses import dataclass

from pyimpl.internal import arguments as check

_SIZES = ("batch", "heads", "q_len", "kv_len")
# Places are 32-bit integers in the kernels.
_MOST = 2**31


@dataclass(frozen=True)
class Part:
    """Neighbouring batches, heads, queries and keys of a larger call, and where they begin there.

    Of the scores causality, windows and ALiBi go by these places, and so does dropout of the
    weights.

    Args:
        whole: (batch, heads, q_len, kv_len) of the larger call.
        first_batch, first_head, first_query, first_key: which of them are the first of the part.

    Raises:
        TypeError: no four whole numbers, or a first that is no whole number.
        ValueError: a number below 0, or a size that is not below 2³¹, as batch · heads must be.
    """

    whole: tuple[int, int, int, int]
    first_batch: int = 0
    first_head: int = 0
    first_query: int = 0
    first_key: int = 0

    def __post_init__(self) -> None:
        sizes = self.whole
        if not isinstance(sizes, tuple | list) or len(sizes) != 4:
            raise TypeError(
                f"whole must be (batch, heads, q_len, kv_len), not {check.describe(sizes)}"
            )
        names = ("first_batch", "first_head", "first_query", "first_key")
        given = [("whole", n) for n in sizes] + [(name, getattr(self, name)) for name in names]
        for name, number in given:
            if not check.is_whole(number):
                raise TypeError(
                    f"{name} must be of whole numbers, not {check.describe(number)}"
                    if name == "whole"
                    else f"{name} must be a whole number, not {check.describe(number)}"
                )
            if number < 0:
                raise ValueError(f"{name} must be at least 0, not {check.describe(number)}")
        if any(number >= _MOST for number in (sizes[0] * sizes[1], *sizes[2:])):
            raise ValueError(
                "whole must have batch · heads, q_len and kv_len below 2³¹, "
                f"not {check.describe(sizes)}"
            )

    def check_sizes(self, sizes: tuple[int, int, int, int]) -> None:
        """Raises ValueError unless a call of these batch, heads, q_len and kv_len, beginning where
        this part does, is inside of the whole."""
        firsts = (self.first_batch, self.first_head, self.first_query, self.first_key)
        for name, first, size, whole in zip(_SIZES, firsts, sizes, self.whole, strict=True):
            if first + size > whole:
                raise ValueError(
                    f"part must lie inside of the whole, whose {name} is {whole}, and not end at "
                    f"{first} + {size}"
                )
