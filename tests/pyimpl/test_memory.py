"""The elements that the tile loop in PyTorch reads, writes and keeps, counted, beside the counts
proved of the tile loop as a program over two memories (`Attention/Claims/Memory/Bounds.lean`).

Slow memory is here the tensors, fast memory the data that an operation of PyTorch has on the chip:
each operation that takes a view of an input and returns none reads the elements of that view. Reads
of its own tensors, a tile of scores and the states, are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from attention_checks import inputs, score_options
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from bridge.spec.flash import num_tiles
from pyimpl.backends import reference, tiled


class Counter(TorchDispatchMode):
    """Elements read of some tensors, elements written to tensors made meanwhile by copying, and the
    most elements of such tensors at any time."""

    def __init__(self, watched: dict[str, Tensor]) -> None:
        super().__init__()
        self.names = {t.untyped_storage().data_ptr(): name for name, t in watched.items()}
        self.reads = dict.fromkeys(watched, 0)
        self.written: dict[int, int] = {}
        self.live: dict[int, tuple[StorageWeakRef, int]] = {}
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        made = [t for t in tree_leaves(result) if isinstance(t, Tensor)]
        places = {t.untyped_storage().data_ptr() for t in made}
        # The form of a tensor is not read from its elements.
        form = func.overloadpacket.__name__.startswith(("new_", "empty_"))
        for t in [] if form else tree_leaves((args, kwargs)):
            if isinstance(t, Tensor):
                place = t.untyped_storage().data_ptr()
                if place not in places and place in self.names:
                    self.reads[self.names[place]] += t.numel()
        if func is torch.ops.aten.copy_.default:
            place = made[0].untyped_storage().data_ptr()
            self.written[place] = self.written.get(place, 0) + made[0].numel()
        self.live = {k: v for k, v in self.live.items() if not v[0].expired()}
        for t in made:
            storage = t.untyped_storage()
            if storage.data_ptr() not in self.names:
                size = storage.nbytes() // t.element_size()
                self.live[storage._cdata] = StorageWeakRef(storage), size
        self.peak = max(self.peak, sum(size for _, size in self.live.values()))
        return result


def count_memory(
    run: Callable[..., Any], shape: tuple[int, int, int, int], **options: Any
) -> tuple[Counter, Tensor]:
    """`run`'s counts, and its output, for q_len, kv_len, head_dim and value_dim of one head."""
    query, key, value, _ = inputs((1, 1, *shape), torch.float64)
    given = score_options(query)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tiled, "THREADS_FROM", math.inf)
        with Counter({"query": query, "key": key, "value": value}) as counter:
            out, _ = run(query, key, value, given, **options)
    return counter, out


SHAPES = [(96, 96, 8, 8), (50, 70, 4, 6), (7, 130, 3, 2), (64, 1, 5, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("blocks", [(16, 16), (32, 8), (11, 13), (1, 7), (500, 500)], ids=str)
def test_transfers_are_those_of_the_theorem(shape, blocks: tuple[int, int]) -> None:
    """`Attention.Claims.flash_transfers`, reads and writes apart as in `run_flashProgram`."""
    q_len, kv_len, d, d_v = shape
    counter, out = count_memory(tiled.flash, shape, block_m=blocks[0], block_n=blocks[1])
    tiles = num_tiles(q_len, blocks[0])
    assert counter.reads == {
        "query": q_len * d,
        "key": tiles * kv_len * d,
        "value": tiles * kv_len * d_v,
    }
    # The state of the only tile becomes the output where it is.
    copied = 0 if tiles == 1 else q_len * d_v
    assert counter.written.get(out.untyped_storage().data_ptr(), 0) == copied
    transfers = sum(counter.reads.values()) + q_len * d_v
    assert transfers == q_len * (d + d_v) + tiles * kv_len * (d + d_v)


@pytest.mark.parametrize(
    "memory", [*(pytest.param(n, marks=pytest.mark.thorough) for n in (72, 100)), 333, 512]
)
def test_traffic_lies_within_the_bounds(memory: int) -> None:
    """`Attention.Claims.flash_traffic`: M / 9d queries to a tile, q_len·kv_len·d²/M up to 18 and
    40."""
    q_len, kv_len, d = 64, 160, 8
    block_m = memory // (9 * d)
    sizes = (q_len, kv_len, d, d)
    counter, _ = count_memory(tiled.flash, sizes, block_m=block_m, block_n=min(d, block_m))
    transfers = sum(counter.reads.values()) + q_len * d
    assert 18 * q_len * kv_len * d**2 <= transfers * memory <= 40 * q_len * kv_len * d**2


def most(run: Callable[..., Any], n: int, **options: Any) -> int:
    """The most elements beside inputs, output and log-sum-exp, for n queries and n keys."""
    counter, out = count_memory(run, (n, n, 8, 8), **options)
    return counter.peak - out.numel() - n


def test_memory_beside_inputs_and_output_does_not_grow() -> None:
    """`Attention.Claims.flash_memory`: it depends on the tile sizes, not on the lengths."""
    sizes = [most(tiled.flash, n, block_m=16, block_n=16) for n in (64, 128, 256, 512)]
    assert len(set(sizes)) == 1
    wider = most(tiled.flash, 256, block_m=32, block_n=32)
    assert sizes[0] < wider < 256**2


def test_memory_of_the_reference_is_quadratic() -> None:
    """`Attention.Claims.standard_memory`: S and P, two matrices, are there at the same time."""
    for n in (64, 128, 256):
        assert most(reference.attention, n) >= 2 * n * n


def test_the_counter_sees_a_tensor_that_is_read_twice_and_one_that_is_kept() -> None:
    def careless(query: Tensor, key: Tensor, value: Tensor, options: Any) -> tuple[Tensor, None]:
        kept = [key.sum(dim=-1), (2.0 * key).sum(dim=-1)]
        return value + kept[0].unsqueeze(-1) + kept[1].unsqueeze(-1), None

    counter, _ = count_memory(careless, (3, 5, 4, 4))
    assert counter.reads == {"query": 0, "key": 2 * 5 * 4, "value": 5 * 4}
    assert counter.peak >= 5 * 4 + 2 * 5
