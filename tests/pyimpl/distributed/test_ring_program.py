"""The sends, receives, waits and computations of a process of the ring are the program of the Spec,
`ring_program`, of which `ring-net` says that every run of it is right."""

from __future__ import annotations

from collections.abc import Sequence as Numbers

import pytest
import torch
from torch import Tensor

from bridge.spec.ring_net import (
    Instruction,
    InstructionConsume,
    InstructionReceive,
    InstructionSend,
    InstructionWaitReceives,
    InstructionWaitSends,
    ring_program,
)
from pyimpl.distributed import Shards
from pyimpl.distributed.blocks import Sequence, needed_rounds
from pyimpl.distributed.passing import Carousel, Posted, Processes
from pyimpl.distributed.ring import Ring


class Recorded(Processes):
    """A process of so many that writes down its instructions and passes nothing on. A buffer is
    known by its storage: the first is number 0, one that is new at a receive is the other one than
    the buffer sent last."""

    def __init__(self, rank: int, count: int) -> None:
        super().__init__(None)
        self.rank, self.count = rank, count
        self.log: list[Instruction] = []
        self.numbers: dict[int, int] = {}
        self.kept: list[Tensor] = []  # no storage is freed and given out again

    def buffer(self, tensor: Tensor, number: int) -> int:
        """The number of a tensor's buffer; this one, if it is new."""
        self.kept.append(tensor)
        return self.numbers.setdefault(tensor.untyped_storage().data_ptr(), number)

    def start(
        self, sent: Numbers[tuple[int, Tensor]], received: Numbers[tuple[int, Tensor]], tag: int
    ) -> Posted:
        """One message to the next process and one from the process before."""
        [(to, message)], [(of, arriving)] = sent, received
        assert (to, of) == (self.rank + 1, self.rank - 1)
        number = self.buffer(message, 0)
        self.log.append(InstructionSend(number))
        self.log.append(InstructionReceive(self.buffer(arriving, 1 - number)))
        return Waited(self)


class Waited(Posted):
    """Writes down that it is waited for."""

    def __init__(self, process: Recorded) -> None:
        super().__init__(process, [], [])
        self.log = process.log

    def wait(self) -> None:
        self.log += [InstructionWaitSends(), InstructionWaitReceives()]


def instructions_of(rank: int, sequence: Sequence) -> list[Instruction]:
    """The instructions of a process of `Ring.rounds`."""
    process = Recorded(rank, sequence.keys.processes)
    length = sequence.keys.lengths[rank]
    key, value = torch.randn(1, 2, length, 4), torch.randn(1, 2, length, 3)
    for source, held, _ in Ring(process, sequence, "reference").rounds(key, value):
        process.log.append(InstructionConsume(process.buffer(held, 0), source))
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
        program = ring_program(needed_rounds(sequence), rank, n=shards.processes)
        assert instructions_of(rank, sequence) == program


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
