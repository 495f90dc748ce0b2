"""`ring-net` on runs of the translated Spec: a drawn one of the events that can happen does."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bridge.spec.attention import attention
from bridge.spec.core import EXACT
from bridge.spec.ring_net import (
    Instruction,
    InstructionWaitSends,
    RingEvent,
    RingEventArrive,
    RingEventExecute,
    RingEventLeave,
    ring_net_after,
    ring_net_outputs,
    ring_net_run,
    ring_program,
    ring_start,
    take_shard,
)

SIZE: dict[str, Any] = {"d": 1, "d_v": 1, "num": EXACT}


class Drawn:
    """A ring of devices over drawn numbers: `cols[i]` are the keys of device i, `rows[i]` its
    queries."""

    def __init__(self, random: Random, count: int, length: int) -> None:
        self.random, self.count = random, count
        owner = [random.randrange(count) for _ in range(length)]
        self.cols = [[j for j in range(length) if owner[j] == i] for i in range(count)]
        self.rows = [list(range(i, length, count)) for i in range(count)]
        self.query = [[random.randint(-3, 3)] for _ in range(length)]
        self.key = [[random.randint(-3, 3)] for _ in range(length)]
        self.value = [[Fraction(random.randint(-9, 9))] for _ in range(length)]
        self.capacity = random.randrange(3)

    def modify(self, q: int, j: int, score: int) -> int | None:
        """Causal."""
        return score if j <= q else None

    def take(self, i: int, source: int, states: Any, held: Any) -> Any:
        return take_shard(
            1, self.modify, self.query, self.rows.__getitem__, self.cols.__getitem__, i, source,
            states, held, **SIZE,
        )  # fmt: skip

    def run(self, programs: Sequence[list[Instruction]]) -> tuple[list[RingEvent], Any]:
        """The events of a run to its end, and the outputs there."""
        start = net = ring_start(
            programs.__getitem__, self.key, self.value, self.rows.__getitem__,
            self.cols.__getitem__, lambda i: [], n=self.count, d_v=1, num=EXACT,
        )  # fmt: skip
        all_events: list[RingEvent] = []
        for i in range(self.count):
            all_events += [RingEventExecute(i), RingEventLeave(i), RingEventArrive(i)]
        # How willing each kind of event is to happen, on each device.
        weights = [self.random.choice((1, 9, 99)) for _ in all_events]
        events: list[RingEvent] = []
        while True:
            can: list[tuple[RingEvent, Any, int]] = []
            for event, weight in zip(all_events, weights, strict=True):
                after = ring_net_after(self.take, self.capacity, net, event, n=self.count)
                if after is not None:
                    can.append((event, after, weight))
            if not can:
                again = ring_net_run(self.take, self.capacity, events, start, n=self.count)
                assert again == net
                return events, ring_net_outputs(net, d_v=1, num=EXACT)
            event, net, _ = self.random.choices(can, [weight for *_, weight in can])[0]
            events.append(event)

    def right(self) -> list[list[list[Fraction]]]:
        """The attention of the queries of each device."""
        length = len(self.key)
        out = attention(
            1, self.modify, self.query, self.key, self.value, q_len=length, kv_len=length, **SIZE
        )
        return [[out[q] for q in rows] for rows in self.rows]


@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(1, 6))
def test_every_run_ends_in_attention(seed: int, count: int, length: int) -> None:
    ring = Drawn(Random(seed), count, length)
    events, outputs = ring.run([ring_program(count, i, n=count) for i in range(count)])
    # Here none is left out, so every run has them all.
    assert len(events) == count * (7 * count - 6)
    assert outputs == ring.right()


def test_a_run_without_a_wait_is_wrong() -> None:
    """Of 200 drawn runs some are, and some are right."""
    found = set()
    for seed in range(200):
        ring = Drawn(Random(seed), 3, 6)
        programs: list[list[Instruction]] = [
            [x for x in ring_program(3, i, n=3) if not isinstance(x, InstructionWaitSends)]
            for i in range(3)
        ]
        found.add(ring.run(programs)[1] == ring.right())
    assert found == {True, False}
