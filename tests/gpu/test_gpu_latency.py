"""No call waits for the GPU unless it is to check numbers. Run alone: `python -m pytest tests/gpu`.

Skipped where `gpu_device` says, and in the interpreter, where there is nothing to wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
from gpu_device import DEVICE, needs_gpu, skip_elsewhere
from torch import Tensor

from bench.latency import __main__ as latency
from pyimpl import attention, attention_decode, attention_varlen
from pyimpl.internal.scores import CHANGES

skip_elsewhere()

pytestmark = needs_gpu
Call = Callable[..., Tensor]


def rows(*size: int) -> Tensor:
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    return torch.randn(size, generator=generator, device=DEVICE).bfloat16()


def calls(*, check: bool) -> dict[str, Callable[[], Tensor]]:
    """One of each function, with all that has numbers to look at."""
    q, k, v = (rows(2, 8, 200, 64) for _ in range(3))
    bias = torch.randn(200, 200, device=DEVICE)
    one, cache = rows(2, 8, 1, 64), rows(2, 8, 4096, 64)
    pool = rows(40, 8, 256, 64)
    lens = torch.tensor([3000, 17], dtype=torch.int32, device=DEVICE)
    table = torch.arange(32, dtype=torch.int32, device=DEVICE).view(2, 16)
    packed = [rows(300, 8, 64) for _ in range(3)]
    sums = torch.tensor([0, 100, 300], dtype=torch.int32, device=DEVICE)
    per_head = [change.name for change in CHANGES if change.kind == "head"]
    more = {name: torch.rand(8, device=DEVICE) for name in per_head} | {"check": check}
    return {
        "attention": lambda: attention(q, k, v, bias=bias, **more),
        "varlen": lambda: attention_varlen(*packed, sums, sums, max_q_len=200, **more),
        "decode": lambda: attention_decode(one, cache, cache, kv_lens=lens, **more),
        "paged": lambda: attention_decode(one, pool, pool, kv_lens=lens, page_table=table, **more),
    }


@contextmanager
def no_waiting() -> Iterator[None]:
    """PyTorch raises where the host would wait."""
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


@pytest.mark.parametrize("name", ["attention", "varlen", "decode", "paged"])
def test_nothing_waits_unless_it_checks(name: str) -> None:
    # To make their tensors waits.
    free, checked = calls(check=False)[name], calls(check=True)[name]
    with no_waiting():
        free()
        with pytest.raises(RuntimeError, match="synchron"):
            checked()


@pytest.mark.parametrize("name", ["attention", "varlen", "decode", "paged"])
def test_a_call_is_captured_in_a_graph(name: str) -> None:
    call = calls(check=False)[name]
    wanted = call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    found.zero_()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(found, wanted)


def test_the_time_of_the_host_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "CALLS", 2)
    monkeypatch.setattr(latency, "RUNS", 2)
    found = latency.run(gpu=True)
    assert {"attention", "backward, cuDNN", "backward, auto, 1 thread"} <= set(found["calls"])
    assert all(one["us"] > 0 for one in found["calls"].values())
