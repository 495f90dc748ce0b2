"""Which places of a sequence each device holds.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Shards.lean`.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.spec.core import div, mod


def places_of(owner: Callable[[int], int], i: int, *, len_: int) -> list[int]:
    """The places of which device `i` is the owner, in their order.

    Lean: `Attention.Spec.placesOf`.
    """
    return [j for j in range(len_) if owner(j) == i]


def stretch_start(n: int, len_: int, s: int) -> int:
    """The first place of stretch `s`, where `len` places are cut into n stretches, the first `len
    % n` of which are longer by one.

    Lean: `Attention.Spec.stretchStart`.
    """
    return s * div(len_, n) + min(s, mod(len_, n))


def stretch_of(n: int, len_: int, j: int) -> int:
    """The number of stretches that begin after the first one, at or before place `j`.

    Lean: `Attention.Spec.stretchOf`.
    """
    return len([s for s in range(1, 1 + max(n - 1, 0)) if stretch_start(n, len_, s) <= j])


def contiguous_owner(j: int, *, n: int, len_: int) -> int:
    """Contiguous: device i holds stretch i of n.

    Lean: `Attention.Spec.contiguousOwner`.
    """
    return stretch_of(n, len_, j)


def zigzag_owner(j: int, *, n: int, len_: int) -> int:
    """Zigzag: of 2 · n stretches device i holds those with the numbers i and 2 · n − 1 − i.

    Lean: `Attention.Spec.zigzagOwner`.
    """
    s = stretch_of(2 * n, len_, j)
    return min(s, max(max(2 * n - 1, 0) - s, 0))


def striped_owner(j: int, *, n: int) -> int:
    """Striped: device i holds the places i, i + n, i + 2 · n, …

    Lean: `Attention.Spec.stripedOwner`.
    """
    return mod(j, n)
