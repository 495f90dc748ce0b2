"""Conformance runs and mutants as jobs, of which processes of their own do one at a time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.judging.run import run
from bridge.conformance.mutants import attention as mutants
from bridge.conformance.mutants import planting
from bridge.vectors.model.attention import Family


@dataclass(frozen=True)
class Job:
    """kind "implementation": a built-in adapter on the vectors, the rest of `what` its dtype;
    "mutant": a mutant in every dtype, the rest "every-family" if each family is to be tried
    in float32. The result is `Result.to_json` or `MutantResult.to_json`."""

    kind: Literal["implementation", "mutant"]
    what: tuple[str, ...]
    device: str

    def __str__(self) -> str:
        return " ".join(self.what)


@dataclass(frozen=True)
class Done:
    """The result of a job, and the processor time that it took."""

    job: Job
    result: dict[str, Any]
    processor_seconds: float


def work(job: Job, families: Sequence[Family]) -> Done:
    """Do one job in this process."""
    start = time.process_time()
    result = _result(job, families)
    return Done(job, result, time.process_time() - start)


def _result(job: Job, families: Sequence[Family]) -> dict[str, Any]:
    name, *rest = job.what
    if job.kind == "implementation":
        (dtype,) = rest
        return run(adapters.builtin(name), families, dtype, job.device).to_json()
    (mutant,) = (mutant for mutant in mutants.MUTANTS if mutant.name == name)
    every = planting.SHARES_IN if rest == ["every-family"] else None
    return planting.plant(mutant, families, device=job.device, every_family_in=every).to_json()
