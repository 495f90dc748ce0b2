"""Using up all there is, or not coming back."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
import time

from honest import zeros
from torch import Tensor


def sleeps(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    time.sleep(1000)
    return zeros(query, key, value)


def spins(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    while True:
        pass


def leaves_a_child_that_spins(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    if os.fork() == 0:
        os.setsid()
        while True:
            pass
    time.sleep(1000)
    return zeros(query, key, value)


def takes_memory(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """In one process: its own limit, before a byte of it is used."""
    held = bytearray(1 << 40)
    return zeros(query, key, value) + len(held)


def forks(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """A hundred processes more than it may have; they only sleep."""
    for _ in range(700):
        if os.fork() == 0:
            time.sleep(1000)
    time.sleep(1000)
    return zeros(query, key, value)


def fills_the_disk(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    """Its own disk, which is memory: sparse, so that nothing is used where there is no bound."""
    with open("/tmp/large", "wb") as file:
        os.posix_fallocate(file.fileno(), 0, 3 << 30)
    return zeros(query, key, value)


def ends(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    os._exit(0)


def is_killed(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    os.kill(os.getpid(), signal.SIGKILL)
    return zeros(query, key, value)


def closes_everything(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    os.closerange(0, 100)
    time.sleep(1000)
    return zeros(query, key, value)


def floods(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
    for _ in range(200):
        sys.stdout.write("x" * 10_000 + "\n")
    return zeros(query, key, value)


def answers_in_crumbs(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """Each piece of an answer is work for who reads it: the more, the longer its header is."""
    content = {"kind": "returned", "fields": {"x": [[]] * 500_000}, "tensors": []}
    content["tensors"] = [["result", "float32", [1 << 24]]]
    header = json.dumps(content).encode()
    left = memoryview(struct.pack(">I", len(header)) + header)
    while left:
        left = left[os.write(4, left) :]
    while True:
        os.write(4, b"\0")


def kills_its_group(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    """The group of processes that it was forked into: its keeper is one of them."""
    os.kill(0, signal.SIGKILL)
    return zeros(query, key, value)


def stops_its_group(
    query: Tensor, key: Tensor, value: Tensor, scale: float | None = None
) -> Tensor:
    os.kill(0, signal.SIGSTOP)
    return zeros(query, key, value)
