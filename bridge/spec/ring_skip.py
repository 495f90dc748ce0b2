"""Ring attention that leaves out what nobody sees.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/RingSkip.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bridge.spec.attention import Mask
from bridge.spec.backward_tiles import KeySums
from bridge.spec.core import Arithmetic
from bridge.spec.masks import Alignment, alignment_shift, mask_and, mask_window
from bridge.spec.ring_net import source
from bridge.spec.ring_net_backward import BackwardState, Parcel, ParcelKeys
from bridge.spec.shard_bounds import meets, one_document
from bridge.spec.vector import vec_zero


def needed_within(meet: Callable[[int, int], bool], t: int, *, n: int) -> int:
    """After how many of the first rounds of a ring no device holds keys that it needs; `meet i j`:
    device i needs those of device j. The first round is never left out.

    Lean: `Attention.Spec.neededWithin`.
    """
    if t == 0:
        return 0
    t_1 = t - 1
    if t_1 == 0 or any((meet(i, source(i, t_1, n=n)) for i in range(n))):
        return t_1 + 1
    return needed_within(meet, t_1, n=n)


def needed_rounds(meet: Callable[[int, int], bool], *, n: int) -> int:
    """The number of rounds of a ring of n devices.

    Lean: `Attention.Spec.neededRounds`.
    """
    return needed_within(meet, n, n=n)


def take_met(
    meet: Callable[[int, int], bool],
    take: Callable[[int, int, Any, Any], Any],
    i: int,
    source: int,
    result: Any,
    held: Any,
) -> Any:
    """A device computes only with the keys that it needs.

    Lean: `Attention.Spec.takeMet`.
    """
    return take(i, source, result, held) if meet(i, source) else result


def take_parcel_met(
    meet: Callable[[int, int], bool],
    take: Callable[[int, int, BackwardState, Parcel], BackwardState],
    i: int,
    source: int,
    state: BackwardState,
    held: Parcel,
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> BackwardState:
    """The same backward, where the gradients of the other keys are zeros.

    Lean: `Attention.Spec.takeParcelMet`.
    """
    if isinstance(held, ParcelKeys):
        if meet(i, source):
            return take(i, source, state, held)
        return BackwardState(
            dQ=state.dQ,
            sums=KeySums(
                dK=[vec_zero(d=d, zero=num.value(0)) for _ in held.held],
                dV=[vec_zero(d=d_v, zero=num.value(0)) for _ in held.held],
            ),
        )
    return take(i, source, state, held)


def shards_meet(
    most: int,
    alignment: Alignment,
    left: int | None,
    right: int | None,
    documents: list[int] | None,
    rows: Callable[[int], list[int]],
    cols: Callable[[int], list[int]],
    i: int,
    j: int,
    *,
    q_len: int,
    kv_len: int,
) -> bool:
    """Which devices need the keys of which, by the places of their queries and keys.

    Lean: `Attention.Spec.shardsMeet`.
    """
    return meets(
        most,
        left,
        right,
        alignment_shift(q_len, kv_len, alignment),
        documents,
        [q for q in rows(i)],
        [k for k in cols(j)],
    )


def mask_in_documents(
    alignment: Alignment,
    left: int | None,
    right: int | None,
    documents: list[int] | None,
    *,
    q_len: int,
    kv_len: int,
) -> Mask:
    """The mask of a sequence in shards: a window, and documents that do not see each other.

    Lean: `Attention.Spec.Mask.inDocuments`.
    """
    return mask_and(
        mask_window(alignment, left, right, q_len=q_len, kv_len=kv_len),
        lambda i, j: one_document(documents, i, j),
    )
