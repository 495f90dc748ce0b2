"""Time the tile loop in PyTorch against SDPA's CPU kernel, side by side in one process.

    .venv/bin/python bench/cpu.py                    # 8 heads, n = 4096, d = 64, float32
    .venv/bin/python bench/cpu.py --length 1024 --repeats 5

The two take turns, so that a change of clock speed or load meets both. Each line gives the median
time of either, and the median of the ratios of neighbouring runs: below 1 ours is faster. With a
window SDPA is given the mask that it means, made beforehand, since it has no other name for it.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import torch
import torch.nn.functional as F
from torch import Tensor

from pyimpl import attention

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


class Parser(argparse.ArgumentParser):
    """Misuse is one sentence and status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}\n")


def positive(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1 on")
    return number


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def in_turns(
    ours: Callable[[], object], theirs: Callable[[], object], repeats: int
) -> tuple[float, float, float]:
    """(median of ours, median of theirs, median ratio) after one call of each to warm up."""
    ours()
    theirs()
    rounds = [(seconds(ours), seconds(theirs)) for _ in range(repeats)]
    mine, other = (statistics.median(times) for times in zip(*rounds, strict=True))
    return mine, other, statistics.median(x / y for x, y in rounds)


def cases(
    query: Tensor, key: Tensor, value: Tensor, window: int
) -> dict[str, tuple[Callable[[], object], Callable[[], object]]]:
    """By name: our call and SDPA's, which compute the same."""
    n = query.shape[2]
    places = torch.arange(n)
    distance = places[:, None] - places
    causal = (distance >= 0) & (distance <= window)
    both_sides = distance.abs() <= window

    # The options are of several types, which one dictionary does not tell apart.
    def ours(**options: object) -> Callable[[], object]:
        return lambda: attention(query, key, value, backend="tiled", **options)  # type: ignore[arg-type]

    def sdpa(**options: object) -> Callable[[], object]:
        return lambda: F.scaled_dot_product_attention(query, key, value, **options)  # type: ignore[arg-type]

    return {
        "full": (ours(), sdpa()),
        "causal": (ours(is_causal=True), sdpa(is_causal=True)),
        f"window ({window}, 0)": (ours(window=(window, 0)), sdpa(attn_mask=causal)),
        f"window ({window}, {window})": (
            ours(window=(window, window)),
            sdpa(attn_mask=both_sides),
        ),
        "boolean mask": (ours(attn_mask=both_sides), sdpa(attn_mask=both_sides)),
    }


def main() -> None:
    """The command line described at the top of this module."""
    parser = Parser(description="Time the tile loop against SDPA on the CPU.")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--batch", type=positive, default=1)
    parser.add_argument("--heads", type=positive, default=8)
    parser.add_argument("--length", type=positive, default=4096)
    parser.add_argument("--head-dim", type=positive, default=64)
    parser.add_argument("--window", type=positive, default=256)
    parser.add_argument("--repeats", type=positive, default=15)
    parser.add_argument("--output", type=Path, help="also write the lines to this file")
    options = parser.parse_args()
    if options.output is not None:
        try:
            options.output.open("a").close()
        except OSError as error:
            parser.error(f"argument --output: {options.output} cannot be written: {error.strerror}")
    shape = (options.batch, options.heads, options.length, options.head_dim)
    generator = torch.Generator().manual_seed(0)
    query, key, value = torch.randn(3, *shape, generator=generator).to(DTYPES[options.dtype])
    lines: list[str] = []

    def say(line: str) -> None:
        lines.append(line)
        print(line, flush=True)

    say(" ".join(["$ python bench/cpu.py", *sys.argv[1:]]))
    say(
        f"{platform.machine()}, {torch.backends.cpu.get_cpu_capability()}, "
        f"{torch.get_num_threads()} CPU threads, Python {platform.python_version()}, "
        f"torch {torch.__version__}"
    )
    say(f"batch {options.batch}, heads {options.heads}, length {options.length}, "
        f"head_dim {options.head_dim}, {options.dtype}, {options.repeats} rounds, "
        f"load average {os.getloadavg()[0]:.1f} before")  # fmt: skip
    say("                      ours ms   SDPA ms  ours/SDPA")
    for name, (ours, sdpa) in cases(query, key, value, options.window).items():
        mine, theirs, ratio = in_turns(ours, sdpa, options.repeats)
        say(f"{name:<19} {1e3 * mine:>9.1f} {1e3 * theirs:>9.1f} {ratio:>10.2f}")
    if options.output is not None:
        options.output.write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
