"""`ring-net`, `ring-net-backward` and their rules of left-out work, on runs of the translated Spec:
a drawn one of the events that can happen does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.spec.attention import attention
from bridge.spec.backward import row_delta
from bridge.spec.backward_dropout import vjp_dropout
from bridge.spec.backward_tiles import KeySums
from bridge.spec.core import EXACT
from bridge.spec.dropout import attention_dropout
from bridge.spec.masks import Alignment
from bridge.spec.ring_net import (
    Instruction,
    InstructionWaitReceives,
    InstructionWaitSends,
    RingEvent,
    RingEventArrive,
    RingEventExecute,
    RingEventLeave,
    RingRules,
    forward_rules,
    ring_net_after,
    ring_net_outputs,
    ring_net_run,
    ring_program,
    ring_start,
)
from bridge.spec.ring_net_backward import (
    ParcelSums,
    backward_program,
    backward_rules,
    backward_start,
    ring_net_gradients,
)
from bridge.spec.ring_skip import needed_rounds, shards_meet, take_met, take_parcel_met

SIZE: dict[str, Any] = {"d": 1, "d_v": 1, "num": EXACT}


def to_value(score: int) -> Fraction:
    """An exact score as a value."""
    return Fraction(score)


class Drawn:
    """A ring of devices over drawn numbers: `cols[i]` are the keys of device i, `rows[i]` its
    queries."""

    def __init__(self, random: Random, count: int, length: int) -> None:
        self.random, self.count, self.length = random, count, length
        owner = [random.randrange(count) for _ in range(length)]
        self.cols = [[j for j in range(length) if owner[j] == i] for i in range(count)]
        self.rows = [list(range(i, length, count)) for i in range(count)]
        self.query = [[random.randint(-3, 3)] for _ in range(length)]
        self.key = [[random.randint(-3, 3)] for _ in range(length)]
        self.value = [[Fraction(random.randint(-9, 9))] for _ in range(length)]
        self.capacity = random.randrange(3)
        # Which device computes with the keys of which, and in how many rounds; None: all with all.
        self.meet: Callable[[int, int], bool] | None = None
        self.rounds = count

    def modify(self, q: int, j: int, score: int) -> int | None:
        """Causal."""
        return score if j <= q else None

    def end(self, rules: RingRules, start: Any, channels: int) -> tuple[list[RingEvent], Any]:
        """The events of a run to its end, and the ring there."""
        net = start
        size = {"n": self.count, "b": len(start.nodes[0].buffers), "c": channels}
        all_events: list[RingEvent] = []
        for i in range(self.count):
            all_events.append(RingEventExecute(i))
            for e in range(channels):
                all_events += [RingEventLeave(e, i), RingEventArrive(e, i)]
        # How willing each kind of event is to happen, on each device.
        weights = [self.random.choice((1, 9, 99)) for _ in all_events]
        events: list[RingEvent] = []
        while True:
            can: list[tuple[RingEvent, Any, int]] = []
            for event, weight in zip(all_events, weights, strict=True):
                after = ring_net_after(rules, net, event, **size)
                if after is not None:
                    can.append((event, after, weight))
            if not can:
                assert ring_net_run(rules, events, start, **size) == net
                return events, net
            event, net, _ = self.random.choices(can, [weight for *_, weight in can])[0]
            events.append(event)

    def run(self, programs: Sequence[list[Instruction]]) -> tuple[list[RingEvent], Any]:
        """The events of a forward run to its end, and the outputs there."""
        rules = forward_rules(
            1, self.modify, self.query, self.rows.__getitem__, self.cols.__getitem__, self.capacity,
            n=self.count, **SIZE,
        )  # fmt: skip
        if self.meet is not None:
            rules = replace(rules, take=partial(take_met, self.meet, rules.take))
        start = ring_start(
            programs.__getitem__, self.key, self.value, self.rows.__getitem__,
            self.cols.__getitem__, lambda i: [], n=self.count, d_v=1, num=EXACT,
        )  # fmt: skip
        events, net = self.end(rules, start, 1)
        return events, ring_net_outputs(net, d_v=1, num=EXACT)

    def right(self) -> list[list[list[Fraction]]]:
        """The attention of the queries of each device."""
        out = attention(
            1, self.modify, self.query, self.key, self.value, q_len=self.length,
            kv_len=self.length, **SIZE,
        )  # fmt: skip
        return [[out[q] for q in rows] for rows in self.rows]


class DrawnBackward(Drawn):
    """With gradients by outputs and log-sum-exps, factors of dropout and slopes. The transformed
    scores of a query are drawn so that their powers of 2 sum to one; the slopes know the scores.
    zeros: a device adds 0 to the gradients by shards that it does not compute with."""

    zeros = True

    def __init__(self, random: Random, count: int, length: int) -> None:
        super().__init__(random, count, length)
        self.grad = self.draw(1)
        self.factors, self.slopes = self.draw(length), self.draw(length)
        self.dlse = [x for [x] in self.draw(1)]
        whole = [random.randint(-1, 3) for _ in range(length)]
        self.lse: list[int | None] = [*whole]
        self.scores = [self.parts(lse, q + 1) for q, lse in enumerate(whole)]

    def draw(self, width: int) -> list[list[Fraction]]:
        """Rows of values, one for each place."""
        return [
            [Fraction(self.random.randint(-3, 3)) for _ in range(width)] for _ in range(self.length)
        ]

    def parts(self, whole: int, most: int) -> list[int]:
        """Whole numbers b with Σ 2^b = 2^whole, at most so many."""
        found = [whole]
        while len(found) < most and self.random.random() < 0.8:
            k = self.random.randrange(len(found))
            found[k : k + 1] = [found[k] - 1, found[k] - 1]
        return found

    def modify(self, q: int, j: int, score: int) -> int | None:
        return self.scores[q][j] if j < len(self.scores[q]) else None

    def slope(self, q: int, j: int, score: int) -> Fraction:
        """A slope for each pair and score."""
        return self.slopes[q][j] + score

    def factor(self, q: int, j: int) -> Fraction:
        """Of dropout."""
        return self.factors[q][j]

    def gradients(self, programs: Sequence[list[Instruction]]) -> tuple[list[RingEvent], Any]:
        """The events of a backward run to its end, and the gradients there."""
        rows, cols = self.rows.__getitem__, self.cols.__getitem__
        out = attention_dropout(
            1, self.modify, self.query, self.key, self.value, self.factor, q_len=self.length,
            kv_len=self.length, **SIZE,
        )  # fmt: skip
        delta = row_delta(out, self.grad, self.dlse, q_len=self.length, d_v=1, num=EXACT)
        rules = backward_rules(
            to_value, 1, self.modify, self.slope, self.query, self.factor, self.lse, self.grad,
            delta, self.rounds, rows, cols, self.capacity, n=self.count, **SIZE,
        )  # fmt: skip
        if self.meet is not None:
            met: Any = partial(take_parcel_met, self.meet, rules.take, d=1, d_v=1, num=EXACT)
            if not self.zeros:
                met = partial(take_met, self.meet, rules.take)
            rules = replace(rules, take=met)
        stale = ParcelSums(KeySums([[Fraction(7)]] * 9, [[Fraction(7)]] * 9))
        start = backward_start(
            programs.__getitem__, self.key, self.value, rows, cols, lambda i: [stale] * 4,
            n=self.count, d=1, num=EXACT,
        )  # fmt: skip
        events, net = self.end(rules, start, 3)
        return events, ring_net_gradients(net)

    def right_gradients(self) -> list[Any]:
        """Those of the whole, as each device has them."""
        g = vjp_dropout(
            1, self.modify, self.slope, self.query, self.key, self.value, self.factor, to_value,
            self.grad, self.dlse, q_len=self.length, kv_len=self.length, **SIZE,
        )  # fmt: skip
        return [
            (
                [g.dQ[q] for q in rows],
                ParcelSums(KeySums([g.dK[j] for j in cols], [g.dV[j] for j in cols])),
            )
            for rows, cols in zip(self.rows, self.cols, strict=True)
        ]


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 6))
def test_every_run_ends_in_attention(seed: int, count: int, length: int) -> None:
    ring = Drawn(Random(seed), count, length)
    events, outputs = ring.run([ring_program(count, i, n=count) for i in range(count)])
    # Here none is left out, so every run has them all.
    assert len(events) == count * (7 * count - 6)
    assert outputs == ring.right()


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 6))
def test_every_backward_run_ends_in_the_gradients(seed: int, count: int, length: int) -> None:
    ring = DrawnBackward(Random(seed), count, length)
    events, found = ring.gradients([backward_program(count, i, n=count) for i in range(count)])
    assert len(events) == (count * (15 * count - 7) if count > 1 else 2)
    assert found == ring.right_gradients()


class Skipped(DrawnBackward):
    """Of contiguous or of drawn shards, under a window that masks before the drawn scores do."""

    def __init__(self, random: Random, count: int, length: int) -> None:
        super().__init__(random, count, length)
        self.left = random.randrange(length)
        self.scores = [
            self.parts(lse, q - max(q - self.left, 0) + 1)
            for q, lse in enumerate(x for x in self.lse if x is not None)
        ]
        if random.random() < 0.7:
            owner = sorted(random.randrange(count) for _ in range(length))
            self.rows = [[j for j in range(length) if owner[j] == i] for i in range(count)]
            self.cols = self.rows
        self.meet = partial(
            shards_meet, 8, Alignment.TOP_LEFT, self.left, 0, None, self.rows.__getitem__,
            self.cols.__getitem__, q_len=length, kv_len=length,
        )  # fmt: skip
        self.rounds = needed_rounds(self.meet, n=count)

    def modify(self, q: int, j: int, score: int) -> int | None:
        seen = self.scores[q]
        first = max(q - self.left, 0)
        return seen[j - first] if first <= j <= q and j - first < len(seen) else None


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 6))
def test_what_is_left_out_changes_nothing(seed: int, count: int, length: int) -> None:
    ring = Skipped(Random(seed), count, length)
    rounds = ring.rounds
    events, outputs = ring.run([ring_program(rounds, i, n=count) for i in range(count)])
    assert len(events) == count * (7 * rounds - 6)
    assert outputs == ring.right()
    events, found = ring.gradients([backward_program(rounds, i, n=count) for i in range(count)])
    assert len(events) == count * (15 * rounds - 7 if rounds > 1 else 2)
    assert found == ring.right_gradients()


def test_one_round_less_is_seen() -> None:
    """And a device that keeps its sums where it is to give zeros."""

    def right(seed: int, fault: str) -> bool:
        ring = Skipped(Random(seed), 3, 6)
        rounds = max(ring.rounds - (fault == "rounds"), 1)
        if fault == "rounds":
            programs = [ring_program(rounds, i, n=3) for i in range(3)]
            return bool(ring.run(programs)[1] == ring.right())
        ring.zeros = fault != "zeros"
        programs_back = [backward_program(rounds, i, n=3) for i in range(3)]
        return bool(ring.gradients(programs_back)[1] == ring.right_gradients())

    for fault in ("rounds", "zeros"):
        assert not all(right(seed, fault) for seed in range(20))


def without(
    kind: type[Instruction], programs: Sequence[list[Instruction]]
) -> list[list[Instruction]]:
    """Programs without the instructions of a kind."""
    return [[x for x in program if not isinstance(x, kind)] for program in programs]


def test_a_run_without_a_wait_is_wrong() -> None:
    """Of 200 drawn runs some are, and some are right."""
    programs = without(InstructionWaitSends, [ring_program(3, i, n=3) for i in range(3)])
    found = set()
    for seed in range(200):
        ring = Drawn(Random(seed), 3, 6)
        found.add(ring.run(programs)[1] == ring.right())
    assert found == {True, False}


@pytest.mark.parametrize("wait", [InstructionWaitSends, InstructionWaitReceives])
def test_a_backward_run_without_a_wait_is_wrong(wait: type[Instruction]) -> None:
    programs = without(wait, [backward_program(3, i, n=3) for i in range(3)])

    def right(seed: int) -> bool:
        ring = DrawnBackward(Random(seed), 3, 6)
        return bool(ring.gradients(programs)[1] == ring.right_gradients())

    assert not all(right(seed) for seed in range(20))
