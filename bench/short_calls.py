"""Short calls on a CPU: the time of `pyimpl.attention` beside that of PyTorch's SDPA.

    python -m bench.short_calls               # a few seconds

Of so short a call most is Python and PyTorch's dispatcher. The calls are made in turns, each once
before it is timed, on one thread; the least time of each is told, since other work of the machine
only adds to it, and the median of the ratios of neighbours.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
import torch.nn.functional as F

from pyimpl import attention

Call = Callable[[], object]
# batch, heads, length, head_dim; float32.
SHAPES = ((1, 1, 8, 16), (1, 8, 128, 64))
ROUNDS = 2000


def in_turns(calls: Sequence[Call], rounds: int) -> list[tuple[float, ...]]:
    """Seconds of each call, in `rounds` rounds of all of them."""
    found = []
    for _ in range(rounds):
        one = []
        for call in calls:
            call()
            start = time.perf_counter()
            call()
            one.append(time.perf_counter() - start)
        found.append(tuple(one))
    return found


def summary(rounds: Sequence[tuple[float, ...]]) -> dict[str, float]:
    """The figures of rounds of (ours, SDPA's): the least microseconds of each, the difference and
    the ratio of these, and the median of the ratios in a round."""
    ours, sdpa = (1e6 * min(column) for column in zip(*rounds, strict=True))
    return {
        "us": round(ours, 1),
        "sdpa_us": round(sdpa, 1),
        "more_us": round(ours - sdpa, 1),
        "ratio": round(ours / sdpa, 3),
        "median_ratio": round(statistics.median(one / other for one, other in rounds), 3),
    }


def run(rounds: int) -> dict[str, dict[str, float]]:
    """All measurements, by the shape and mask of the call."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found = {}
    try:
        with torch.no_grad():
            for shape in SHAPES:
                q, k, v = (torch.randn(shape) for _ in range(3))
                for causal in (False, True):
                    ours, sdpa = (
                        partial(function, q, k, v, is_causal=causal)
                        for function in (attention, F.scaled_dot_product_attention)
                    )
                    name = " × ".join(map(str, shape)) + (" causal" if causal else "")
                    found[name] = summary(in_turns((ours, sdpa), rounds))
    finally:
        torch.set_num_threads(threads)
    return found


def table(found: dict[str, dict[str, float]], rounds: int) -> str:
    """The measurements for people."""
    lines = [
        f"Microseconds of a call, float32, one thread: the least of {rounds} in turns.",
        f"{'':24}{'pyimpl':>9}{'SDPA':>9}{'more':>9}{'ratio':>9}{'median':>9}",
    ]
    for name, one in found.items():
        lines.append(f"{name:24}" + "".join(f"{number:9}" for number in one.values()))
    return "\n".join([*lines, f"python {platform.python_version()}, torch {torch.__version__}"])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.short_calls", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help="calls of each kind (%(default)s)"
    )
    parser.add_argument("--json", type=Path, help="write the measurements there, too")
    chosen = parser.parse_args(arguments)
    if chosen.rounds < 1:
        parser.error(f"--rounds must be at least 1, not {chosen.rounds}")
    found = run(chosen.rounds)
    print(table(found, chosen.rounds))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
