"""Kernels that behave as a test orders, and small cases."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from bench_fakes import exact, exact_gradients
from torch import Tensor

from bench.cases import Case, Inputs, Mask
from bench.hour.candidates import SMALL, Candidate
from bench.hour.lane import Job
from bench.hour.prepared import Kernel, Options, Prepared

CASE = Case("forward", "float32", 1, 2, 2, 32, 32, 16, Mask("causal", None, 0))
BACKWARD = Case("backward", "float32", 1, 2, 2, 32, 32, 16, Mask("causal", None, 0))
Change = Callable[[Tensor, Options], None]


def leave_unchanged(out: Tensor, chosen: Options) -> None:
    """The right answer stays."""


def kernel(change: Change = leave_unchanged, *, computed: tuple[int, ...] = (0, 1, 2)) -> Kernel:
    """One that is right, but for the change made to each of its outputs. computed: of gradients."""

    def prepare(inputs: Inputs, chosen: Options, capability: int) -> Prepared:
        assert capability == 90
        outputs: tuple[Tensor | None, ...] = (torch.empty_like(inputs.query),)
        if inputs.case.gradients:
            like = (inputs.query, inputs.key, inputs.value)
            outputs = tuple(
                torch.empty_like(x) if n in computed else None for n, x in enumerate(like)
            )

        def run() -> None:
            found = exact_gradients(inputs) if inputs.case.gradients else (exact(inputs),)
            for target, right in zip(outputs, found, strict=True):
                if target is not None:
                    target.copy_(right)
                    change(target, chosen)

        return Prepared((), run, outputs)

    return Kernel("forward", lambda case, capability: {"block_m": 64}, prepare)


def candidate(name: str = "fake", case: Case = CASE, **options: int) -> Candidate:
    """A candidate of a fake kernel."""
    return Candidate(name, case, tuple(sorted((options or {"block_m": 64}).items())))


def fields_of(one: Candidate, **fields: object) -> dict[str, Any]:
    """The arguments of a job that is about a candidate."""
    return {
        "candidate": one.plain, "sizes": asdict(SMALL), "capability": 90, "timed": True,
        "capture": True, "runs": 3, **fields,
    }  # fmt: skip


def job_of(kind: str, name: str, one: Candidate, **fields: object) -> Job:
    """A job about a candidate."""
    return Job(kind, name, fields_of(one, **fields))


def write_kernel(cache: Path, name: str, size: int, age: float = 0.0) -> None:
    """A compiled kernel in a cache as Triton writes one, so many seconds ago."""
    folder = cache / name
    folder.mkdir(parents=True)
    content = {"k.cubin": os.urandom(size), "k.ptx": b"ptx", "k.source": b"text", "k.json": b"{}"}
    for file, data in content.items():
        (folder / file).write_bytes(data)
    paths = {file: str(folder / file) for file in content}
    (folder / "__grp__k.json").write_text(json.dumps({"child_paths": paths}))
    at = folder.stat().st_mtime - age
    os.utime(folder, (at, at))
