"""Packed sequences: where each begins, and how long the longest is, as numbers of the host."""

from __future__ import annotations

from itertools import pairwise

from torch import Tensor


def prefix_sums(name: str, given: Tensor, total: int, of: str) -> list[int]:
    """The prefix sums as plain numbers; raises ValueError unless they rise from 0 to `total`, the
    number of tokens of the tensor `of`."""
    sums: list[int] = given.tolist()
    if sums[0] != 0 or sums[-1] != total or sums != sorted(sums):
        raise ValueError(
            f"{name} must rise from 0 to the number of tokens of {of}, {total}, not {_short(sums)}"
        )
    return sums


def longest(name: str, given: int | None, sums: list[int] | None, total: int) -> int:
    """At least the longest sequence's length: `given`, or where that is None the longest by the
    prefix sums or, if nobody has looked at these, the number of all tokens.

    Raises ValueError for a `given` that is below the longest, if that is known.
    """
    if sums is None:
        return total if given is None else min(given, total)
    known = max((stop - first for first, stop in pairwise(sums)), default=0)
    if given is not None and given < known:
        raise ValueError(f"{name} must be at least the longest sequence, {known}, not {given}")
    return known


def _short(numbers: list[int]) -> str:
    """A list for a sentence, its middle left out if it is long."""
    if len(numbers) <= 8:
        return str(numbers)
    return f"[{', '.join(map(str, numbers[:4]))}, …, {', '.join(map(str, numbers[-3:]))}]"
