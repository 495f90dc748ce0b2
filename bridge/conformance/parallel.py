"""Conformance runs and planted faults, spread over the processors."""

from __future__ import annotations

import concurrent.futures
import functools
import multiprocessing
import os
import pickle
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch

from bridge.conformance import adapters, faults, planting
from bridge.conformance.run import run
from bridge.vectors.model import Family

# Each process holds PyTorch and the vectors, about half a GB.
_MOST_WORKERS = 8
# The dtype in which each fault of a forward pass goes through every family: all implementations
# take it.
SHARES_IN = "float32"

# Called with a sentence as each job is done, in the order of the jobs.
Progress = Callable[[str], None]


def run_each(
    jobs: Sequence[tuple[str, ...]], progress: Progress, families: Sequence[Family]
) -> list[dict[str, Any]]:
    """Built-in adapters on these families. A job: adapter, dtype, device. `Result.to_json` of
    each."""
    return _each(_run, jobs, progress, families)


def plant_each(
    jobs: Sequence[tuple[str, ...]], progress: Progress, families: Sequence[Family]
) -> list[dict[str, Any]]:
    """Planted faults in every dtype, on these families. A job: fault, device.
    `FaultResult.to_json` of each."""
    return _each(_plant, jobs, progress, families)


def _each(
    work: Callable[..., dict[str, Any]],
    jobs: Sequence[tuple[str, ...]],
    progress: Progress,
    families: Sequence[Family],
) -> list[dict[str, Any]]:
    if not jobs:
        return []
    # A GPU serves one process at a time.
    most = _MOST_WORKERS if all(device == "cpu" for *_, device in jobs) else 1
    workers = min(most, os.cpu_count() or 1, len(jobs))
    # Started afresh, not forked: a copy of a process with threads of PyTorch's can hang.
    context = multiprocessing.get_context("spawn")
    results = []
    # To take the families over is ten times as fast as to load and check them anew.
    threads = max(1, (os.cpu_count() or 1) // workers)
    given = (pickle.dumps(tuple(families)), threads)
    with concurrent.futures.ProcessPoolExecutor(workers, context, _receive, given) as pool:
        for job, (seconds, result) in zip(
            jobs, pool.map(functools.partial(_timed, work), jobs), strict=True
        ):
            progress(f"{' '.join(job)}: {seconds:.1f} s")
            results.append(result)
    return results


def _timed(
    work: Callable[..., dict[str, Any]], job: tuple[str, ...]
) -> tuple[float, dict[str, Any]]:
    start = time.monotonic()
    result = work(*job)
    return time.monotonic() - start, result


# Of a worker process: what it was given when it started.
_families: tuple[Family, ...] = ()


def _receive(families: bytes, threads: int) -> None:
    global _families
    # As many in all processes as there are processors: more wait for each other.
    torch.set_num_threads(threads)
    _families = pickle.loads(families)


def _run(name: str, dtype: str, device: str) -> dict[str, Any]:
    return run(adapters.builtin(name), _families, dtype, device).to_json()


def _plant(name: str, device: str) -> dict[str, Any]:
    (fault,) = (fault for fault in faults.FAULTS if fault.name == name)
    # Two calls for each vector of gradients would take long in Triton's interpreter.
    every = None if fault.backward else SHARES_IN
    return planting.plant(fault, _families, device=device, every_family_in=every).to_json()
