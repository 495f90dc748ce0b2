"""The sends, receives, waits and computations of a process of the ring are the programs of the
Spec, `ring_program` and `backward_program`, of which `ring-net` and `ring-net-backward` say that
every run of them is right."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Numbers

import pytest
import torch
from torch import Tensor

from bridge.spec.ring_net import (
    Instruction,
    InstructionConsume,
    InstructionReceive,
    InstructionSend,
    InstructionStore,
    InstructionWaitReceives,
    InstructionWaitSends,
    ring_program,
)
from bridge.spec.ring_net_backward import backward_program, home_slot
from pyimpl.distributed import Shards
from pyimpl.distributed.internal import ring as program
from pyimpl.distributed.internal.blocks import Sequence, needed_rounds
from pyimpl.distributed.internal.passing import GRADIENTS, HOME, KEYS, Carousel, Posted, Processes
from pyimpl.distributed.internal.ring import Ring, ring_backward
from pyimpl.internal.gradients import Wanted
from pyimpl.internal.scores import ScoreOptions

CHANNELS = {KEYS: 0, GRADIENTS: 1, HOME: 2}


class Recorded(Processes):
    """A process of so many that writes down its instructions and passes nothing on. A buffer is
    known by its storage: of keys the first is number 0, of sums 2; one that is new is the other of
    0 and 1, or of 2 and 3, than the one sent last."""

    def __init__(self, rank: int, count: int) -> None:
        super().__init__(None)
        self.rank, self.count = rank, count
        self.log: list[Instruction] = []
        self.numbers: dict[int, int] = {}
        self.kept: list[Tensor] = []  # no storage is freed and given out again
        self.sums = 3

    def buffer(self, tensor: Tensor, number: int) -> int:
        """The number of a tensor's buffer; this one, if it is new."""
        self.kept.append(tensor)
        return self.numbers.setdefault(tensor.untyped_storage().data_ptr(), number)

    def store(self, sums: Tensor) -> None:
        """The sums of a round, which are in a buffer of their own, become those that are sent."""
        self.sums = self.buffer(sums, 5 - self.sums)
        self.log.append(InstructionStore(self.sums))

    def start(
        self, sent: Numbers[tuple[int, Tensor]], received: Numbers[tuple[int, Tensor]], tag: int
    ) -> Posted:
        """One message to another process and one from another."""
        [(to, message)], [(of, arriving)] = sent, received
        channel = CHANNELS[tag]
        number = self.buffer(message, 0)
        if tag == HOME:
            others = (self.rank - self.distance, self.rank + self.distance)
            new = home_slot()
        else:
            others = (self.rank + 1, self.rank - 1)
            new = 1 - number if tag == KEYS else 5 - number
        assert (to, of) == others
        self.log.append(InstructionSend(channel, number))
        self.log.append(InstructionReceive(channel, self.buffer(arriving, new)))
        return Waited(self, channel)

    # From how many processes further on gradients come home.
    distance = 0


class Waited(Posted):
    """Writes down that it is waited for."""

    def __init__(self, process: Recorded, channel: int) -> None:
        super().__init__(process, [], [])
        self.log, self.channel = process.log, channel

    def wait(self) -> None:
        self.log += [InstructionWaitSends(self.channel), InstructionWaitReceives(self.channel)]


class Followed(Carousel):
    """Writes down which sums a recorded process passes on, and which it adds when they arrive."""

    processes: Recorded

    def pass_on(self, held: Tensor | None = None) -> None:
        if held is not None:
            self.processes.store(held)
        super().pass_on(held)

    def arrive(self) -> Tensor:
        found = super().arrive()
        if self.tag == GRADIENTS:
            number = self.processes.buffer(found, -1)
            self.processes.log.append(InstructionConsume(number, self.number))
        return found

    def send_home(self, held: Tensor, own: Tensor) -> None:
        if self.number == self.processes.rank:
            self.processes.log.append(InstructionStore(home_slot()))
        else:
            self.processes.store(held)
        super().send_home(held, own)


