"""How large the vectors are on which attention functions are judged, by operation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from bridge.vectors.model.attention import AttentionVector, Family, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import LaidOutVector
from bridge.vectors.model.sampled import SampledGradientVector, SampledVector
from bridge.vectors.model.tangents import TangentVector

_HEAD = ("operation", "vectors", "queries up to", "keys up to", "head sizes", "sizes of a value")


def table(families: Sequence[Family]) -> str:
    """A row for each operation that has queries and keys of its own; lengths of one sequence."""
    found: dict[str, list[tuple[AttentionVector, ...]]] = {}
    for family in families:
        for vector in family.vectors:
            if (problems := _problems(vector)) is not None:
                found.setdefault(vector.operation, []).append(problems)
    rows = [_row(operation, vectors) for operation, vectors in found.items()]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in (_HEAD, _line(_HEAD), *rows))


def _problems(vector: Vector) -> tuple[AttentionVector, ...] | None:
    if isinstance(vector, AttentionVector):
        return (vector,)
    problems: tuple[AttentionVector, ...] | None = None
    if isinstance(vector, GradientVector):
        problems = vector.attentions()
    elif isinstance(vector, TangentVector):
        problems = (vector.attention(),)
    elif isinstance(vector, LaidOutVector | SampledVector):
        problems = vector.problems()
    if isinstance(vector, SampledVector | SampledGradientVector) and problems and vector.packed:
        lengths = vector.packed.lengths()
        return tuple(replace(problems[0], q_len=q, kv_len=k) for q, k in lengths)
    return problems


def _row(operation: str, vectors: Sequence[tuple[AttentionVector, ...]]) -> tuple[str, ...]:
    every = [problem for problems in vectors for problem in problems]
    return (
        f"`{operation}`",
        str(len(vectors)),
        str(max(one.q_len for one in every)),
        str(max(one.kv_len for one in every)),
        _list_numbers(one.head_dim for one in every),
        _list_numbers(one.value_dim for one in every),
    )


def _line(cells: Sequence[str]) -> tuple[str, ...]:
    """Numbers stand at the right."""
    return tuple("---:" if "up to" in cell or cell == "vectors" else "---" for cell in cells)


def _list_numbers(sizes: Iterable[int]) -> str:
    """Numbers in their order, three or more in a row as from and to."""
    runs: list[list[int]] = []
    for size in sorted(set(sizes)):
        if runs and runs[-1][-1] == size - 1:
            runs[-1].append(size)
        else:
            runs.append([size])
    return ", ".join(
        f"{run[0]} to {run[-1]}" if len(run) > 2 else ", ".join(map(str, run)) for run in runs
    )
