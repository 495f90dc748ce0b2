"""Results of one function in all its dtypes, as they are kept: counts, reasons, symptoms."""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge.conformance.judging.judge import VectorResult, plain
from bridge.conformance.outcomes.outcome import Outcome
from bridge.findings.conditions import condition
from bridge.findings.symptoms import (
    FindingsError,
    Number,
    Wrong,
    general_reason,
    problems_of,
    recompute,
    right_gradients,
    show_number,
    wrong_numbers,
)
from bridge.vectors.exact import attention as exact
from bridge.vectors.format import files
from bridge.vectors.model.attention import AttentionVector, Family, Vector
from bridge.vectors.model.gradients import GradientVector
from pyimpl.internal.scores import KERNEL_CHANGES

Entry = dict[str, Any]


def hashes(folder: Path, families: Sequence[Family]) -> dict[str, str]:
    """By id, a hash of each vector as it stands in its file, without the reason why it exists."""
    found = {}
    for family in families:
        for entry in files.read(folder / f"{family.name}.json")[1]["vectors"]:
            kept = {name: value for name, value in entry.items() if name != "reason"}
            text = json.dumps(kept, ensure_ascii=False, sort_keys=True)
            found[entry["id"]] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return found


def collect(
    outcomes: Sequence[Outcome], families: Sequence[Family], hash_of: Mapping[str, str]
) -> Entry:
    """The entry that is kept of one function. Raises FindingsError for a failure that exact
    arithmetic does not confirm, and for a vector whose own results it contradicts."""
    vectors = {vector.id: vector for family in families for vector in family.vectors}
    by_dtype = {
        outcome.result.dtype: {r.id: r for r in outcome.result.vectors} for outcome in outcomes
    }
    return {
        "dtypes": list(by_dtype),
        "rounding_models": [outcome.result.rounding_model for outcome in outcomes],
        "families": {family.name: _counts(family, by_dtype) for family in families},
        "unsupported": _why_unsupported(by_dtype),
        "symptoms": _symptoms(by_dtype, vectors, hash_of),
        "largest_ratio_passed": {
            dtype: _largest(results.values()) for dtype, results in by_dtype.items()
        },
    }


def _largest(results: Any) -> float | None:
    ratios = [
        x for r in results if r.status == "passed" for x in (r.ratio, r.lse_ratio) if x is not None
    ]
    return float(f"{max(ratios):.3g}") if ratios else None


def _counts(family: Family, by_dtype: Mapping[str, Mapping[str, VectorResult]]) -> dict[str, int]:
    """A vector counts as failed if it fails in one dtype, as passed if it passes in one and fails
    in none."""
    counts = Counter(passed=0, failed=0, unsupported=0)
    for vector in family.vectors:
        states = {results[vector.id].status for results in by_dtype.values()}
        counts[next(s for s in ("failed", "passed", "unsupported") if s in states)] += 1
    return dict(counts)


def _why_unsupported(by_dtype: Mapping[str, Mapping[str, VectorResult]]) -> list[Entry]:
    """Each reason, in which dtypes, of which families, and of how many vectors; most first."""
    ids: dict[tuple[str, str], dict[str, str]] = defaultdict(dict)
    dtypes: dict[tuple[str, str], set[str]] = defaultdict(set)
    for dtype, results in by_dtype.items():
        for result in results.values():
            whole = result.reason if result.status == "unsupported" else None
            for part, why in (("all", whole), ("lse", result.lse_reason)):
                if why is not None:
                    ids[part, why][result.id] = result.family
                    dtypes[part, why].add(dtype)
    return [
        {
            "part": part,
            "reason": why,
            "vectors": len(found),
            "families": sorted(set(found.values())),
            "dtypes": [dtype for dtype in by_dtype if dtype in dtypes[part, why]],
        }
        for (part, why), found in sorted(ids.items(), key=lambda pair: (-len(pair[1]), pair[0]))
    ]


def _symptoms(
    by_dtype: Mapping[str, Mapping[str, VectorResult]],
    vectors: Mapping[str, Vector],
    hash_of: Mapping[str, str],
) -> list[Entry]:
    """Each symptom with the vectors that show it."""
    seen: dict[str, dict[tuple[str, str], list[Wrong]]] = defaultdict(dict)
    for dtype, results in by_dtype.items():
        for result in results.values():
            if result.status != "failed":
                continue
            if result.detail is None:
                seen[general_reason(result.reason or "")][dtype, result.id] = []
                continue
            for sentence in exact.disagreements(vectors[result.id]):
                raise FindingsError(sentence)
            for wrong in wrong_numbers(result, vectors[result.id], dtype):
                seen[wrong.what].setdefault((dtype, result.id), []).append(wrong)
    return [_symptom(what, shows, by_dtype, vectors, hash_of) for what, shows in _together(seen)]


def _together(
    seen: Mapping[str, dict[tuple[str, str], list[Wrong]]],
) -> list[tuple[str, dict[tuple[str, str], list[Wrong]]]]:
    """Symptoms that the same vectors show in the same dtypes, as one; those of outputs first."""
    found: dict[frozenset[tuple[str, str]], tuple[str, dict[tuple[str, str], list[Wrong]]]] = {}
    for what, shows in sorted(seen.items(), key=lambda pair: ("log-sum-exp" in pair[0], pair[0])):
        key = frozenset(shows)
        if key in found:
            before, others = found[key]
            what = f"{before} {what}"
            shows = {pair: [*others[pair], *shows[pair]] for pair in shows}
        found[key] = what, shows
    return list(found.values())


