"""Which shards see each other.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/ShardBounds.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce

from bridge.spec.core import get_or, int_div


def one_document(documents: list[int] | None, i: int, j: int) -> bool:
    """Whether two places belong to one document: the documents' prefix sums, `[0, n₀, n₀ + n₁,
    …]`; `none`: the sequence is one document.

    Lean: `Attention.Spec.oneDocument`.
    """
    if documents is None:
        return True
    return any(
        (
            between[0] <= i and i < between[1] and (between[0] <= j) and (j < between[1])
            for between in zip(documents, documents[1:], strict=False)
        )
    )


def sees_place(
    left: int | None, right: int | None, shift: int, documents: list[int] | None, i: int, j: int
) -> bool:
    """Whether the query at place i sees the key at place j: i + shift − left ≤ j ≤ i + shift +
    right, in one document.

    Lean: `Attention.Spec.seesPlace`.
    """
    return (
        (left is None or i + shift - left <= j)
        and (right is None or j <= i + shift + right)
        and one_document(documents, i, j)
    )


@dataclass(frozen=True)
class Stretch:
    """`size` neighbours in a shard, that stand in the sequence at `first`, first + step, …

    first: the place of the first.

    size: how many they are.

    step: from the place of one to that of the next.

    Lean: `Attention.Spec.Stretch`.
    """

    first: int
    size: int
    step: int


def stretch_places(run: Stretch) -> list[int]:
    """The places of a run.

    Lean: `Attention.Spec.Stretch.places`.
    """
    return [run.first + run.step * k for k in range(run.size)]


def stretches(places: list[int]) -> list[Stretch]:
    """Places as runs of step 1, each as long as can be.

    Lean: `Attention.Spec.stretches`.
    """
    result = []
    for place in reversed(places):
        if not result:
            result = [Stretch(first=place, size=1, step=1)]
        else:
            rest = result[1:]
            if result[0].first == place + 1:
                result = [Stretch(first=place, size=result[0].size + 1, step=1), *rest]
            else:
                result = [Stretch(first=place, size=1, step=1), result[0], *rest]
    return result


def runs_of(most: int, places: list[int]) -> list[Stretch] | None:
    """Places as one run of a step above 1, where they are one, else as stretches; `none`: there
    are more than `most` of these.

    Lean: `Attention.Spec.runsOf`.
    """
    run = Stretch(
        first=get_or(places, 0, 0),
        size=len(places),
        step=max(get_or(places, 1, 0) - get_or(places, 0, 0), 0),
    )
    if 1 < run.step and stretch_places(run) == places:
        return [run]
    runs = stretches(places)
    return runs if len(runs) <= most else None


def stretch_part(first: int, stop: int, run: Stretch) -> Stretch:
    """The runs of a document alone, of stretches: from place `first` up to but without `stop`.

    Lean: `Attention.Spec.Stretch.part`.
    """
    low = max(run.first, first)
    return Stretch(first=low, size=max(min(run.first + run.size, stop) - low, 0), step=1)


def least_apart(left: int | None, step: int, distance: int) -> int | None:
    """Of query number i of a run and key number j of another: the least j − i of those that see
    each other; `none`: there is no bound. The first query stands `distance` after the first
    key.

    Lean: `Attention.Spec.leastApart`.
    """
    return None if left is None else -int_div(left - distance, step)


def most_apart(right: int | None, step: int, distance: int) -> int | None:
    """The greatest j − i of those that see each other.

    Lean: `Attention.Spec.mostApart`.
    """
    return None if right is None else int_div(distance + right, step)


def stretch_sees(
    left: int | None, right: int | None, shift: int, step: int, queries: Stretch, keys: Stretch
) -> bool:
    """Whether some query of a run sees some key of another, both of this step: j − i can be all
    from 1 − size of the queries to size of the keys − 1.

    Lean: `Attention.Spec.Stretch.sees`.
    """
    distance = queries.first + shift - keys.first
    lowest = 1 - queries.size
    highest = keys.size - 1
    least = least_apart(left, step, distance)
    greatest = most_apart(right, step, distance)
    return (
        0 < queries.size
        and 0 < keys.size
        and (least is None or (least <= highest and (greatest is None or least <= greatest)))
        and (greatest is None or lowest <= greatest)
    )


def step_of(runs: list[Stretch]) -> int | None:
    """The step of the runs of a shard; `none` where they hold so few places that any is.

    Lean: `Attention.Spec.stepOf`.
    """
    if len([x for run in runs for x in stretch_places(run)]) < 2:
        return None
    return reduce(lambda step, run: max(step, run.step), runs, 1)


def common_step(queries: list[Stretch], keys: list[Stretch]) -> int | None:
    """The one step of two shards; `none` if they have two.

    Lean: `Attention.Spec.commonStep`.
    """
    step = step_of(queries)
    step_1 = step_of(keys)
    if step is None and step_1 is None:
        return 1
    if step is None and step_1 is not None:
        return step_1
    if step is not None and step_1 is None:
        return step
    return step if step == step_1 else None


def runs_see(
    left: int | None,
    right: int | None,
    shift: int,
    documents: list[int] | None,
    step: int,
    queries: list[Stretch],
    keys: list[Stretch],
) -> bool:
    """Whether some query of one shard sees some key of another, by their runs: of one document,
    where there are several, and these of stretches.

    Lean: `Attention.Spec.runsSee`.
    """
    if documents is None:
        return any(
            (any((stretch_sees(left, right, shift, step, a, b) for b in keys)) for a in queries)
        )
    return any(
        (
            any(
                (
                    any(
                        (
                            stretch_sees(
                                left,
                                right,
                                shift,
                                1,
                                stretch_part(between[0], between[1], a),
                                stretch_part(between[0], between[1], b),
                            )
                            for b in keys
                        )
                    )
                    for a in queries
                )
            )
            for between in zip(documents, documents[1:], strict=False)
        )
    )


def meets(
    most: int,
    left: int | None,
    right: int | None,
    shift: int,
    documents: list[int] | None,
    queries: list[int],
    keys: list[int],
) -> bool:
    """Whether a device computes its queries with the keys of another, by the places of both.
    Shards that are not runs of one step, or of another than 1 with documents, do, unless one is
    empty.

    Lean: `Attention.Spec.meets`.
    """
    both = 0 < len(queries) and 0 < len(keys)
    ours = runs_of(most, queries)
    theirs = runs_of(most, keys)
    if ours is not None and theirs is not None:
        step = common_step(ours, theirs)
        if step is None:
            return both
        if documents is None or step == 1:
            return runs_see(left, right, shift, documents, step, ours, theirs)
        return both
    return both
