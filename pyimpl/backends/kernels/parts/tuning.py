"""Launch options by measurement: a small space around those of `launch_options`, and a cache.

Only where ATTENTION_TUNE=1 is set, on a CUDA device, for the forward kernel, those of the backward
pass for keys and queries, and whether dQ is summed by atomic additions instead. The first launch of
a kind times each candidate: compiles it and runs it for about 25 ms. The fastest is kept in
`attention-spec/tuning.json` in the cache folder (XDG_CACHE_HOME, ~/.cache if that is not set). To
measure anew, delete that file.

A kind is: the kernel, the device's name, the version of Triton, the dtype, which arguments there
are, the compile-time constants other than the tiles', and each length rounded up to a power of two.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
import triton
from torch import Tensor
from triton.runtime.errors import OutOfResources, PTXASError

from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.backends.kernels.parts.numerics import INTERPRETED

# The candidates beside the default: its blocks and warps times these factors and so many pipeline
# stages more, where they give a tile that can be.
CHANGES: tuple[dict[str, float], ...] = (
    {"block_m": 2.0},
    {"block_n": 0.5},
    {"block_n": 2.0},
    {"num_warps": 0.5},
    {"num_warps": 2.0},
    {"num_stages": 1},
    {"block_n": 0.5, "num_stages": 1},
    {"block_m": 0.5, "num_warps": 0.5},
    {"block_m": 0.5, "block_n": 0.5, "num_warps": 0.5, "num_stages": 1},
)
_LENGTHS = ("q_len", "kv_len")


def is_wanted(device: torch.device) -> bool:
    """Whether to measure: asked for, on a GPU, not interpreted."""
    asked = os.environ.get("ATTENTION_TUNE") == "1"
    return asked and device.type == "cuda" and not INTERPRETED.value


def candidates(default: dict[str, int]) -> list[dict[str, int]]:
    """The launch options to measure, the default first: blocks of at least 16, 2 to 16 warps."""
    found = [default]
    for change in CHANGES:
        new = {n: int(x * change.get(n, 1.0)) for n, x in default.items() if n != "num_stages"}
        new["num_stages"] = default["num_stages"] + int(change.get("num_stages", 0))
        fits = min(new["block_m"], new["block_n"]) >= 16 and 2 <= new["num_warps"] <= 16
        if fits and new not in found:
            found.append(new)
    return found


def cache_file() -> Path:
    """Where results are kept."""
    folder = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(folder, "attention-spec", "tuning.json")


def kind(launch: Launch, device_name: str) -> str:
    """The key by which a result is kept."""
    given = {n: x for n, x in launch.arguments.items() if x is not None}
    parts = [launch.kernel.__name__, device_name, triton.__version__]
    parts += sorted({str(x.dtype) for x in given.values() if isinstance(x, Tensor)})
    parts += sorted(n for n in given if not n.startswith("stride_"))
    parts += [f"{n}={x}" for n, x in launch.constants.items() if n not in ("BLOCK_M", "BLOCK_N")]
    for name in _LENGTHS:
        length = given[name]
        assert isinstance(length, int)
        parts.append(f"{name}<={1 << max(0, length - 1).bit_length()}")
    return " ".join(parts)


def fastest(
    make: Callable[[dict[str, int]], Launch],
    default: dict[str, int],
    device: torch.device,
    *,
    seconds: Callable[[Launch], float] | None = None,
    device_name: str | None = None,
) -> Launch:
    """`make` of the fastest options: from the cache, or measured and put there.

    seconds: how long a launch takes, by default on the device; ∞ for one that does not fit.
    """
    launch = make(default)
    if launch.programs == 0:
        return launch
    key = kind(launch, device_name or torch.cuda.get_device_name(device))
    known = _read().get(key)
    options = candidates(default)
    if known not in options:
        measure = seconds or (lambda one: _seconds(lambda: one.run(device), device))
        known = min(options, key=lambda one: measure(make(one)))
        _write(key, known)
    return make(known)


def fastest_way(
    ways: dict[str, Callable[[], None]],
    launch: Launch,
    device: torch.device,
    *,
    seconds: Callable[[Callable[[], None]], float] | None = None,
    device_name: str | None = None,
) -> str:
    """The name of the fastest of several ways to do the same, the first if there is nothing to do:
    from the cache, by the kind of `launch`, which all have, or measured and put there.

    seconds: how long a way takes, by default on the device.
    """
    first = next(iter(ways))
    if launch.programs == 0:
        return first
    key = f"{kind(launch, device_name or torch.cuda.get_device_name(device))} ways"
    known = _read().get(key)
    if known not in ways:
        measure = seconds or (lambda way: _seconds(way, device))
        known = min(ways, key=lambda name: measure(ways[name]))
        _write(key, known)
    return str(known)


def _seconds(run: Callable[[], None], device: torch.device) -> float:
    try:
        # The clock is that of the current device.
        with torch.cuda.device(device):
            return float(triton.testing.do_bench(run, warmup=5, rep=20))
    except (OutOfResources, PTXASError):
        return float("inf")


def _read() -> dict[str, Any]:
    """The results kept; a file that cannot be read counts as empty."""
    path = cache_file()
    try:
        at = path.stat()
        return _parse(path, at.st_mtime_ns, at.st_size)
    except (OSError, ValueError):
        return {}


@lru_cache(maxsize=1)
def _parse(path: Path, changed: int, size: int) -> dict[str, Any]:
    """The file as it is at that time: every launch asks for it."""
    found = json.loads(path.read_text("utf-8"))
    return found if isinstance(found, dict) else {}


def _write(key: str, options: dict[str, int] | str) -> None:
    """Add a result. Where the cache folder cannot be written, it is measured again next time."""
    path = cache_file()
    text = json.dumps(_read() | {key: options}, indent=1, sort_keys=True)
    beside = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text + "\n", "utf-8")
        beside.replace(path)
    except OSError:
        return