def _symptom(
    what: str,
    shows: Mapping[tuple[str, str], list[Wrong]],
    by_dtype: Mapping[str, Mapping[str, VectorResult]],
    vectors: Mapping[str, Vector],
    hash_of: Mapping[str, str],
) -> Entry:
    failing = {
        dtype: sorted(id for d, id in shows if d == dtype)
        for dtype in by_dtype
        if any(d == dtype for d, _ in shows)
    }
    part = next((w.part for found in shows.values() for w in found), None)
    conditions = {
        condition(
            (vectors[r.id] for r in by_dtype[dtype].values() if _judge(r, part)),
            set(failing[dtype]),
        )
        for dtype in failing
    }
    ids = {id for _, id in shows}
    example = min(shows, key=lambda pair: (*_size(vectors[pair[1]]), list(by_dtype).index(pair[0])))
    return {
        "what": what if part is not None else f"{what.partition(':')[0].rstrip('.')}.",
        "condition": conditions.pop() if len(conditions) == 1 else None,
        "families": sorted({vectors[id].family for id in ids}),
        "vectors": {id: hash_of[id] for id in sorted(ids)},
        "failing": {dtype: len(found) for dtype, found in failing.items()},
        "numbers": sum(map(len, shows.values())),
        "example": _example(*example, shows[example], by_dtype, vectors),
    }


def _judge(result: VectorResult, part: str | None) -> bool:
    if result.status == "unsupported":
        return False
    if part != "lse" or result.status == "passed":
        return part != "lse" or result.lse_ratio is not None
    return result.detail is not None and bool(result.detail.lse_got)


def _size(vector: Vector) -> tuple[bool, int, str]:
    problems = problems_of(vector)
    numbers = sum(p.q_len * p.kv_len * (p.head_dim + p.value_dim) for p in problems)
    return not isinstance(vector, AttentionVector), numbers, vector.id


def _example(
    dtype: str,
    id: str,
    found: Sequence[Wrong],
    by_dtype: Mapping[str, Mapping[str, VectorResult]],
    vectors: Mapping[str, Vector],
) -> Entry:
    vector = vectors[id]
    row = found[0].row if found and not isinstance(vector, GradientVector) else None
    entry: Entry = {
        "vector": id,
        "family": vector.family,
        "dtype": dtype,
        "theorem": vector.theorem,
        "reason": vector.reason,
        "inputs": [list(pair) for pair in _inputs(vector, row)],
    }
    if not found:
        # The right result for the first query that there is.
        part = "output"
        right: Sequence[Number]
        if isinstance(vector, GradientVector):
            part, right = "dq[0]", right_gradients(vector)["dq[0]"][0]
        else:
            right, _ = recompute(next(p for p in problems_of(vector) if p.q_len), 0)
        expected = [show_number(x) for x in right]
        reason = by_dtype[dtype][id].reason
        return {**entry, "part": part, "row": 0, "expected": expected, "raised": reason}
    (row, part) = found[0].row, found[0].part
    same = [w for w in found if (w.row, w.part) == (row, part)]
    return {
        **entry,
        "part": part,
        "row": row,
        "columns": [w.column for w in same],
        "expected": [show_number(w.expected) for w in same],
        "got": [_number(w.got) for w in same],
        "tolerance": [_number(float(f"{w.tolerance:.3g}")) for w in same],
    }


def _number(x: float) -> str:
    text: str = plain(x) if isinstance(plain(x), str) else repr(x)
    return {"nan": "NaN", "inf": "∞", "-inf": "−∞"}.get(text, text)


def _inputs(vector: Vector, row: int | None) -> list[tuple[str, str]]:
    """The essence of the inputs: sizes, scale, options, and of the query that goes wrong which keys
    it sees; all numbers where they are few."""
    found = []
    start = 0
    for problem in problems_of(vector):
        inside = None if row is None else row - start
        start += problem.q_len
        if inside is not None and not 0 <= inside < problem.q_len:
            continue
        found += _inputs_of(problem, inside)
        break
    return found


def _inputs_of(problem: AttentionVector, row: int | None) -> list[tuple[str, str]]:
    sizes = f"q_len {problem.q_len}, kv_len {problem.kv_len}, "
    sizes += f"head_dim {problem.head_dim}, value_dim {problem.value_dim}"
    scale = "1/√head_dim" if problem.scale is None else str(problem.scale)
    if problem.scale is not None and problem.model == "exact":
        scale += " · ln 2"
    found = [("sizes", sizes), ("scale", scale), ("mask", problem.mask.kind)]
    for name in (change.feature for change in KERNEL_CHANGES if change.kind != "pair"):
        if getattr(problem, name) is not None:
            found.append((name, str(getattr(problem, name))))
    if row is not None:
        seen = exact.visible_keys(problem, row)
        few = len(seen) <= 8
        keys = (", ".join(map(str, seen)) if few else f"{len(seen)} keys") if seen else "no key"
        found.append((f"query {row} sees", keys))
    for name, matrix in (("q", problem.q), ("k", problem.k), ("v", problem.v)):
        if sum(map(len, matrix)) <= 12:
            rows = "; ".join(", ".join(map(str, line)) for line in matrix)
            found.append((name, f"[{rows}]"))
    return found