class FollowedRing(Ring):
    """Writes down which keys a recorded process computes with."""

    def rounds(self, key: Tensor, value: Tensor) -> Iterator[tuple[int, Tensor, Tensor]]:
        process = self.processes
        assert isinstance(process, Recorded)
        for source, k, v in super().rounds(key, value):
            process.log.append(InstructionConsume(process.buffer(k, 0), source))
            yield source, k, v


def instructions_of(rank: int, sequence: Sequence) -> list[Instruction]:
    """The instructions of a process of `Ring.rounds`."""
    process = Recorded(rank, sequence.keys.processes)
    length = sequence.keys.lengths[rank]
    key, value = torch.randn(1, 2, length, 4), torch.randn(1, 2, length, 3)
    for _ in FollowedRing(process, sequence, "reference").rounds(key, value):
        pass
    return process.log


def backward_instructions_of(rank: int, sequence: Sequence) -> list[Instruction]:
    """The instructions of a process of `ring_backward`."""
    process = Recorded(rank, sequence.keys.processes)
    process.distance = needed_rounds(sequence) - 1
    length = sequence.keys.lengths[rank]
    query, key, value = (torch.randn(1, 2, length, width) for width in (4, 4, 3))
    ring = FollowedRing(process, sequence, "reference")
    ring_backward(
        query, key, value, torch.zeros_like(value), torch.zeros(1, 2, length),
        torch.ones_like(value), None, ScoreOptions(scale=0.5), Wanted(), ring,
    )  # fmt: skip
    return process.log


SHARDS = [
    Shards.of_lengths(lengths) for lengths in ((5,), (2, 2), (1, 4, 2), (3, 1, 1, 6), (2,) * 5)
]


def sequence_of(shards: Shards, left: int | None) -> Sequence:
    return Sequence(shards, shards, documents=None, left=left, right=0, shift=0)


@pytest.mark.parametrize("left", [None, 0, 2])
@pytest.mark.parametrize("shards", SHARDS)
def test_a_process_runs_the_program_of_the_spec(shards: Shards, left: int | None) -> None:
    sequence = sequence_of(shards, left)
    for rank in range(shards.processes):
        wanted = ring_program(needed_rounds(sequence), rank, n=shards.processes)
        assert instructions_of(rank, sequence) == wanted


@pytest.mark.parametrize("left", [None, 0, 2])
@pytest.mark.parametrize("shards", SHARDS)
def test_backward_it_runs_the_program_of_the_spec(
    shards: Shards, left: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "Carousel", Followed)
    sequence = sequence_of(shards, left)
    for rank in range(shards.processes):
        wanted = backward_program(needed_rounds(sequence), rank, n=shards.processes)
        assert backward_instructions_of(rank, sequence) == wanted


@pytest.mark.parametrize("fault", ["a wait is forgotten", "what is sent is received into"])
def test_a_fault_of_the_backward_program_is_seen(
    fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Faulty(Followed):
        def arrive(self) -> Tensor:
            if fault == "a wait is forgotten" and self.tag == GRADIENTS:
                self._posted = None
                self._spare, self.held = self.held, self._arriving
            return super().arrive()

        def pass_on(self, held: Tensor | None = None) -> None:
            if held is not None and fault == "what is sent is received into":
                self._spare = held.view(-1)
            super().pass_on(held)

    monkeypatch.setattr(program, "Carousel", Faulty)
    sequence = sequence_of(SHARDS[3], None)
    assert backward_instructions_of(0, sequence) != backward_program(4, 0, n=4)


def test_a_wait_that_is_forgotten_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def arrive(self: Carousel) -> Tensor:
        self._spare, self.held = self.held, self._arriving
        return self.held

    monkeypatch.setattr(Carousel, "arrive", arrive)
    sequence = sequence_of(SHARDS[2], None)
    assert instructions_of(0, sequence) != ring_program(needed_rounds(sequence), 0, n=3)


def test_one_buffer_for_both_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    pass_on = Carousel.pass_on

    def into_the_held(self: Carousel, held: Tensor | None = None) -> None:
        self._spare = self.held
        self.held = self.held.view(-1)
        pass_on(self, held)

    monkeypatch.setattr(Carousel, "pass_on", into_the_held)
    sequence = sequence_of(SHARDS[1], None)
    assert instructions_of(0, sequence) != ring_program(needed_rounds(sequence), 0, n=2)
