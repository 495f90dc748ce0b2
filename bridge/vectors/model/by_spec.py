"""Exact results of attention for inputs that no file has: by the Spec's translation, of which the
proofs speak, and by integers, which is fast enough for real sizes.

Both give the rows that Lean gives for the same inputs; tests compare all three.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bridge.spec import masks, score_mods
from bridge.spec.attention import Mask as SpecMask
from bridge.spec.attention import ScoredValue, ScoreMod, attend, mask_to_score_mod, scored
from bridge.spec.core import EXACT, Arithmetic
from bridge.spec.heads import grouped_query, kv_head
from bridge.spec.masks import Alignment
from bridge.spec.online import of_block
from bridge.vectors.model.attention import AttentionVector, Exact, Mask, Matrix, Row
from bridge.vectors.model.gradients import Gradients, GradientVector
from bridge.vectors.model.operations import GroupedQueryVector

Integers = NDArray[np.int64]
# Sums of int64 below this cannot overflow.
_LARGEST = 1 << 62


def spec_mask(mask: Mask, q_len: int, kv_len: int) -> SpecMask:
    """The mask as the Spec has it."""
    sizes = {"q_len": q_len, "kv_len": kv_len}
    alignment = Alignment.BOTTOM_RIGHT if mask.shift else Alignment.TOP_LEFT
    match mask.kind:
        case "none":
            return masks.mask_full()
        case "causal" | "causal-bottom-right":
            return masks.mask_causal(alignment, **sizes)
        case "window":
            return masks.mask_window(alignment, mask.left, mask.right, **sizes)
        case "key-length":
            return masks.mask_key_length(mask.length)
        case "key-padding":
            return masks.mask_key_padding(list(mask.valid))
        case "document":
            return masks.mask_document(list(mask.queries), list(mask.keys))
        case "boolean":
            return lambda i, j: mask.rows[i][j]


def spec_changes(
    vector: AttentionVector, number: Callable[[Exact], Any], num: Arithmetic
) -> ScoreMod:
    """The changes of scores as the Spec has them: softcap, ALiBi, bias and mask, in this order.
    number: an input as a number of the arithmetic."""
    sizes = {"q_len": vector.q_len, "kv_len": vector.kv_len}
    steps: list[ScoreMod] = []
    if vector.softcap is not None:
        steps.append(score_mods.score_mod_softcap(number(vector.softcap), num=num))
    if vector.alibi is not None:
        alignment = Alignment.BOTTOM_RIGHT if vector.alibi.shift else Alignment.TOP_LEFT
        slope = number(vector.alibi.slope)
        steps.append(score_mods.score_mod_alibi(alignment, slope, **sizes, num=num))
    if vector.bias is not None:
        rows = [[None if x is None else number(x) for x in row] for row in vector.bias]
        steps.append(score_mods.score_mod_bias(rows))
    modify = mask_to_score_mod(spec_mask(vector.mask, **sizes))
    for step in reversed(steps):
        modify = score_mods.score_mod_and_then(step, modify)
    return modify


def attention_rows(vector: AttentionVector) -> tuple[Row, ...]:
    """The rows of a vector of the exact model by the translation of `Spec.attend`, some 7 µs for
    each query, key and column. Raises ValueError for one with options or another model."""
    if vector.model != "exact" or vector.options or vector.scale is None:
        raise ValueError(f"{vector.id}: the exact model has a scale and a mask alone")
    modify = mask_to_score_mod(spec_mask(vector.mask, vector.q_len, vector.kv_len))
    q, k, v = ([*map(list, rows)] for rows in (vector.q, vector.k, vector.v))
    keys, size = list(range(vector.kv_len)), vector.head_dim
    found = []
    for i in range(vector.q_len):
        row = scored(vector.scale, modify, q, k, v, i, keys, d=size, num=EXACT)
        found.append(_row(row, attend(row, d_v=vector.value_dim, num=EXACT)))
    return tuple(found)


def grouped_rows(vector: GroupedQueryVector) -> tuple[tuple[Row, ...], ...]:
    """The rows of each query head by the translation of `Spec.groupedQuery`."""
    mask = mask_to_score_mod(spec_mask(vector.mask, vector.q_len, vector.kv_len))
    heads = [[[*map(list, rows)] for rows in x] for x in (vector.q, vector.k, vector.v)]
    group = vector.num_heads // vector.num_kv_heads
    outputs = grouped_query(
        vector.scale, lambda _h, i, j, s: mask(i, j, s), *heads,
        q_len=vector.q_len, kv_len=vector.kv_len, d=vector.head_dim, d_v=vector.value_dim,
        num_kv_heads=vector.num_kv_heads, group=group, num=EXACT,
    )  # fmt: skip
    q, k, v = heads
    keys = list(range(vector.kv_len))
    found = []
    for h, output in enumerate(outputs):
        c = kv_head(h, group=group)
        rows = [
            scored(vector.scale, mask, q[h], k[c], v[c], i, keys, d=vector.head_dim, num=EXACT)
            for i in range(vector.q_len)
        ]
        found.append(tuple(_row(*pair) for pair in zip(rows, output, strict=True)))
    return tuple(found)


def _row(row: list[ScoredValue], output: Sequence[Exact]) -> Row:
    """A row's result, as `rowResult` of Attention/Vectors/Case.lean makes it: maximum and
    denominator by `Spec.Online.ofBlock`, beside the output."""
    state = of_block(row, d=len(output), num=EXACT)
    return _result(state.m, state.l, map(Fraction, output))


def _result(largest: int | None, denominator: Exact, output: Iterable[Fraction]) -> Row:
    numbers = tuple(output)
    bottom = math.lcm(*(x.denominator for x in numbers))
    numerators = tuple(x.numerator * (bottom // x.denominator) for x in numbers)
    return Row(largest, denominator, bottom, numerators)


def integer_rows(
    q: Integers, k: Integers, v: Integers, scale: int, seen: NDArray[np.bool_]
) -> tuple[Row, ...]:
    """The rows computed with integers. q: [rows, head_dim]; k: [kv_len, head_dim]; v: [kv_len,
    value_dim]; seen: [rows, kv_len], which keys each query may attend to.

    The values of keys with one score are added up before they are weighted, so that only as many
    large numbers are needed as there are scores. Raises ValueError for numbers that int64 might not
    hold.
    """
    reach = abs(scale) * largest_of(q) * largest_of(k) * q.shape[1]
    if max(reach, largest_of(v) * len(v)) >= _LARGEST:
        raise ValueError("these numbers are too large for sums of 64 bits")
    scores = scale * (q @ k.T)
    return tuple(
        _integer_row(line[visible], v[visible]) for line, visible in zip(scores, seen, strict=True)
    )


def largest_of(numbers: NDArray[Any]) -> int:
    """The largest absolute value; 0 of none."""
    return int(np.abs(numbers).max(initial=0))


def _integer_row(scores: Integers, values: Integers) -> Row:
    """scores: [n]; values: [n, value_dim], of the keys that are seen."""
    if not len(scores):
        return Row(None, 0, 1, (0,) * values.shape[1])
    order = np.argsort(scores, kind="stable")
    each, first, counts = np.unique(scores[order], return_index=True, return_counts=True)
    sums = np.add.reduceat(values[order], first, axis=0)
    lowest, largest = int(each[0]), int(each[-1])
    shifts = [int(s) - lowest for s in each]
    total = sum(int(n) << shift for n, shift in zip(counts, shifts, strict=True))
    columns = sums.T.tolist()
    weighted = (
        sum(x << shift for x, shift in zip(column, shifts, strict=True)) for column in columns
    )
    output = (Fraction(x, total) for x in weighted)
    return _result(largest, Fraction(total, 1 << (largest - lowest)), output)


def integer_gradients(
    vector: GradientVector,
    rows: Sequence[int],
    keys: Sequence[int],
    seen: Sequence[NDArray[np.bool_]],
) -> Gradients:
    """The gradients of a vector of the exact model: by the queries at `rows`, by the keys and
    values at `keys`, and by the scores of both, from integers, for real sizes; those by queries and
    keys divided by ln 2. seen: of each mask, [q_len, kv_len], which keys each query may attend to.

    Each query has weights 2^score, whole, over their sum Z, and so terms over Z². Terms of a key
    are added up over the product of all Z², and each sum is made a fraction once. A sink of 0 has
    the weight 1 in every base, and is one more term of Z. Raises ValueError for one with other
    options or another model, and for numbers that are not whole or that int64 might not hold.
    """
    others = vector.options - {"sinks"}
    if vector.model != "exact" or others or any(vector.sinks or ()) or vector.scale is None:
        raise ValueError(f"{vector.id}: the exact model has a scale, masks and sinks of 0 alone")
    q, k, v, by_output = (
        np.array(part, dtype=object) for part in (vector.q, vector.k, vector.v, vector.grad_output)
    )
    by_lse = np.array(vector.grad_log_sum_exp, dtype=object)
    if any(x.denominator != 1 for part in (q, k, v, by_output, by_lse) for x in part.flat):
        raise ValueError(f"{vector.id}: whole numbers are accepted")
    scale, size = int(vector.scale), max(vector.head_dim, vector.value_dim)
    reach = max(abs(scale) * largest_of(q) * largest_of(k), largest_of(by_output) * largest_of(v))
    if reach * size >= _LARGEST:
        raise ValueError("these numbers are too large for sums of 64 bits")
    group, rows, keys = vector.num_heads // vector.num_kv_heads, list(rows), list(keys)
    found: dict[str, list[Any]] = {"q": [], "k": [], "v": [], "bias": []}
    by_sinks: list[Fraction] = []
    for c in range(vector.num_kv_heads):
        # The sums of all queries of all heads that share the keys: terms by scores and by weights.
        totals: list[int] = []
        of_keys: list[tuple[Any, Any, Any, Any]] = []
        for h in range(c * group, (c + 1) * group):
            visible = seen[0 if len(seen) == 1 else h]
            scores = scale * (q[h].astype(np.int64) @ k[c].astype(np.int64).T)
            lowest = np.where(visible, scores, _LARGEST).min(1, initial=_LARGEST)
            if vector.sinks is not None:
                lowest = np.minimum(lowest, 0)
            shifts = np.where(visible, scores - lowest[:, None], 0)
            weights = np.where(visible, np.left_shift(1, shifts.astype(object)), 0)
            total = weights.sum(1)
            if vector.sinks is not None:
                of_sink = np.left_shift(1, -lowest.astype(object))
                total = total + of_sink
            total[~visible.any(1)] = 1
            products = by_output[h].astype(np.int64) @ v[c].astype(np.int64).T
            sums = (weights * products).sum(1)
            # w·(g·v·Z − Σ w·g·v + dL·Z), over Z².
            terms = weights * (
                (products + by_lse[h][:, None]) * total[:, None] - sums[:, None]
            )  # fmt: skip
            by_queries = scale * (terms[rows] @ k[c])
            below = [int(z) ** 2 for z in total]
            if vector.sinks is not None:
                # The sink is as a key with the value 0.
                by_sink = of_sink * (by_lse[h] * total - sums)
                by_sinks.append(sum(map(Fraction, by_sink.tolist(), below), Fraction(0)))
            found["q"].append(_quotients(by_queries, [below[i] for i in rows]))
            found["bias"].append(_quotients(terms[rows][:, keys], [below[i] for i in rows]))
            totals += map(int, total)
            weighed = weights[:, keys] * total[:, None]
            of_keys.append((terms[:, keys], q[h], weighed, by_output[h]))
        below = [z * z for z in totals]
        product = math.prod(below)
        factors = np.array([product // z for z in below], dtype=object)[:, None]
        terms, queries, weighed, wanted = (
            np.concatenate(part) for part in zip(*of_keys, strict=True)
        )
        whole = [product] * len(keys)
        found["k"].append(_quotients(scale * ((terms * factors).T @ queries), whole))
        found["v"].append(_quotients((weighed * factors).T @ wanted, whole))
    return Gradients(
        **{name: tuple(heads) for name, heads in found.items()},
        sinks=None if vector.sinks is None else tuple(by_sinks),
    )


def _quotients(numbers: NDArray[Any], below: Sequence[int]) -> Matrix:
    """The rows of a matrix of integers, each over a number of its own."""
    return tuple(
        tuple(Fraction(int(x), z) for x in row) for row, z in zip(numbers, below, strict=True)
    )
