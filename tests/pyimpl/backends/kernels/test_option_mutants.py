"""Mutants of the code of which there are no vectors: the comparison with plain float64, by
which the kernels are tested here, shows each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import ModuleType

import pytest
import test_decode_kernel
import test_varlen_kernel
import torch
from attention_checks import inputs, kernel_rounding
from kernel_checks import judge, score_options

from bridge.conformance.mutants.options import OPTION_MUTANTS
from bridge.conformance.mutants.planting import Mutant, mutated_module

Check = Callable[[ModuleType], None]


def forward(**changes: object) -> Check:
    """4 heads share 2 of keys and values."""

    def check(module: ModuleType) -> None:
        query, key, value, _ = inputs((1, 4, 20, 70, 16, 16), torch.float32)
        key, value = key[:, :2], value[:, :2]
        options = score_options(query, **changes)
        result = module.forward(query, key, value, options, block_m=16, block_n=16)
        judge(result, query, key, value, options, kernel_rounding(torch.float32, 16))

    return check


def decode(num_splits: int = 1, **changes: object) -> Check:
    def check(module: ModuleType) -> None:
        query, key, value, _ = inputs((1, 4, 2, 60, 16, 16), torch.float32)
        key, value = key[:, :2], value[:, :2]
        options = score_options(query, **changes)
        result = module.decode(query, key, value, options, num_splits=num_splits, block_n=16)
        judge(result, query, key, value, options, kernel_rounding(torch.float32, 16))

    return check


def lengths(module: ModuleType) -> None:
    query, key, value, _ = inputs((2, 2, 1, 40, 16, 16), torch.float32)
    lens = torch.tensor([40, 17], dtype=torch.int32)
    options = score_options(query)
    result = module.decode(query, key, value, options, kv_lens=lens, bottom_right=True)
    test_decode_kernel.check_each(result, query, key, value, lens)


def pages(page_size: int) -> Check:
    """Pages that are smaller than a tile of 16 keys, or hold one or more of them."""

    def check(module: ModuleType) -> None:
        query, key, value, _ = inputs((2, 2, 1, 40, 16, 16), torch.float32)
        lens = torch.tensor([40, 17], dtype=torch.int32)
        (keys, values), table = test_decode_kernel.in_pages([key, value], lens, page_size)
        result = module.split_and_combine(
            query, keys, values, score_options(query), kv_lens=lens, page_table=table,
            bottom_right=True, num_splits=1, block_n=16,
        )  # fmt: skip
        test_decode_kernel.check_each(result, query, key, value, lens)

    return check


def varlen(**changes: object) -> Check:
    def check(module: ModuleType) -> None:
        tensors = test_varlen_kernel.packed_inputs()
        cu_seqlens = [
            test_varlen_kernel.cu_seqlens(x)
            for x in (test_varlen_kernel.Q_LENS, test_varlen_kernel.K_LENS)
        ]
        options = score_options(tensors[0], **changes)
        result = module.varlen(*tensors, *cu_seqlens, options, bottom_right=True, block_m=16)
        test_varlen_kernel.check(result, tensors, True, **changes)

    return check


def combine(module: ModuleType) -> None:
    query, key, value, _ = inputs((1, 1, 3, 8, 16, 16), torch.float32)
    options = score_options(query)
    products = options.scale * query @ key.transpose(-1, -2)
    out, lse = torch.empty(1, 1, 3, 16), torch.empty(1, 1, 3)
    # Each key is a part of its own.
    module.combine_into(
        value.permute(2, 0, 1, 3)[:, :, :, None].expand(-1, -1, -1, 3, -1),
        products.permute(3, 0, 1, 2), out, lse,
    )  # fmt: skip
    judge((out, lse), query, key, value, options, kernel_rounding(torch.float32))


WINDOW = forward(left=30, right=3, shift=50)
CHECKS: dict[str, Check] = {
    "window-hides-its-first-key": WINDOW,
    "window-shows-one-key-before": WINDOW,
    "window-hides-its-last-key": WINDOW,
    "window-shows-one-key-after": WINDOW,
    "first-tile-skipped": forward(left=2, right=3, shift=50),
    "last-key-skipped": forward(right=1, shift=29),
    "right-edge-unmasked": WINDOW,
    "left-edge-unmasked": WINDOW,
    "alignment-swapped": WINDOW,
    "alignment-of-packed-sequences-swapped": varlen(right=0),
    "softcap-omitted": forward(softcap=0.5),
    "softcap-after-masking": forward(softcap=0.5, right=0),
    "alibi-sign": forward(alibi_slopes=torch.full((1, 4), 0.5)),
    "alibi-signed-distance": forward(alibi_slopes=torch.full((1, 4), 0.5)),
    "bias-base": forward(bias=torch.linspace(0.0, 3.0, 70)),
    "gqa-modulo": forward(),
    "packed-heads-modulo": decode(),
    "sink-omitted": forward(sinks=torch.ones(4)),
    "sink-in-every-split": decode(3, sinks=torch.ones(4)),
    "empty-split-lse-zero": decode(9),
    "empty-split-lse-infinite": decode(9),
    "last-split-dropped": decode(3),
    "lengths-ignored": lengths,
    "page-table-ignored": pages(8),
    "page-of-a-tile-ignored": pages(16),
    "first-tile-of-each-page": pages(32),
    "cu-seqlens-one-short": varlen(),
    "cu-seqlens-one-over": varlen(),
    "parts-not-normalised": combine,
}


@pytest.mark.sampled(4)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("mutant", OPTION_MUTANTS, ids=lambda f: f.name)
def test_each_mutant_shows(mutant: Mutant) -> None:
    with mutated_module(mutant) as module, pytest.raises(AssertionError):
        CHECKS[mutant.name](module)


@pytest.mark.parametrize(
    "name",
    [
        "right-edge-unmasked",
        "alignment-of-packed-sequences-swapped",
        "sink-in-every-split",
        "empty-split-lse-zero",
        "lengths-ignored",
        "page-table-ignored",
        "parts-not-normalised",
    ],
)
def test_the_unedited_copy_passes(name: str) -> None:
    """For each file that there are mutants of, and each that is run: it is the mutation that shows,
    not its planting."""
    (mutant,) = (f for f in OPTION_MUTANTS if f.name == name)
    with mutated_module(replace(mutant, new=mutant.old)) as module:
        CHECKS[name](module)
