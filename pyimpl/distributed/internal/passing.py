"""Tensors that processes of a group pass on to each other, posted beside the computation: sent from
one buffer, received into another, and waited for before either is used again.

An error or silence of another process is told in a sentence, within the group's timeout.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import torch.distributed as dist
from torch import Tensor
from torch._compile import _disable_dynamo
from torch.distributed.device_mesh import DeviceMesh

from pyimpl.internal.arguments import describe

Function = TypeVar("Function", bound=Callable[..., Any])
# As `torch.compiler.disable`, which imports Dynamo at once and takes seconds: this does it at the
# first call.
_disable: Callable[..., Any] = _disable_dynamo
# Messages that go around at the same time have tags of their own.
KEYS, GRADIENTS, HOME, PIECES = 1, 2, 3, 4


def outside_of_graphs(function: Function) -> Function:
    """A function that `torch.compile` calls as it is, between two graphs: messages are no part of
    one."""
    return cast(Function, _disable(function))


class Processes:
    """The processes of a group, numbered in it from 0 to `count` − 1; this one is `rank`. Without a
    group: this one alone."""

    def __init__(self, group: dist.ProcessGroup | None) -> None:
        self.group = group
        self.rank = 0 if group is None else dist.get_rank(group)
        self.count = 1 if group is None else dist.get_world_size(group)

    def gather(self, mine: Any) -> list[Any]:
        """The values that all processes give here, by their numbers."""
        if self.group is None:
            return [mine]
        found: list[Any] = [None] * self.count
        with name_processes(self.rank, [r for r in range(self.count) if r != self.rank]):
            dist.all_gather_object(found, mine, group=self.group)
        return found

    def _operation(self, receive: bool, tensor: Tensor, other: int, tag: int) -> dist.P2POp:
        assert self.group is not None
        peer = dist.get_global_rank(self.group, other % self.count)
        return dist.P2POp(dist.irecv if receive else dist.isend, tensor, peer, self.group, tag)

    def start(
        self, sent: Sequence[tuple[int, Tensor]], received: Sequence[tuple[int, Tensor]], tag: int
    ) -> Posted:
        """Send tensors to processes and receive tensors from processes, by their numbers, which
        count on from 0 after the last; tensors are dense, and those without elements are passed on
        by nobody."""
        operations = [self._operation(False, x, to, tag) for to, x in sent if x.numel()]
        operations += [self._operation(True, x, of, tag) for of, x in received if x.numel()]
        others = sorted({n % self.count for n, x in (*sent, *received) if x.numel()})
        posted = Posted(self, others, [x for _, x in (*sent, *received)])
        if operations:
            with name_processes(self.rank, others):
                posted.works = list(dist.batch_isend_irecv(operations))
        return posted


class Grid:
    """Processes in rows: number r · width + c of `count` stands in row r and column c. Those of a
    row trade heads, those of a column pass keys on."""

    def __init__(self, column: Processes, row: Processes) -> None:
        self.column, self.row = column, row
        self.rank = column.rank * row.count + row.rank
        self.count = column.count * row.count

    def gather(self, mine: Any) -> list[Any]:
        """The values that all processes give here, by their numbers."""
        return [one for row in self.column.gather(self.row.gather(mine)) for one in row]


@contextmanager
def name_processes(rank: int, others: Sequence[int]) -> Iterator[None]:
    """A block whose errors of communication name the processes."""
    try:
        yield
    except RuntimeError as error:
        names = " or ".join(map(str, others))
        raise RuntimeError(
            f"process {rank} of the group waited in vain for process {names}, which ended or did "
            f"not call the same within the group's timeout: {describe(str(error))}"
        ) from error


class Posted:
    """Messages posted together; their tensors are neither read nor written before `wait`."""

    def __init__(self, processes: Processes, others: list[int], tensors: list[Tensor]) -> None:
        self.processes, self.others, self.tensors = processes, others, tensors
        self.works: list[Any] = []

    def wait(self) -> None:
        """Until all is sent and received."""
        with name_processes(self.processes.rank, self.others):
            for work in self.works:
                work.wait()
        self.tensors = []


class Carousel:
    """One-dimensional tensors, one for each process, of these lengths, that go around the ring:
    process r holds number r at first, and after each `pass_on` the one that process r − 1 held."""

    def __init__(self, processes: Processes, lengths: Sequence[int], own: Tensor, tag: int) -> None:
        self.processes, self.lengths, self.tag = processes, lengths, tag
        self.held, self.number = own, processes.rank
        self._spare = own.new_empty(0)
        self._posted: Posted | None = None

    def pass_on(self, held: Tensor | None = None) -> None:
        """Start to send the tensor held here, or this one, to the next process, and to receive the
        one of the process before."""
        if held is not None:
            self.held = held
        rank, count = self.processes.rank, self.processes.count
        self.number = (self.number - 1) % count
        if self._spare.numel() < self.lengths[self.number] or self._spare is self.held:
            self._spare = self.held.new_empty(max(self.lengths))
        self._arriving = self._spare[: self.lengths[self.number]]
        self._posted = self.processes.start(
            [(rank + 1, self.held)], [(rank - 1, self._arriving)], self.tag
        )

    def arrive(self) -> Tensor:
        """The tensor held, once it is there."""
        if self._posted is not None:
            self._posted.wait()
            self._posted = None
            self._spare, self.held = self.held, self._arriving
        return self.held

    def send_home(self, held: Tensor, own: Tensor) -> None:
        """Send this, in the place of the tensor held here, to the process of its number, and
        receive into `own` the one with the number of this process."""
        away = (self.processes.rank - self.number) % self.processes.count
        if away == 0:
            own.copy_(held)
            return
        rank = self.processes.rank
        self.processes.start([(rank - away, held)], [(rank + away, own)], HOME).wait()


def exchange(
    processes: Processes, pieces: Sequence[Tensor], shapes: Sequence[Sequence[int]]
) -> list[Tensor]:
    """Send piece p to process p, each to its own; process p sends here one of `shapes[p]`."""
    received = [pieces[0].new_empty(tuple(shape)) for shape in shapes]
    others = [p for p in range(processes.count) if p != processes.rank]
    sent = {p: pieces[p].contiguous() for p in others}
    posted = processes.start(
        [(p, sent[p]) for p in others], [(p, received[p]) for p in others], PIECES
    )
    received[processes.rank].copy_(pieces[processes.rank])
    posted.wait()
    return received


def processes_of(group: dist.ProcessGroup | DeviceMesh | None) -> Processes:
    """The processes of a group, of a mesh of one dimension, or of the default group for None.

    Raises:
        TypeError: the group is neither, or one that this process is not in.
        ValueError: there is no default group, or the mesh has several dimensions.
    """
    if group is None:
        if not dist.is_initialized():
            raise ValueError(
                "group must be given, or torch.distributed.init_process_group be called before"
            )
        group = dist.group.WORLD
    if isinstance(group, DeviceMesh):
        if group.ndim != 1:
            raise ValueError(
                f"group must be a mesh of one dimension, not of {group.ndim}; "
                "ulysses_attention takes one of two"
            )
        group = group.get_group()
    if not isinstance(group, dist.ProcessGroup):
        raise TypeError(
            "group must be a ProcessGroup that this process is a member of, a DeviceMesh or None, "
            f"not {describe(group)}"
        )
    return Processes(group)


def grid_of(group: dist.ProcessGroup | DeviceMesh | None) -> Grid:
    """A mesh of two dimensions, rows and columns, or an argument of `processes_of`, as one row.
    Raises as that does."""
    if isinstance(group, DeviceMesh) and group.ndim == 2:
        return Grid(Processes(group.get_group(0)), Processes(group.get_group(1)))
    if isinstance(group, DeviceMesh) and group.ndim > 2:
        raise ValueError(f"group must be a mesh of at most two dimensions, not of {group.ndim}")
    return Grid(Processes(None), processes_of(group))
