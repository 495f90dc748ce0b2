"""A problem as one of three documents in a sequence, whose others must have no influence."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.conformance.tensors.batch import Batch
from bridge.vectors.model.attention import AttentionVector

# The length of the document before the problem, and the least of the one after it: so many that
# shards begin and end inside of documents.
_BEFORE, _AFTER = 5, 2
# How much larger than 1 the values of the others are, so that a small weight of them shows.
_LARGE = 8


def can_be_among(vector: AttentionVector) -> bool:
    """Whether the meaning of a problem is the same at another place of a sequence: queries stand at
    keys, and nothing is given by pairs of them."""
    window, alibi = vector.mask.window, vector.alibi
    return (
        vector.q_len == vector.kv_len
        and vector.bias is None
        and vector.dropout is None
        and (vector.mask.kind == "none" or (window is not None and window.shift == 0))
        and (alibi is None or alibi.shift == 0)
    )


def is_among(batch: Batch) -> bool:
    """Whether the problem in these arguments may be one of several documents."""
    return batch.mask is None and batch.bias is None and all(map(can_be_among, batch.vectors))


def ends(length: int, multiple: int) -> tuple[int, ...]:
    """The prefix sums of the three lengths, the problem's in the middle; multiple: of which the
    whole has to be."""
    rest = -(_BEFORE + length + _AFTER) % multiple
    stop = _BEFORE + length
    return 0, _BEFORE, stop, stop + _AFTER + rest


def among(tensor: Tensor, sums: tuple[int, ...], scale: float = 1.0) -> Tensor:
    """A tensor `[batch, heads, length, dim]` between drawn numbers, normal times `scale`."""
    generator = torch.Generator().manual_seed(1)
    sizes = (*tensor.shape[:2], sums[-1], tensor.shape[-1])
    drawn = torch.randn(sizes, generator=generator) * scale
    others = drawn.to(tensor.dtype).to(tensor.device)
    return torch.cat((others[:, :, : sums[1]], tensor, others[:, :, sums[2] :]), 2)


def wrap(
    inputs: tuple[Tensor, Tensor, Tensor], multiple: int
) -> tuple[tuple[Tensor, Tensor, Tensor], Tensor]:
    """Query, key and value of the whole sequence, and its `cu_seqlens`."""
    query, key, value = inputs
    sums = ends(query.shape[2], multiple)
    whole = (among(query, sums), among(key, sums), among(value, sums, _LARGE))
    return whole, torch.tensor(sums, dtype=torch.int32, device=query.device)


def own(found: object, length: int, multiple: int) -> object:
    """The problem's part of an output or log-sum-exp of the whole; a value of another form as it
    is."""
    _, first, stop, whole = ends(length, multiple)
    if isinstance(found, Tensor) and found.ndim > 2 and found.shape[2] == whole:
        return found[:, :, first:stop]
    return found
