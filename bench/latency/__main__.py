"""How long a call takes the host, up to NVIDIA's driver, in whose place is `stand_in`.

    python -m bench.latency                   # no GPU needed; a C compiler is

Each call is timed in turns with a bare operator, which allocates attention's results and starts
nothing: a busy machine makes both slower, and hardly their ratio.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor

from bench.latency.stand_in import stand_in
from pyimpl import attention, attention_decode, attention_varlen
from pyimpl.backends.kernels.parts import kept

Call = Callable[[], object]
# Calls in a run, and runs: the median of their means is told.
CALLS, RUNS = 50, 100
# PyTorch does not annotate it; an operator is there as long as its library.
_Library: Any = torch.library.Library
_KEPT: list[Any] = []


def bare_operator() -> Callable[[Tensor], object]:
    """An operator of Python's that returns a new output and log-sum-exp."""
    library = _Library("bench_latency", "FRAGMENT")
    _KEPT.append(library)
    library.define("bare(Tensor query) -> (Tensor, Tensor)")

    def bare(query: Tensor) -> tuple[Tensor, Tensor]:
        return torch.empty_like(query), query.new_empty(query.shape[:-1], dtype=torch.float32)

    library.impl("bare", bare, "CompositeExplicitAutograd")
    operator: Callable[[Tensor], object] = torch.ops.bench_latency.bare.default
    return operator


def calls() -> dict[str, Call]:
    """The timed calls: one of each function, of bfloat16, as inference makes it; of `attention`
    where gradients are wanted; and of the functions that compute these."""

    def rows(*size: int) -> Tensor:
        return torch.randn(size).to(torch.bfloat16)

    q, k, v = (rows(1, 16, 128, 128) for _ in range(3))
    one, cache = rows(4, 32, 1, 128), [rows(4, 8, 2048, 128) for _ in range(2)]
    pool = [rows(64, 8, 256, 128) for _ in range(2)]
    lens = torch.full((4,), 2000, dtype=torch.int32)
    table = torch.arange(32, dtype=torch.int32).view(4, 8)
    x, y, z = (rows(512, 16, 128) for _ in range(3))
    sums = torch.tensor([0, 128, 512], dtype=torch.int32)
    named: dict[str, Any] = {"check": False, "backend": "triton"}
    gluon = named | {"backend": "gluon"}
    step = named | {"enable_gqa": True, "kv_lens": lens}
    slopes = torch.rand(16)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]

    def forward() -> object:
        with torch.enable_grad():
            return attention(*leaves, is_causal=True, **named)

    def backward(options: dict[str, Any]) -> Call:
        with torch.enable_grad():
            out, grad_out = attention(*leaves, is_causal=True, **options), rows(1, 16, 128, 128)
        return lambda: torch.autograd.grad(out, leaves, grad_out, retain_graph=True)

    return {
        "attention": lambda: attention(q, k, v, is_causal=True, **named),
        "attention, Gluon": lambda: attention(q, k, v, is_causal=True, **gluon),
        "forward, autograd": forward,
        "backward": backward(named),
        "backward, Gluon": backward(gluon),
        "attention, ALiBi": lambda: attention(q, k, v, alibi_slopes=slopes, **named),
        "varlen": lambda: attention_varlen(x, y, z, sums, sums, max_q_len=384, **named),
        "decode": lambda: attention_decode(one, *cache, **step),
        "decode, paged": lambda: attention_decode(one, *pool, page_table=table, **step),
    }


def seconds(call: Call) -> float:
    """The mean of a run of calls."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def measure(call: Call, bare: Call) -> dict[str, float]:
    """Microseconds of a call and of the bare operator beside it, the least of all runs, and the
    median of their ratios."""
    for one in (call, bare):
        one()
    pairs = [(seconds(call), seconds(bare)) for _ in range(RUNS)]
    return {
        "us": round(1e6 * min(one for one, _ in pairs), 1),
        "bare_us": round(1e6 * min(one for _, one in pairs), 2),
        "ratio": round(statistics.median(one / other for one, other in pairs), 1),
    }


def run() -> dict[str, Any]:
    """All measurements."""
    torch.set_num_threads(1)
    operator = bare_operator()
    found: dict[str, Any] = {}
    with (
        torch.no_grad(),
        tempfile.TemporaryDirectory() as folder,
        stand_in(Path(folder)) as started,
    ):
        for name, call in calls().items():
            query = torch.empty(1, 16, 128, 128, dtype=torch.bfloat16)
            before = started()
            call()
            kernels = started() - before

            def bare(query: Tensor = query) -> object:
                return operator(query)

            found[name] = {"kernels": kernels, **measure(call, bare)}
            # As it would be if no launch were kept: by Triton's own way to its kernel.
            with mock.patch.object(kept, "_COMPILES", False):
                again = measure(call, bare)
            found[name] |= {"not_kept_us": again["us"], "not_kept_ratio": again["ratio"]}
    return {
        "python": platform.python_version(), "torch": torch.__version__,
        "triton": triton.__version__, "calls": found,
    }  # fmt: skip


def table(found: dict[str, Any]) -> str:
    """The measurements for people."""
    lines = [
        "Microseconds of the host for a call, up to NVIDIA's driver: the least of "
        f"{RUNS} runs of {CALLS}; × bare: times a bare operator's, the median.",
        f"{'':18}{'kernels':>8}{'µs':>8}{'× bare':>8}{'bare µs':>9}{'not kept µs':>13}{'×':>6}",
    ]
    for name, one in found["calls"].items():
        lines.append(
            f"{name:18}{one['kernels']:8}{one['us']:8.1f}{one['ratio']:8.1f}{one['bare_us']:9.2f}"
            f"{one['not_kept_us']:13.1f}{one['not_kept_ratio']:6.1f}"
        )
    versions = ", ".join(f"{name} {found[name]}" for name in ("python", "torch", "triton"))
    return "\n".join([*lines, versions])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the measurements there, too")
    chosen = parser.parse_args(arguments)
    try:
        found = run()
    except RuntimeError as error:
        print(f"bench.latency: {error}", file=sys.stderr)
        return 2
    print(table(found))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
