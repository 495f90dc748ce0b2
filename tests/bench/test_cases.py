"""Masks, work and inputs of the cases."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from bench_fakes import CPU, case

from bench.cases import Mask, MaskName, make_inputs


@pytest.mark.parametrize(
    ("name", "pairs"),
    [("full", 25), ("causal", 15), ("window", 9), ("window-both", 13), ("boolean", 13)],
)
def test_a_mask_is_the_same_in_each_of_its_forms(name: MaskName, pairs: int) -> None:
    mask = Mask.of_name(name, 1)
    dense = mask.dense(5, 5, CPU)
    assert torch.equal(dense, torch.tensor(np.stack([mask.row(i, 5) for i in range(5)])))
    assert int(dense.sum()) == pairs
    assert case(q_len=5, kv_len=5, mask=mask).flops == 4 * 8 * pairs * 2


def test_a_mask_is_called_by_its_bounds() -> None:
    names = [str(Mask.of_name(name, 7)) for name in ("full", "causal", "window", "boolean")]
    assert names == ["full", "causal", "window (7, 0)", "boolean (7, 7)"]


def test_the_bytes_are_inputs_and_output_once_each() -> None:
    decode = case(
        operation="decode", dtype="bfloat16", batch=3, heads=4, kv_heads=2, q_len=1, kv_len=10,
        mask=Mask("full"),
    )  # fmt: skip
    assert decode.bytes == 2 * 3 * 8 * (4 + 4 + 2 * 10 * 2)


def test_the_backward_pass_has_two_and_a_half_times_the_work() -> None:
    forward, both, backward = (
        case(operation=operation, q_len=6, kv_len=6)
        for operation in ("forward", "forward+backward", "backward")
    )
    assert forward.flops == 4 * 8 * 21 * 2
    assert backward.flops == 2.5 * forward.flops
    assert both.flops == forward.flops + backward.flops
    # Query, key, value, output and the gradient of each.
    assert backward.bytes == 4 * 8 * 6 * 8 * 2
    assert both.bytes == forward.bytes + backward.bytes


def test_only_cases_with_gradients_have_one_of_the_output() -> None:
    forward, backward = (
        make_inputs(case(operation=operation), CPU) for operation in ("forward", "backward")
    )
    assert forward.grad_out is None
    assert backward.grad_out is not None
    assert backward.grad_out.shape == backward.query.shape
    assert torch.equal(forward.value, backward.value)


def test_some_rows_of_a_mask() -> None:
    for name in ("full", "causal", "window", "window-both"):
        mask = Mask.of_name(name, 2)
        assert torch.equal(mask.dense(9, 7, CPU, 3, 8), mask.dense(9, 7, CPU)[3:8])


def test_pages_hold_the_keys_in_the_order_of_the_table() -> None:
    inputs = make_inputs(
        case(operation="decode", batch=2, q_len=1, kv_len=10, mask=Mask("full"), page_size=4), CPU
    )
    assert inputs.pages is not None
    for b in range(2):
        pages = inputs.pages.table[b].long()
        for pool, cache in ((inputs.pages.key, inputs.key), (inputs.pages.value, inputs.value)):
            rows = pool[pages].transpose(0, 1).flatten(1, 2)
            assert torch.equal(rows[:, :10], cache[b])
    assert inputs.pages.lens.tolist() == [10, 10]


def test_the_inputs_of_a_case_are_always_the_same() -> None:
    first, second = (make_inputs(case(dtype="float16"), CPU) for _ in range(2))
    assert torch.equal(first.query, second.query)
    assert first.key.dtype == torch.float16
