"""How long a call takes the host, up to NVIDIA's driver, in whose place is `stand_in`.

    python -m bench.latency                   # no GPU needed; a C compiler is
    python -m bench.latency --gpu             # on a GPU, its driver and its threads among it

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
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

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


def calls(device: str = "cpu") -> dict[str, Call]:
    """The timed calls: one of each function, of bfloat16, as inference makes it; of `attention`
    where gradients are wanted; and of the functions that compute these. On a GPU also the backward
    passes of "auto" and of cuDNN, and each once more without PyTorch's thread for the device; the
    Gluon kernels on Hopper alone."""

    def rows(*size: int) -> Tensor:
        return torch.randn(size).to(device, torch.bfloat16)

    q, k, v = (rows(1, 16, 128, 128) for _ in range(3))
    one, cache = rows(4, 32, 1, 128), [rows(4, 8, 2048, 128) for _ in range(2)]
    pool = [rows(64, 8, 256, 128) for _ in range(2)]
    lens = torch.full((4,), 2000, dtype=torch.int32, device=device)
    table = torch.arange(32, dtype=torch.int32, device=device).view(4, 8)
    x, y, z = (rows(512, 16, 128) for _ in range(3))
    sums = torch.tensor([0, 128, 512], dtype=torch.int32, device=device)
    named: dict[str, Any] = {"check": False, "backend": "triton"}
    gluon = named | {"backend": "gluon"}
    step = named | {"enable_gqa": True, "kv_lens": lens}
    slopes = torch.rand(16, device=device)
    leaves = [x.clone().requires_grad_() for x in (q, k, v)]

    def forward() -> object:
        with torch.enable_grad():
            return attention(*leaves, is_causal=True, **named)

    def backward(function: Callable[..., Any], **options: Any) -> Call:
        with torch.enable_grad():
            out, grad_out = function(*leaves, is_causal=True, **options), rows(1, 16, 128, 128)
        return lambda: torch.autograd.grad(out, leaves, grad_out, retain_graph=True)

    def in_this_thread(call: Call) -> Call:
        def run() -> object:
            with torch.autograd.set_multithreading_enabled(False):
                return call()

        return run

    found: dict[str, Call] = {
        "attention": lambda: attention(q, k, v, is_causal=True, **named),
        "attention, Gluon": lambda: attention(q, k, v, is_causal=True, **gluon),
        "forward, autograd": forward,
        "backward": backward(attention, **named),
        "attention, ALiBi": lambda: attention(q, k, v, alibi_slopes=slopes, **named),
        "varlen": lambda: attention_varlen(x, y, z, sums, sums, max_q_len=384, **named),
        "decode": lambda: attention_decode(one, *cache, **step),
        "decode, paged": lambda: attention_decode(one, *pool, page_table=table, **step),
    }
    if device == "cpu" or torch.cuda.get_device_capability() == (9, 0):
        found["backward, Gluon"] = backward(attention, **gluon)
    else:
        del found["attention, Gluon"]
    if device == "cpu":
        return found
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        found["backward, cuDNN"] = backward(scaled_dot_product_attention)
    found["backward, auto"] = backward(attention)
    here = {
        f"{name}, 1 thread": in_this_thread(call)
        for name, call in found.items()
        if name.startswith("backward")
    }
    return found | here


def seconds(call: Call) -> float:
    """The mean of a run of calls."""
    start = time.perf_counter()
    for _ in range(CALLS):
        call()
    return (time.perf_counter() - start) / CALLS


def measure(call: Call, bare: Call, wait: Callable[[], object]) -> dict[str, float]:
    """Microseconds of a call and of the bare operator beside it, the least of all runs, and the
    median of their ratios. wait: for a device, before each run."""
    for one in (call, bare):
        one()
    pairs = []
    for _ in range(RUNS):
        wait()
        one_call = seconds(call)
        wait()
        pairs.append((one_call, seconds(bare)))
    return {
        "us": round(1e6 * min(one for one, _ in pairs), 1),
        "bare_us": round(1e6 * min(one for _, one in pairs), 2),
        "ratio": round(statistics.median(one / other for one, other in pairs), 1),
    }


def run(gpu: bool = False) -> dict[str, Any]:
    """All measurements. Raises RuntimeError where there is no such GPU, or no stand-in for one."""
    if gpu and not torch.cuda.is_available():
        raise RuntimeError("there is no GPU for --gpu")
    torch.set_num_threads(1)
    operator = bare_operator()
    found: dict[str, Any] = {}
    device = "cuda" if gpu else "cpu"
    wait = torch.cuda.synchronize if gpu else lambda: None
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        started = None if gpu else stack.enter_context(stand_in(Path(folder)))
        for name, call in calls(device).items():
            query = torch.empty(1, 16, 128, 128, dtype=torch.bfloat16, device=device)
            before = 0 if started is None else started()
            call()
            kernels = None if started is None else started() - before

            def bare(query: Tensor = query) -> object:
                return operator(query)

            found[name] = {"kernels": kernels, **measure(call, bare, wait)}
            # As it would be if no launch were kept: by Triton's own way to its kernel.
            with mock.patch.object(kept, "_COMPILES", False):
                again = measure(call, bare, wait)
            found[name] |= {"not_kept_us": again["us"], "not_kept_ratio": again["ratio"]}
    return {
        "python": platform.python_version(), "torch": torch.__version__,
        "triton": triton.__version__, "device": torch.cuda.get_device_name() if gpu else None,
        "calls": found,
    }  # fmt: skip


def table(found: dict[str, Any]) -> str:
    """The measurements for people."""
    where = "up to NVIDIA's driver" if found["device"] is None else f"on {found['device']}"
    lines = [
        f"Microseconds of the host for a call, {where}: the least of "
        f"{RUNS} runs of {CALLS}; × bare: times a bare operator's, the median.",
        f"{'':26}{'kernels':>8}{'µs':>8}{'× bare':>8}{'bare µs':>9}{'not kept µs':>13}{'×':>6}",
    ]
    for name, one in found["calls"].items():
        lines.append(
            f"{name:26}{one['kernels'] or '–':>8}{one['us']:8.1f}{one['ratio']:8.1f}"
            f"{one['bare_us']:9.2f}{one['not_kept_us']:13.1f}{one['not_kept_ratio']:6.1f}"
        )
    versions = ", ".join(f"{name} {found[name]}" for name in ("python", "torch", "triton"))
    return "\n".join([*lines, versions])


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the measurements there, too")
    parser.add_argument("--gpu", action="store_true", help="time calls on the GPU that is there")
    chosen = parser.parse_args(arguments)
    try:
        found = run(chosen.gpu)
    except RuntimeError as error:
        print(f"bench.latency: {error}", file=sys.stderr)
        return 2
    print(table(found))
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
