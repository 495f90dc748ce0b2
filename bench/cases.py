"""The measured cases: the sizes of each operation, their inputs, and how much work they are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

# backward: the gradients alone, of an output that was computed before.
Operation = Literal["forward", "forward+backward", "backward", "decode"]
MaskName = Literal["full", "causal", "window", "window-both", "boolean"]

# Matrix products of each operation, in units of the two of forward: the backward pass has five, of
# which one computes the scores again (Dao 2023, section 4.1).
PRODUCTS: dict[Operation, float] = {
    "forward": 1.0, "decode": 1.0, "backward": 2.5, "forward+backward": 3.5,
}  # fmt: skip
# How often rows as long as the queries and as long as the keys are read or written: query, key,
# value and output, for the gradients these, that of the output and the three that are found.
_ROWS: dict[Operation, int] = {"forward": 2, "decode": 2, "backward": 4, "forward+backward": 6}

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}
# Factor on the queries: with it a row's weights lie on few keys, so that its output does not shrink
# towards 0 with many keys and a wrong one stands out from the error allowed.
QUERY_SIZE = 3.0


@dataclass(frozen=True)
class Mask:
    """Query i may attend to key j if and only if i − left ≤ j ≤ i + right; None: no bound."""

    name: MaskName
    left: int | None = None
    right: int | None = None

    @classmethod
    def of_name(cls, name: MaskName, window: int) -> Mask:
        """The mask of a name; `window` is the width of the last three to either side."""
        if name == "full":
            return cls(name)
        if name == "causal":
            return cls(name, None, 0)
        return cls(name, window, 0 if name == "window" else window)

    def __str__(self) -> str:
        if self.name in ("full", "causal"):
            return self.name
        kind = "boolean" if self.name == "boolean" else "window"
        return f"{kind} ({self.left}, {self.right})"

    def keys(self, query: int, kv_len: int) -> range:
        """The keys that a query may attend to."""
        first = 0 if self.left is None else max(0, query - self.left)
        stop = kv_len if self.right is None else min(kv_len, query + self.right + 1)
        return range(first, max(first, stop))

    def row(self, query: int, kv_len: int) -> NDArray[np.bool_]:
        """`[kv_len]`, True where this query may attend."""
        row = np.zeros(kv_len, dtype=bool)
        keys = self.keys(query, kv_len)
        row[keys.start : keys.stop] = True
        return row

    def dense(
        self, q_len: int, kv_len: int, device: torch.device, first: int = 0, stop: int | None = None
    ) -> Tensor:
        """`[queries, kv_len]`, True where the query may attend: of the queries first, …, stop − 1
        of `q_len`."""
        queries = torch.arange(q_len, device=device)[first:stop, None]
        behind = queries - torch.arange(kv_len, device=device)
        seen = torch.ones_like(behind, dtype=torch.bool)
        if self.left is not None:
            seen &= behind <= self.left
        if self.right is not None:
            seen &= -behind <= self.right
        return seen


@dataclass(frozen=True)
class Case:
    """One thing to measure. page_size: the keys of a decode lie in pages; None: contiguous."""

    operation: Operation
    dtype: str
    batch: int
    heads: int
    kv_heads: int
    q_len: int
    kv_len: int
    head_dim: int
    mask: Mask
    page_size: int | None = None

    def __str__(self) -> str:
        shown = self.shown
        return (
            f"{self.operation} {self.dtype}, batch {self.batch}, heads {shown['heads']}, "
            f"head_dim {self.head_dim}, length {self.kv_len}, {shown['mask']}"
        )

    @property
    def shown(self) -> dict[str, str]:
        """The case in words: its heads, and its mask with the pages."""
        heads = str(self.heads) if self.heads == self.kv_heads else f"{self.heads}/{self.kv_heads}"
        pages = "" if self.page_size is None else f", pages of {self.page_size}"
        return {"heads": heads, "mask": f"{self.mask}{pages}"}

    @property
    def grouped(self) -> bool:
        """Whether heads of queries share heads of keys."""
        return self.heads != self.kv_heads

    @property
    def gradients(self) -> bool:
        """Whether it computes the gradients by query, key and value."""
        return "backward" in self.operation

    @property
    def flops(self) -> int:
        """Operations: for each pair of query and key that is visible 2·head_dim in the product for
        the score and 2·head_dim in that with the value; 2.5 times that for the backward pass. The
        softmax is not counted."""
        pairs = sum(len(self.mask.keys(i, self.kv_len)) for i in range(self.q_len))
        forward = 4 * self.head_dim * pairs * self.batch * self.heads
        return int(PRODUCTS[self.operation] * forward)

    @property
    def bytes(self) -> int:
        """Bytes that cannot but be moved: inputs read once, results written once, by each of the
        passes."""
        rows = _ROWS[self.operation] * (self.heads * self.q_len + self.kv_heads * self.kv_len)
        return DTYPES[self.dtype].itemsize * self.batch * rows * self.head_dim


@dataclass(frozen=True)
class Pages:
    """Keys and values in pages, `[num_pages, kv_heads, page_size, head_dim]`; `table` `[batch,
    pages]` and `lens` `[batch]`, both int32."""

    key: Tensor
    value: Tensor
    table: Tensor
    lens: Tensor


@dataclass(frozen=True)
class Inputs:
    """A case's tensors, `[batch, heads or kv_heads, length, head_dim]`. grad_out: the gradient of
    the output, where gradients are computed."""

    case: Case
    query: Tensor
    key: Tensor
    value: Tensor
    pages: Pages | None = None
    grad_out: Tensor | None = None

    @property
    def device(self) -> torch.device:
        return self.query.device

    def dense_mask(self) -> Tensor:
        """The case's mask as Booleans, `[q_len, kv_len]`."""
        return self.case.mask.dense(self.case.q_len, self.case.kv_len, self.device)


def make_inputs(case: Case, device: torch.device) -> Inputs:
    """Normally distributed numbers, the same for the same case; pages in a random order. On the
    device "meta" there are none, only shapes."""
    generator = None if device.type == "meta" else torch.Generator(device).manual_seed(0)

    def normal(heads: int, length: int, size: float = 1.0) -> Tensor:
        shape = (case.batch, heads, length, case.head_dim)
        numbers = torch.randn(shape, generator=generator, device=device)
        return (size * numbers).to(DTYPES[case.dtype])

    query = normal(case.heads, case.q_len, QUERY_SIZE)
    key, value = normal(case.kv_heads, case.kv_len), normal(case.kv_heads, case.kv_len)
    pages = None if case.page_size is None else _as_pages(key, value, case.page_size)
    grad_out = normal(case.heads, case.q_len) if case.gradients else None
    return Inputs(case, query, key, value, pages, grad_out)


def _as_pages(key: Tensor, value: Tensor, page_size: int) -> Pages:
    batch, kv_heads, kv_len, head_dim = key.shape
    count = -(-kv_len // page_size)
    order = torch.randperm(batch * count, generator=torch.Generator().manual_seed(0))
    order = order.to(key.device)

    def pool(cache: Tensor) -> Tensor:
        filled = F.pad(cache, (0, 0, 0, count * page_size - kv_len))
        pages = filled.view(batch, kv_heads, count, page_size, head_dim).transpose(1, 2)
        pages = pages.reshape(batch * count, kv_heads, page_size, head_dim)
        return torch.empty_like(pages).index_copy_(0, order, pages)

    lens = torch.full((batch,), kv_len, dtype=torch.int32, device=key.device)
    return Pages(pool(key), pool(value), order.view(batch, count).int(), lens)
