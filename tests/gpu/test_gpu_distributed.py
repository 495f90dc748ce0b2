"""Attention in shards on a GPU: the processes of a ring, played by threads of one process that pass
on tensors of the device; and a group of one process on nccl. Run alone:
`python -m pytest tests/gpu`.

Several processes on nccl need a GPU each. Skipped where `gpu_device` says.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from collections.abc import Sequence as Numbers
from concurrent.futures import ThreadPoolExecutor
from queue import Queue
from typing import Any

import pytest
import torch
import torch.distributed as dist
from gpu_device import DEVICE, ON_GPU, length, skip_elsewhere
from torch import Tensor
from torch.testing import assert_close

from pyimpl import attention
from pyimpl.distributed import Shards, decode_attention, ring_attention, ulysses_attention
from pyimpl.distributed.internal.arguments import prepare
from pyimpl.distributed.internal.passing import Posted, Processes
from pyimpl.distributed.internal.ring import Ring, ring_backward, ring_forward
from pyimpl.internal.gradients import Wanted

skip_elsewhere()

PROCESSES = 3
LENGTH = length(301)
LAYOUTS: dict[str, Callable[[], Shards]] = {
    "contiguous": lambda: Shards.contiguous(LENGTH, PROCESSES),
    "zigzag": lambda: Shards.zigzag(LENGTH, PROCESSES),
    "striped": lambda: Shards.striped(LENGTH, PROCESSES),
    "any places": lambda: Shards.of_places(
        torch.randperm(LENGTH, generator=torch.Generator().manual_seed(3)).split(LENGTH // 2)
        + (torch.arange(0),) * (PROCESSES - 3 + (LENGTH % 2 == 0))
    ),
}
OPTIONS: list[dict[str, Any]] = [
    {"is_causal": True},
    {"window": (LENGTH // 4, 3), "softcap": 3.0},
    {"is_causal": True, "cu_seqlens": (0, LENGTH // 3, LENGTH - 2, LENGTH)},
    {"is_causal": True, "dropout_p": 0.3, "dropout_seed": 5},
]
# Seconds in which a thread that waits for another is taken to wait in vain.
PATIENCE = 300.0
Queues = defaultdict[tuple[int, int, int], Queue[Tensor]]


class Played(Processes):
    """A process that is a thread: tensors that it sends lie in a queue until they are received."""

    def __init__(self, rank: int, queues: Queues) -> None:
        super().__init__(None)
        self.rank, self.count, self.queues = rank, PROCESSES, queues

    def start(
        self, sent: Numbers[tuple[int, Tensor]], received: Numbers[tuple[int, Tensor]], tag: int
    ) -> Posted:
        for to, x in sent:
            self.queues[self.rank, to % self.count, tag].put(x.clone())
        return Arriving(self, received, tag)


class Arriving(Posted):
    """A received tensor, once it is waited for."""

    def __init__(self, process: Played, received: Numbers[tuple[int, Tensor]], tag: int) -> None:
        super().__init__(process, [], [])
        self.received = [
            (process.queues[of % process.count, process.rank, tag], x) for of, x in received
        ]

    def wait(self) -> None:
        for queue, x in self.received:
            x.copy_(queue.get(timeout=PATIENCE))


def normal(*size: int, dtype: torch.dtype, seed: int) -> Tensor:
    generator = torch.Generator(device=DEVICE).manual_seed(seed)
    return torch.randn(*size, generator=generator, device=DEVICE).to(dtype)


def by_threads(
    shards: Shards, query: Tensor, key: Tensor, value: Tensor, grad: Tensor, given: dict[str, Any]
) -> list[Tensor]:
    """Output and gradients by query, key and value, of all processes together."""
    queues: Queues = defaultdict(Queue)
    for r in range(PROCESSES):
        for other in range(PROCESSES):
            for tag in range(1, 4):
                queues[r, other, tag]
    arguments = {
        "attn_mask": None, "bias": None, "whole_pairs": False, "is_causal": False,
        "causal_alignment": "top-left", "window": (None, None), "cu_seqlens": None,
        "enable_gqa": True, "return_lse": False, "dropout_p": 0.0, "dropout_seed": None,
        "backend": "tiled", **given,
    }  # fmt: skip

    def play(rank: int) -> list[Tensor]:
        processes = Played(rank, queues)
        own = [shards.take(x, rank) for x in (query, key, value, grad)]
        found = prepare(processes, *own[:3], shards, None, **arguments)
        ring = Ring(processes, found.sequence, found.backend)
        out, lse = ring_forward(*own[:3], found.options, ring)
        g = ring_backward(*own[:3], out, lse, own[3], None, found.options, Wanted(), ring)
        return [out, g.query, g.key, g.value]

    with ThreadPoolExecutor(PROCESSES) as pool:
        parts = list(pool.map(play, range(PROCESSES)))
    return [shards.join(some) for some in zip(*parts, strict=True)]


def whole(
    query: Tensor, key: Tensor, value: Tensor, grad: Tensor, given: dict[str, Any]
) -> list[Tensor]:
    """The same by one process on the whole sequence."""
    options = dict(given)
    sums = options.pop("cu_seqlens", None)
    if sums is not None:
        numbers = torch.bucketize(torch.arange(LENGTH), torch.tensor(sums[1:]), right=True)
        options["attn_mask"] = (numbers[:, None] == numbers).to(DEVICE)
    inputs = [x.clone().requires_grad_() for x in (query, key, value)]
    out = attention(*inputs, enable_gqa=True, backend="tiled", **options)
    return [out.detach(), *torch.autograd.grad(out, inputs, grad)]


@pytest.mark.parametrize("given", OPTIONS, ids=lambda given: "+".join(given))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_ring_of_threads_agrees_with_one_process(layout: str, given: dict[str, Any]) -> None:
    """In float64, which shows every wrong pair."""
    query, grad = (normal(2, 4, LENGTH, 16, dtype=torch.float64, seed=n) for n in (0, 1))
    key, value = (normal(2, 2, LENGTH, 16, dtype=torch.float64, seed=n) for n in (2, 3))
    given_all = (query, key, value, grad, given)
    for found, expected in zip(
        by_threads(LAYOUTS[layout](), *given_all), whole(*given_all), strict=True
    ):
        assert found.device.type == DEVICE
        assert_close(found, expected)


@pytest.fixture
def alone() -> Iterator[dist.ProcessGroup]:
    """A group of this process, on nccl where there is a GPU."""
    if dist.is_initialized():
        pytest.skip("torch.distributed is initialised already")
    options: dict[str, Any] = {"backend": "gloo"}
    if ON_GPU:
        if not dist.is_nccl_available():
            pytest.skip("needs nccl")
        options = {
            "backend": "nccl",
            "device_id": torch.device(DEVICE, torch.cuda.current_device()),
        }
    dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1, **options)
    try:
        assert dist.group.WORLD is not None
        yield dist.group.WORLD
    finally:
        dist.destroy_process_group()


def test_a_group_of_one_process(alone: dist.ProcessGroup) -> None:
    """Collectives of tensors and of objects on the backend that there is."""
    query = normal(1, 4, LENGTH, 16, dtype=torch.float64, seed=0)
    key, value = (normal(1, 4, LENGTH, 16, dtype=torch.float64, seed=n) for n in (1, 2))
    shards = Shards.contiguous(LENGTH, 1)
    expected = attention(query, key, value, is_causal=True)
    for function in (ring_attention, ulysses_attention):
        found = function(query, key, value, shards=shards, group=alone, is_causal=True, check=True)
        assert_close(found, expected)
    step = decode_attention(query[:, :, -1:], key, value, key_shards=shards, group=alone)
    assert_close(step, expected[:, :, -1:])
    assert Processes(alone).gather({"rank": 0}) == [{"rank": 0}]
