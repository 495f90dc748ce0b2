"""Dropout in the Triton kernels, interpreted: the generator, tiles, and mutants that must show."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
import triton
import triton.language as tl
from attention_checks import inputs, judge_options, kernel_rounding, score_options
from backward_checks import judge_gradients
from torch import Tensor

from bridge.conformance.mutants import planting
from bridge.conformance.mutants.planted_package import copy_package
from bridge.conformance.mutants.planting import Mutant
from pyimpl.backends import reference
from pyimpl.backends.kernels import backward, forward, varlen
from pyimpl.backends.kernels.parts.dropout import Drop, kept_pairs
from pyimpl.backends.kernels.parts.loop import Scores
from pyimpl.internal.dropout import WORD, Dropout, philox4x32
from pyimpl.internal.gradients import Wanted

SEED = 0x1234567890ABCDEF
DROPOUT = Dropout(0.4, torch.tensor(SEED))


@triton.jit
def _philox_kernel(seed_ptr, counter_ptr, out_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    c0 = tl.load(counter_ptr + at)
    c1 = tl.load(counter_ptr + BLOCK + at)
    c2 = tl.load(counter_ptr + 2 * BLOCK + at)
    c3 = tl.load(counter_ptr + 3 * BLOCK + at)
    w0, w1, w2, w3 = tl.philox(tl.load(seed_ptr), c0, c1, c2, c3)
    tl.store(out_ptr + at, w0.to(tl.int64))
    tl.store(out_ptr + BLOCK + at, w1.to(tl.int64))
    tl.store(out_ptr + 2 * BLOCK + at, w2.to(tl.int64))
    tl.store(out_ptr + 3 * BLOCK + at, w3.to(tl.int64))


@pytest.mark.parametrize("seed", [0, SEED, 2**63 - 1, -(2**63)])
def test_the_generator_is_tritons(seed: int) -> None:
    generator = torch.Generator().manual_seed(0)
    counters = torch.randint(-(2**31), 2**31, (4, 64), generator=generator)
    found = torch.empty(4, 64, dtype=torch.int64)
    _philox_kernel[(1,)](torch.tensor(seed), counters.int(), found, BLOCK=64)
    key = (torch.tensor(seed & WORD), torch.tensor(seed >> 32 & WORD))
    expected = philox4x32(tuple(counters & WORD), key)
    assert torch.equal(found, torch.stack(expected))


@triton.jit
def _kept_kernel(
    seed_ptr, first_ptr, out_ptr, head, last, shift, key_first, PACKED: tl.constexpr
):  # fmt: skip
    rows = tl.arange(0, 16)
    keys = tl.arange(0, 32)
    first_query = None
    first_key = None
    if PACKED:
        first_query = tl.load(first_ptr)
        first_key = tl.load(first_ptr + 1)
    drop = Drop(tl.load(seed_ptr), head, last, 1.0, shift)
    scores = Scores(1.0, None, None, None, drop, first_query, first_key)
    kept = kept_pairs(scores, rows + shift, key_first, None, 32)
    tl.store(out_ptr + rows[:, None] * 32 + keys[None, :], kept.to(tl.int8))


@pytest.mark.parametrize("first_key", [None, 0, 1, 2, 3, 1001])
@pytest.mark.parametrize("p", [2.0**-40, 0.3, 0.9, 1.0 - 2.0**-32])
def test_a_tile(p: float, first_key: int | None) -> None:
    one = Dropout(p, torch.tensor(SEED), first_head=7)
    found = torch.empty(16, 32, dtype=torch.int8)
    last = one.threshold - 1
    _kept_kernel[(1,)](
        one.seed, torch.tensor([90, first_key or 0], dtype=torch.int32), found, 7,
        last - 2**32 if last >= 2**31 else last, -5, 64, PACKED=first_key is not None,
    )  # fmt: skip
    placed = one if first_key is None else one.from_row(90, first_key)
    assert torch.equal(found.bool(), placed.kept_weights(1, 1, range(16), range(64, 96))[0, 0])


# That of a part, which begins inside of four keys that share a call of the generator.
PLACED = replace(DROPOUT, first_head=7, heads=9, first_query=21, first_key=6)


def problem(dropout: Dropout = DROPOUT) -> tuple[Tensor, Tensor, Tensor, Any]:
    """2 batches, 4 heads that share 2 of keys, several tiles of 16 both ways, some masked."""
    query, key, value, _ = inputs((2, 2, 20, 37, 16, 16), torch.float32, group=2)
    return query, key, value, score_options(query, right=0, shift=17, dropout=dropout)


def check_forward(module: Any, dropout: Dropout = DROPOUT, **blocks: int) -> None:
    query, key, value, options = problem(dropout)
    result = module.forward(query, key, value, options, **blocks)
    judge_options(result, query, key, value, options, kernel_rounding(torch.float32, 16))


def check_backward(
    function: Callable[..., Any],
    blocks: dict[str, int] | None = None,
    dropout: Dropout = DROPOUT,
) -> None:
    query, key, value, options = problem(dropout)
    out, lse = reference.attention(query, key, value, options)
    grad_out = torch.randn(out.shape, generator=torch.Generator().manual_seed(1))
    more = {} if blocks is None else {"blocks": blocks}
    found = function(
        query, key, value, out.float(), lse.float(), grad_out, None, options, Wanted(), **more
    )
    named = {"query": found.query, "key": found.key, "value": found.value}
    judge_gradients(named, query, key, value, options, grad_out, computed=torch.float32)


def check_packed(module: Any) -> None:
    query, key, value, _ = inputs((1, 2, 20, 37, 16, 16), torch.float32)
    options = score_options(query, dropout=DROPOUT)
    sums = [torch.tensor(s, dtype=torch.int32) for s in ([0, 3, 20], [0, 18, 37])]
    mask = torch.arange(20)[:, None].ge(3) == torch.arange(37).ge(18)
    rows = [x[0].transpose(0, 1) for x in (query, key, value)]
    out, lse = module.varlen(*rows, *sums, options, block_m=16, block_n=16)
    together = score_options(query, mask=mask, dropout=DROPOUT)
    rounding = kernel_rounding(torch.float32, 16)
    judge_options((out.transpose(0, 1)[None], lse[None]), query, key, value, together, rounding)


@pytest.mark.thorough
@pytest.mark.parametrize(("block_m", "block_n"), [(16, 16), (32, 16), (16, 64)])
def test_tiles_do_not_matter(block_m: int, block_n: int) -> None:
    blocks = {"block_m": block_m, "block_n": block_n}
    for dropout in (DROPOUT, PLACED, DROPOUT.from_row(21, 6)):
        check_forward(forward, dropout, **blocks)
        check_backward(backward.backward, blocks, dropout)


KERNELS = "backends/kernels"
PARTS = f"{KERNELS}/parts"
LOOP, DROP, TILE = f"{PARTS}/loop.py", f"{PARTS}/dropout.py", f"{PARTS}/gradient.py"
FORWARD, VARLEN = f"{KERNELS}/forward.py", f"{KERNELS}/varlen.py"
KEYS, QUERIES = f"{KERNELS}/backward_keys.py", f"{KERNELS}/backward_queries.py"


def mutant(name: str, file: str, through: str | None, old: str, new: str) -> Mutant:
    return Mutant(name=name, description="", file=file, old=old, new=new, through=through)


FORWARD_MUTANTS = [
    mutant(
        "columns counted from the tile's first", LOOP, FORWARD,
        "rows.positions, tile * BLOCK_N, rows.mask", "rows.positions, 0, rows.mask",
    ),
    mutant(
        "l of what dropout leaves", LOOP, FORWARD,
        "l = alpha * l + tl.sum(p, 1)",
        "l = alpha * l + tl.sum(tl.where(kept, p, 0.0) if kept is not None else p, 1)",
    ),
    mutant("not divided by 1 − p", LOOP, FORWARD, "o = o * keep_scale", "o = o * 1.0"),
    mutant(
        "every batch drops the same", DROP, FORWARD,
        "batch * num_heads + head", "head",
    ),
    mutant(
        "rows counted from the sequence's first", FORWARD, VARLEN,
        "Scores(scale, cap, left, right, drop, numbered_q, numbered_k)",
        "Scores(scale, cap, left, right, drop, None, None)",
    ),
]  # fmt: skip
PLACED_MUTANTS = [
    mutant("the first heads", DROP, FORWARD, "number = first_head + number", "number = number"),
    mutant("batches with the heads of the part", DROP, FORWARD, "num_heads = all_heads",
           "num_heads = num_heads"),
    mutant("the first queries", FORWARD, None, "numbered_from(q_first, drop_query)", "q_first"),
    mutant("the first keys", FORWARD, None, "numbered_from(k_first, drop_key)",
           "drop_key - drop_key"),
]  # fmt: skip


@pytest.mark.parametrize("one", FORWARD_MUTANTS, ids=lambda f: f.name)
def test_a_mutant_of_the_forward_pass_shows(one: Mutant) -> None:
    check = check_packed if one.entry == VARLEN else check_tiles
    with (
        planting.mutated_module(one) as module,
        pytest.raises(AssertionError, match="over the tolerance"),
    ):
        check(module)


@pytest.mark.parametrize("one", PLACED_MUTANTS, ids=lambda f: f.name)
def test_a_part_that_drops_as_if_elsewhere_shows(one: Mutant) -> None:
    with (
        planting.mutated_module(one) as module,
        pytest.raises(AssertionError, match="over the tolerance"),
    ):
        check_forward(module, PLACED, block_m=16, block_n=16)


def check_tiles(module: Any) -> None:
    check_forward(module, block_m=16, block_n=16)


def test_packed_sequences_without_a_mutant() -> None:
    check_packed(varlen)


ENTRY = "backends/kernels/backward.py"
BLOCKS = {"block_m": 16, "block_n": 16}
BACKWARD_MUTANTS = [
    mutant("dP not divided", TILE, ENTRY, "grad_p * scores.drop.scale, 0.0", "grad_p, 0.0"),
    mutant("dP not dropped", TILE, ENTRY, "tl.where(pairs.kept, grad_p * scores.drop.scale, 0.0)",
          "grad_p * scores.drop.scale"),
    mutant("dV of all weights", TILE, ENTRY, "p = tl.where(pairs.kept, p, 0.0)", "p = p"),
    mutant("dV not divided", KEYS, ENTRY, "grad_v = grad_v * keep_scale", "grad_v = grad_v * 1.0"),
    mutant("dK and dV by another mask", KEYS, ENTRY, "queries + shift, key_first, at.mask",
          "queries + shift, 0, at.mask"),
    mutant("dQ by another mask", QUERIES, ENTRY, "queries + shift, tile * BLOCK_N, at.mask",
          "queries + shift, 0, at.mask"),
    mutant("the words exchanged", DROP, ENTRY,
          "tl.interleave(tl.interleave(k0, k2), tl.interleave(k1, k3))",
          "tl.interleave(tl.interleave(k0, k1), tl.interleave(k2, k3))"),
    mutant("the place of the queries for their number", DROP, ENTRY,
          "rows = positions - drop.shift", "rows = positions"),
]  # fmt: skip


PLACED_BACKWARD_MUTANTS = [
    mutant("keys by the first queries", KEYS, ENTRY, "numbered_from(q_first, drop_query)",
           "drop_query - drop_query"),
    mutant("keys of the first heads", KEYS, ENTRY, "drop_head, drop_heads,\n        )  # fmt: skip",
           "None, None,\n        )  # fmt: skip"),
    mutant("queries by the first keys", QUERIES, ENTRY, "numbered_from(k_first, drop_key)",
           "drop_key - drop_key"),
]  # fmt: skip


@pytest.mark.parametrize("one", PLACED_BACKWARD_MUTANTS, ids=lambda f: f.name)
def test_a_gradient_of_a_part_elsewhere_shows(one: Mutant) -> None:
    with (
        copy_package(one.file, one.apply, ENTRY) as module,
        pytest.raises(AssertionError, match="times the tolerance"),
    ):
        check_backward(partial(module.backward, blocks=BLOCKS), dropout=PLACED)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("one", BACKWARD_MUTANTS, ids=lambda f: f.name)
def test_a_mutant_of_the_backward_pass_shows(one: Mutant) -> None:
    with (
        copy_package(one.file, one.apply, ENTRY) as module,
        pytest.raises(AssertionError, match="times the tolerance"),
    ):
        check_backward(partial(module.backward, blocks=BLOCKS))


def test_the_unedited_copy_passes() -> None:
    with copy_package(ENTRY, lambda text: text, ENTRY) as module:
        check_backward(partial(module.backward, blocks=BLOCKS))


def test_a_seed_elsewhere_is_refused() -> None:
    query, key, value, _ = inputs((1, 1, 4, 5, 8, 8), torch.float32)
    options = score_options(query, dropout=Dropout(0.5, torch.zeros(2, dtype=torch.int64)))
    with pytest.raises(ValueError, match=r"seed must be one torch.int64 on cpu, not .* \[2\]"):
        forward.forward(query, key, value, options)
