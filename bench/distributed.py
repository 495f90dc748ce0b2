"""Time attention of a sequence in shards on this machine: processes that talk by gloo.

    .venv/bin/python -m bench.distributed
    .venv/bin/python -m bench.distributed --processes 1 2 --length 4096 --repeats 5

For each number of processes, `ring_attention` and `ulysses_attention` one after the other in the
same processes: seconds of a call, bytes that a process sends, seconds that it waits for messages,
and those that the messages take with nothing to compute beside them. Of these the share that is not
waited for is hidden. The processes share the cores: the figures are about messages and the
computations beside them, not about a speed-up, and nothing about GPUs follows from them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NoReturn
from unittest import mock

import torch
import torch.distributed as dist

from pyimpl.distributed import Shards, ring_attention, ulysses_attention
from pyimpl.distributed.internal import ring
from pyimpl.distributed.internal.passing import Posted, Processes

FUNCTIONS: dict[str, Callable[..., Any]] = {"ring": ring_attention, "ulysses": ulysses_attention}


@dataclass(frozen=True)
class Case:
    """A call: the sizes of the whole, and how often it is timed."""

    length: int = 2048
    heads: int = 4
    head_dim: int = 64
    repeats: int = 5
    causal: bool = True


@dataclass(frozen=True)
class Measured:
    """The times of one process and call, forward: seconds, bytes sent, seconds waited for messages,
    and those that the messages take alone; each time the median of the repeats."""

    function: str
    seconds: float
    sent: int
    waited: float
    messages: float

    @property
    def hidden(self) -> float | None:
        """The share of the messages' time that is not waited for; None without messages."""
        if not self.sent:
            return None
        return min(1.0, max(0.0, 1.0 - self.waited / self.messages))


@contextmanager
def _count_messages() -> Iterator[dict[str, float]]:
    """Bytes sent and seconds waited within the block."""
    found = {"sent": 0.0, "waited": 0.0}
    start, wait = Processes.start, Posted.wait

    def count(self: Processes, sent: Any, received: Any, tag: int) -> Posted:
        found["sent"] += sum(x.numel() * x.element_size() for _, x in sent)
        return start(self, sent, received, tag)

    def wait_timed(self: Posted) -> None:
        began = time.perf_counter()
        wait(self)
        found["waited"] += time.perf_counter() - began

    with (
        mock.patch.object(Processes, "start", count),
        mock.patch.object(Posted, "wait", wait_timed),
    ):
        yield found


def measure(rank: int, group: dist.ProcessGroup, case: Case) -> list[Measured]:
    """The times that a process of the group measures."""
    count = dist.get_world_size(group)
    shards = Shards.zigzag(case.length, count)
    size = (1, case.heads, shards.lengths[rank], case.head_dim)
    tensors = [torch.randn(size) for _ in range(3)]
    found = []
    for name, function in FUNCTIONS.items():
        call = partial(
            function, *tensors, shards=shards, group=group, is_causal=case.causal, check=False
        )
        seconds, sent, waited = _times(call, group, case.repeats)
        with mock.patch.object(ring, "blocks", return_value=()):
            messages, _, _ = _times(call, group, case.repeats)
        found.append(Measured(name, seconds, sent, waited, messages))
    return found


def _times(
    call: Callable[[], Any], group: dist.ProcessGroup, repeats: int
) -> tuple[float, int, float]:
    """Seconds of a call, bytes that it sends, seconds that it waits."""
    call()
    seconds, waited, sent = [], [], 0
    for _ in range(repeats):
        dist.barrier(group)
        began = time.perf_counter()
        with _count_messages() as counts:
            call()
        seconds.append(time.perf_counter() - began)
        waited.append(counts["waited"])
        sent = int(counts["sent"])
    return median(seconds), sent, median(waited)


def _process(rank: int, count: int, store: str, case: Case) -> None:
    """The work of each process; the first prints."""
    torch.set_num_threads(1)
    # Otherwise gloo asks for the address of the machine's name, which need not have one.
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    # PyTorch documents the class and does not export its type: hence `attr-defined`.
    kept = dist.FileStore(store, count)  # type: ignore[attr-defined]
    dist.init_process_group("gloo", store=kept, rank=rank, world_size=count)
    assert dist.group.WORLD is not None
    found = measure(rank, dist.group.WORLD, case)
    everyone: list[Any] = [None] * count
    dist.all_gather_object(everyone, found)
    if rank == 0:
        print("\n".join(lines(everyone)), flush=True)
    # Whose messages have all come may leave while another still asks for its own.
    kept.set(f"ended {rank}", "")
    kept.wait([f"ended {other}" for other in range(count)])
    dist.destroy_process_group()


def lines(everyone: list[list[Measured]]) -> list[str]:
    """A line for each function: of the process that takes longest."""
    shown = []
    for of_function in zip(*everyone, strict=True):
        slowest = max(of_function, key=lambda m: m.seconds)
        hidden = "-" if slowest.hidden is None else f"{slowest.hidden:.0%}"
        shown.append(
            f"{len(everyone):9}  {slowest.function:8} {slowest.seconds * 1e3:9.1f} "
            f"{slowest.sent / 1e6:9.2f} {slowest.waited * 1e3:9.1f} "
            f"{slowest.messages * 1e3:9.1f}  {hidden:>6}"
        )
    return shown


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def _positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def main(arguments: list[str] | None = None) -> int:
    """The command line described at the top of this module; returns the exit status."""
    p = _Parser(prog="python -m bench.distributed", description="Time attention in shards.")
    p.add_argument("--processes", nargs="+", type=_positive, default=[1, 2, 4], metavar="N")
    for name in ("length", "heads", "head_dim", "repeats"):
        option, default = f"--{name.replace('_', '-')}", getattr(Case, name)
        p.add_argument(option, type=_positive, default=default, metavar="N")
    options = vars(p.parse_args(arguments))
    counts = options.pop("processes")
    case = Case(**options)
    for count in counts:
        if case.heads % count:
            p.error(f"argument --heads: {count} processes do not divide the heads, {case.heads}")
    print(f"length {case.length}, {case.heads} heads of {case.head_dim}, float32, causal, zigzag")
    print("processes  function        ms   MB sent  ms waited  ms alone  hidden", flush=True)
    for count in counts:
        with tempfile.TemporaryDirectory() as folder:
            store = str(Path(folder) / "store")
            context = multiprocessing.get_context("spawn")
            started = [
                context.Process(target=_process, args=(rank, count, store, case))
                for rank in range(count)
            ]
            for process in started:
                process.start()
            for process in started:
                process.join()
            if any(process.exitcode for process in started):
                return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
