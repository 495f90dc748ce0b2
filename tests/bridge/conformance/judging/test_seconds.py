"""The work that a run of `conform` does once, and with how many threads: it is counted."""

from __future__ import annotations

import gc
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import committed
import numpy as np
import pytest
import torch

from bridge.conformance.judging import run
from bridge.conformance.judging.threads import one_thread
from bridge.conformance.outcomes import outcome
from bridge.conformance.outcomes.outcome import Conditions, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.tensors import batch
from bridge.vectors.load import load
from bridge.vectors.model.attention import AttentionVector, Mask, MaskKind
from bridge.vectors.model.kept import keep
from bridge.vectors.model.sampled import visible_pairs

SDPA = "torch.nn.functional:scaled_dot_product_attention"


def test_a_second_dtype_makes_no_exact_number_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fractions become floats, and results pairs of floats, in the first dtype alone."""
    made: Counter[str] = Counter()
    plain = Fraction.__float__

    def count(x: Fraction) -> float:
        made["fractions"] += 1
        return plain(x)

    monkeypatch.setattr(Fraction, "__float__", count)
    each, threads = [], set()
    whole = run.run

    def note(*arguments: object, **options: object) -> run.Result:
        threads.add(torch.get_num_threads())
        made.clear()
        result: run.Result = whole(*arguments, **options)  # type: ignore[arg-type]
        each.append(made["fractions"])
        return result

    monkeypatch.setattr(outcome, "run", note)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        # Of vectors that no other test has had in its hands, for which nothing is kept.
        families = [
            replace(family, vectors=tuple(map(replace, family.vectors)))
            for family in load(names=["drawn-natural", "gradient", "bias"])
        ]
        found = list(outcomes(Subject(SDPA), families, ("float32", "bfloat16"), Conditions()))
    finally:
        torch.set_num_threads(before)
    assert all(one.ok for one in found)
    assert threads == {1}
    first, second = each
    assert first > 1000
    assert second < first / 5


def test_a_number_of_threads_that_is_asked_for_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        with one_thread():
            assert torch.get_num_threads() == 2
        monkeypatch.delenv("OMP_NUM_THREADS")
        with one_thread():
            assert torch.get_num_threads() == 1
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_results_are_kept_for_one_object_as_long_as_it_lives() -> None:
    class Thing:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    calls: list[int] = []

    @keep
    def number(one: Thing) -> int:
        calls.append(id(one))
        return len(calls)

    first, second = Thing(), Thing()
    assert [number(first), number(first), number(second), number(first)] == [1, 1, 2, 1]
    for expected in range(3, 50):
        # Others come to lie where one that is gone has been.
        assert number(Thing()) == expected


def test_nobody_can_write_to_what_is_kept() -> None:
    vector = next(v for v in committed.family("bias").vectors if isinstance(v, AttentionVector))
    exact = batch.exactly(vector)
    arrays = [*batch.inputs_of(vector), batch.visible(vector), exact.out, exact.lse]
    for numbers in arrays:
        with pytest.raises(ValueError, match="read-only"):
            numbers[...] = 0
    # And a function's inputs are its own.
    stack = batch.stack((vector,), "float64", "cpu")
    stack.query.zero_()
    assert np.array_equal(batch.inputs_of(vector)[0], batch.array(vector.q, vector.head_dim))


@pytest.mark.parametrize("collecting", [True, False])
def test_to_load_leaves_the_collection_of_garbage_as_it_was(collecting: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if collecting else gc.disable)()
        load(names=["causal"])
        assert gc.isenabled() == collecting
    finally:
        (gc.enable if before else gc.disable)()


@pytest.mark.parametrize("kind", ["none", "key-length", "key-padding", "document", "boolean"])
@pytest.mark.parametrize(("q_len", "kv_len"), [(5, 7), (1, 1), (3, 0), (0, 3)])
def test_what_rows_see_is_what_each_pair_says(kind: MaskKind, q_len: int, kv_len: int) -> None:
    draw = random.Random(f"{kind} {q_len} {kv_len}")
    mask = Mask(
        kind,
        length=kv_len // 2,
        valid=tuple(draw.random() < 0.5 for _ in range(kv_len)),
        queries=tuple(draw.randrange(3) for _ in range(q_len)),
        keys=tuple(draw.randrange(3) for _ in range(kv_len)),
        rows=tuple(tuple(draw.random() < 0.5 for _ in range(kv_len)) for _ in range(q_len)),
    )
    for rows in (tuple(range(q_len)), tuple(range(0, q_len, 2))):
        pairs = [[mask.visible(i, j) for j in range(kv_len)] for i in rows]
        seen = visible_pairs(mask, rows, kv_len)
        assert seen.dtype == bool
        assert np.array_equal(seen, np.array(pairs, dtype=bool).reshape(len(rows), kv_len))
        assert seen.flags.writeable
