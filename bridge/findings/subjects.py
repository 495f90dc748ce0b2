"""Which functions are run, how they are called, and of which versions they are."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from typing import Any

import torch

from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.adapters import libraries
from bridge.conformance.adapters.adapter import About
from bridge.errors import MendableError

SDPA = "torch.nn.functional:scaled_dot_product_attention"


@dataclass(frozen=True)
class Called:
    """A function as it is run. name: as `conform` takes it."""

    name: str
    about: About


def _of_adapters() -> Iterator[Called]:
    """Those of the adapters that name their function and run on a CPU; this project's at the
    end."""
    makers = (adapters.BUILTIN | libraries.FOREIGN).values()
    for make in sorted(makers, key=lambda make: make.foreign is None):
        if make.about is not None and not make.about.on_gpu:
            yield Called(make.name, make.about)


CALLED = (
    Called(
        SDPA,
        About(
            "SDPA",
            "`torch.nn.functional.scaled_dot_product_attention`",
            "As anybody's function (docs/conform.md), with the rounding model `generous`; PyTorch "
            "chooses the backend.",
        ),
    ),
    *_of_adapters(),
)


def find_function(name: str) -> Called:
    """The function of that name. Raises MendableError where there is none."""
    known = {one.name: one for one in CALLED}
    if name not in known:
        raise MendableError(f"NAME: no function {name!r} is run; there are {', '.join(known)}")
    return known[name]


def versions(one: Called) -> dict[str, str]:
    """By package, its version."""
    return {package: metadata.version(package) for package in one.about.packages}


def machine() -> dict[str, Any]:
    """Properties on which results may depend beside the versions: PyTorch has other kernels for
    processors with other instructions."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "processor": platform.machine(),
        "instructions": torch.backends.cpu.get_cpu_capability(),
        "threads": min(torch.get_num_threads(), os.cpu_count() or 1),
    }
