"""The cached state of a row, as keys come and go.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Cache.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from bridge.spec.attention import ScoredValue
from bridge.spec.core import Arithmetic, erase_index, get_or_none, set_index
from bridge.spec.maximum import rescale
from bridge.spec.online import State, step


def append(s: State, keys: list[ScoredValue], *, num: Arithmetic) -> State:
    """Several more keys, one at a time.

    Lean: `Attention.Spec.Online.append`.
    """
    result = s
    for key in keys:
        result = step(result, key, num=num)
    return result


def delete(s: State, key: ScoredValue, *, d: int, num: Arithmetic) -> State:
    """One key taken out: its terms are subtracted from l and o, against the stored m, which stays.

    Lean: `Attention.Spec.Online.delete`.
    """
    p = rescale(key.score, s.m, num=num)
    return State(m=s.m, l=s.l - p, o=[s.o[j] - p * key.value[j] for j in range(d)])


def replace(s: State, old: ScoredValue, new: ScoredValue, *, d: int, num: Arithmetic) -> State:
    """One key taken out and another put in its place.

    Lean: `Attention.Spec.Online.replace`.
    """
    return step(delete(s, old, d=d, num=num), new, num=num)


@dataclass(frozen=True)
class EditAppend:
    """One more key at the end.

    Lean: `Attention.Spec.Online.Edit.append`.
    """

    key: ScoredValue


@dataclass(frozen=True)
class EditDelete:
    """The key at a position is taken out; nothing happens beyond the end.

    Lean: `Attention.Spec.Online.Edit.delete`.
    """

    i: int


@dataclass(frozen=True)
class EditReplace:
    """The key at a position is replaced; nothing happens beyond the end.

    Lean: `Attention.Spec.Online.Edit.replace`.
    """

    i: int
    key: ScoredValue


# One change of the keys that a row holds. Lean: `Attention.Spec.Online.Edit`.
Edit: TypeAlias = EditAppend | EditDelete | EditReplace


def edit_keys(row: list[ScoredValue], edit: Edit) -> list[ScoredValue]:
    """The keys of the row after a change.

    Lean: `Attention.Spec.Online.Edit.keys`.
    """
    if isinstance(edit, EditAppend):
        return [*row, edit.key]
    if isinstance(edit, EditDelete):
        return erase_index(row, edit.i)
    return set_index(row, edit.i, edit.key)


def edit(
    c: tuple[list[ScoredValue], State], e: Edit, *, d: int, num: Arithmetic
) -> tuple[list[ScoredValue], State]:
    """One change of a row's keys together with the state that is kept for them.

    Lean: `Attention.Spec.Online.edit`.
    """
    if isinstance(e, EditAppend):
        return ([*c[0], e.key], step(c[1], e.key, num=num))
    if isinstance(e, EditDelete):
        key = get_or_none(c[0], e.i)
        if key is None:
            return c
        return (erase_index(c[0], e.i), delete(c[1], key, d=d, num=num))
    old = get_or_none(c[0], e.i)
    if old is None:
        return c
    return (set_index(c[0], e.i, e.key), replace(c[1], old, e.key, d=d, num=num))


def slide(
    w: int, c: tuple[list[ScoredValue], State], key: ScoredValue, *, d: int, num: Arithmetic
) -> tuple[list[ScoredValue], State]:
    """One more key in a sliding window of `w` keys: the new one is appended, and the oldest
    deleted if there are then more than `w`.

    Lean: `Attention.Spec.Online.slide`.
    """
    c_1 = edit(c, EditAppend(key), d=d, num=num)
    return edit(c_1, EditDelete(0), d=d, num=num) if w < len(c_1[0]) else c_1
