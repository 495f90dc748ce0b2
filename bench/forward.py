"""Time this package's attention against PyTorch's SDPA, side by side in one process.

    .venv/bin/python bench/forward.py             # the GPU if there is one, otherwise the CPU
    .venv/bin/python bench/forward.py --device cpu --lengths 512 1024 --json build/bench.json

Each line gives the median time of either, and their ratio: below 1 ours is faster. The two take
turns, so that a change of clock speed or load meets both.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn, get_args

import torch
import torch.nn.functional as F
from torch import Tensor

from pyimpl import attention
from pyimpl.attention import Backend

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


def seconds(call: Callable[[], Tensor], device: str) -> float:
    """Wall time of one call, with the device idle before and after."""
    if device == "cuda":
        torch.cuda.synchronize()
    start = time.perf_counter()
    call()
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - start


def medians(calls: list[Callable[[], Tensor]], device: str, repeats: int) -> list[float]:
    """The median time of each call, taken in turns after one call of each to warm up."""
    for call in calls:
        call()
    rounds = [[seconds(call, device) for call in calls] for _ in range(repeats)]
    return [statistics.median(times) for times in zip(*rounds, strict=True)]


def measure(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One record per dtype × head_dim × length × causal."""
    for name in options.dtypes:
        for head_dim in options.head_dims:
            for length in options.lengths:
                for is_causal in (False, True):
                    shape = (options.batch, options.heads, length, head_dim)
                    q, k, v = torch.randn(3, *shape, device=options.device).to(DTYPES[name])

                    def ours(q=q, k=k, v=v, is_causal=is_causal) -> Tensor:
                        return attention(q, k, v, is_causal=is_causal, backend=options.backend)

                    def sdpa(q=q, k=k, v=v, is_causal=is_causal) -> Tensor:
                        return F.scaled_dot_product_attention(q, k, v, is_causal=is_causal)

                    mine, theirs = medians([ours, sdpa], options.device, options.repeats)
                    # Two products of 2·n²·d operations each; causality needs half of them.
                    flops = 4 * options.batch * options.heads * length**2 * head_dim
                    flops = flops // 2 if is_causal else flops
                    yield {
                        "dtype": name, "head_dim": head_dim, "length": length,
                        "is_causal": is_causal, "ours_ms": 1e3 * mine, "sdpa_ms": 1e3 * theirs,
                        "ours_tflops": flops / mine / 1e12, "ratio": mine / theirs,
                    }  # fmt: skip


def main() -> None:
    """The command line described at the top of this module."""
    cuda = torch.cuda.is_available()
    parser = Parser(description="Time attention against SDPA.")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if cuda else "cpu")
    parser.add_argument("--backend", choices=get_args(Backend), default="auto")
    parser.add_argument("--dtypes", nargs="+", choices=DTYPES)
    parser.add_argument("--head-dims", nargs="+", type=positive, default=[64, 128])
    parser.add_argument("--lengths", nargs="+", type=positive)
    parser.add_argument("--batch", type=positive, default=1)
    parser.add_argument("--heads", type=positive, default=8)
    parser.add_argument("--repeats", type=positive)
    parser.add_argument("--json", type=Path, help="also write the records to this file")
    options = parser.parse_args()
    on_cpu = options.device == "cpu"
    if not (on_cpu or cuda):
        parser.error("argument --device: PyTorch has no CUDA device here")
    if options.json is not None:
        try:
            options.json.open("a").close()
        except OSError as error:
            parser.error(f"argument --json: {options.json} cannot be written: {error.strerror}")
    options.dtypes = options.dtypes or (["float32"] if on_cpu else ["float16", "bfloat16"])
    options.lengths = options.lengths or ([512, 1024] if on_cpu else [1024, 4096, 16384])
    options.repeats = options.repeats or (5 if on_cpu else 20)

    where = platform.processor() or platform.machine()
    where = where if on_cpu else torch.cuda.get_device_name()
    print("$ python bench/forward.py", *sys.argv[1:])
    print(
        f"{where}, {torch.get_num_threads()} CPU threads, Python {platform.python_version()}",
        end="",
    )
    print(f", torch {torch.__version__}, batch {options.batch}, heads {options.heads}")
    print("dtype     head_dim  length  causal   ours ms   SDPA ms  ours TFLOP/s  ours/SDPA")
    records = []
    try:
        for r in measure(options):
            records.append(r)
            print(
                f"{r['dtype']:<9} {r['head_dim']:>8} {r['length']:>7}  {r['is_causal']!s:<6}"
                f" {r['ours_ms']:>9.3f} {r['sdpa_ms']:>9.3f} {r['ours_tflops']:>13.3f}"
                f" {r['ratio']:>10.2f}",
                flush=True,
            )
    except (ImportError, ValueError) as error:  # what `attention` raises for a backend
        parser.error(f"argument --backend: {error}")
    if options.json is not None:
        options.json.write_text(json.dumps(records, indent=1) + "\n")


if __name__ == "__main__":
    main()
