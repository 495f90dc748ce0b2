"""Masks.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Masks.lean`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from bridge.spec.attention import Mask


class Alignment(Enum):
    """Which corner of the score matrix the diagonal of a causal or windowed mask starts from.

    Lean: `Attention.Spec.Alignment`.
    """

    TOP_LEFT = "topLeft"
    BOTTOM_RIGHT = "bottomRight"


def alignment_shift(q_len: int, kv_len: int, alignment: Alignment) -> int:
    """By how much a query's place on the axis of the keys differs from its own number.

    Lean: `Attention.Spec.Alignment.shift`.
    """
    return 0 if alignment is Alignment.TOP_LEFT else kv_len - q_len


def mask_full() -> Mask:
    """Every query attends to every key.

    Lean: `Attention.Spec.Mask.full`.
    """
    return lambda _x, _x_1: True


def mask_causal(alignment: Alignment, *, q_len: int, kv_len: int) -> Mask:
    """The causal mask: query `i` attends to key `j` if and only if j ≤ i + shift.

    Lean: `Attention.Spec.Mask.causal`.
    """
    return lambda i, j: j <= i + alignment_shift(q_len, kv_len, alignment)


def mask_window(
    alignment: Alignment, left: int | None, right: int | None, *, q_len: int, kv_len: int
) -> Mask:
    """The sliding window: query `i` attends to key `j` if and only if i + shift − left ≤ j ≤ i +
    shift + right; `none` stands for no bound on that side.

    Lean: `Attention.Spec.Mask.window`.
    """

    def function(i: int, j: int) -> Any:
        p = i + alignment_shift(q_len, kv_len, alignment)
        return (left is None or p - left <= j) and (right is None or j <= p + right)

    return function


def mask_key_padding(valid: list[bool]) -> Mask:
    """Key padding: every query attends to the keys that are `true`.

    Lean: `Attention.Spec.Mask.keyPadding`.
    """
    return lambda _x, j: valid[j]


def mask_key_length(length: int) -> Mask:
    """Key padding at the end: every query attends to the first `length` keys.

    Lean: `Attention.Spec.Mask.keyLength`.
    """
    return lambda _x, j: j < length


def mask_document(queries: list[int], keys: list[int]) -> Mask:
    """Several documents in one sequence: a query attends to the keys of its own document.

    Lean: `Attention.Spec.Mask.document`.
    """
    return lambda i, j: queries[i] == keys[j]


def mask_and(a: Mask, b: Mask) -> Mask:
    """Both masks allow it.

    Lean: `Attention.Spec.Mask.and`.
    """
    return lambda i, j: a(i, j) and b(i, j)
