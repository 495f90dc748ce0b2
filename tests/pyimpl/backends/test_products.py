"""The products of the tile loops, by `bmm` and by oneDNN."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from attention_checks import inputs, judge, products_by_onednn, score_options, tiled_rounding
from backward_checks import judge_gradients
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from pyimpl.backends import products
from pyimpl.backends.scratch import Scratch
from pyimpl.backends.tiled import flash
from pyimpl.backends.tiled_backward import flash_backward
from pyimpl.internal.gradients import Wanted


class Factors(TorchDispatchMode):
    """Pairs of the factors that oneDNN multiplies."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[Tensor, Tensor]] = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.overloadpacket.__name__ == "_linear_pointwise":
            self.found.append(args[:2])
        return func(*args, **(kwargs or {}))


def lay_out(layout: str, *shape: int) -> Tensor:
    """Whole numbers from -8 to 8, `[b, n, d]`, whose products are exact: dense, dense when
    transposed, or as heads beside each other."""
    b, n, d = shape
    if layout == "dense":
        return whole_numbers(b, n, d)
    if layout == "transposed":
        return whole_numbers(b, d, n).mT
    return whole_numbers(n, b, d).transpose(0, 1)


def whole_numbers(*shape: int) -> Tensor:
    return torch.randint(-8, 9, shape).float()


LAYOUTS = ["dense", "transposed", "beside"]


@pytest.mark.parametrize("onednn", [False, True])
@pytest.mark.parametrize("right", LAYOUTS)
@pytest.mark.parametrize("left", LAYOUTS)
@pytest.mark.parametrize("heads", [1, 3])
def test_products_of_all_layouts(heads: int, left: str, right: str, onednn: bool) -> None:
    one, other = lay_out(left, heads, 70, 300), lay_out(right, heads, 300, 90)
    expected = one.double() @ other.double()
    to = whole_numbers(heads, 70, 90)
    added = to + expected
    with Factors() as factors, pytest.MonkeyPatch.context() as patch:
        if onednn:
            patch.setattr(products, "LEAST_WORK", 1)
            patch.setattr(products, "is_onednn_faster", lambda: True)
        found = products.multiply(one, other)
        scores = products.multiply_into(Scratch(one), one, other, factor=0.5)
        products.add_product(to, one, other)
    for result, exact in ((found, expected), (2 * scores, expected), (to, added)):
        assert torch.equal(result.double(), exact)
    assert len(factors.found) == (3 * heads if onednn else 0)
    # Of others oneDNN takes a thousand times as long.
    for factor in (x for pair in factors.found for x in pair):
        assert factor.is_contiguous() or factor.mT.is_contiguous()


def test_results_do_not_share_memory_but_by_scratch() -> None:
    one, other = torch.randn(1, 64, 64), torch.randn(1, 64, 64)
    scratch = Scratch(one)
    with products_by_onednn(all_sizes=True):
        first = products.multiply_into(scratch, one, other)
        kept = first.clone()
        products.multiply_into(scratch, other, one, which=1)
    assert torch.equal(first, kept)


@pytest.mark.parametrize(
    ("shape", "dtype", "enabled", "calls"),
    [
        ((256, 256, 64), torch.float32, True, 1),
        ((256, 255, 64), torch.float32, True, 0),
        ((32, 4096, 64), torch.float32, True, 0),
        ((256, 256, 64), torch.float64, True, 0),
        ((256, 256, 64), torch.float32, False, 0),
    ],
)
def test_only_large_float32_products_are_by_onednn(
    shape: tuple[int, int, int], dtype: torch.dtype, enabled: bool, calls: int
) -> None:
    rows, inner, columns = shape
    one, other = torch.ones(1, rows, inner, dtype=dtype), torch.ones(1, inner, columns, dtype=dtype)
    enabled_before = torch._C._get_mkldnn_enabled()
    torch._C._set_mkldnn_enabled(enabled)
    try:
        with products_by_onednn(), Factors() as factors:
            products.multiply(one, other)
    finally:
        torch._C._set_mkldnn_enabled(enabled_before)
    assert len(factors.found) == calls


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\n", True),
        ("processor\t: 0\nvendor_id\t: GenuineIntel\n", False),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", False),
        (None, False),
    ],
)
def test_the_maker_is_read_where_it_is_told(
    text: str | None, expected: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "cpuinfo"
    if text is not None:
        file.write_text(text, "utf-8")
    monkeypatch.setattr(products, "Path", lambda _name: file)
    assert products._is_of_another_maker() == expected


CASES: list[dict[str, Any]] = [{}, {"is_causal": True}, {"left": 300, "right": 100}]


@pytest.mark.thorough
@pytest.mark.parametrize("beside", [False, True], ids=["dense", "heads beside each other"])
@pytest.mark.parametrize("given", CASES, ids=str)
def test_default_tiles_and_their_gradients_by_onednn(given: dict[str, Any], beside: bool) -> None:
    query, key, value, _ = inputs((1, 2, 300, 700, 64, 32), torch.float32, group=2)
    if beside:
        query, key, value = (
            x.transpose(1, 2).contiguous().transpose(1, 2) for x in (query, key, value)
        )
    options = score_options(query, **given)
    grad_out = torch.randn(1, 4, 300, 32)
    grad_lse = torch.randn(1, 4, 300)
    with products_by_onednn(), Factors() as factors:
        result = flash(query, key, value, options)
        forward = len(factors.found)
        found = flash_backward(query, key, value, *result, grad_out, grad_lse, options, Wanted())
    assert 0 < forward < len(factors.found)
    judge(result, query, key, value, rounding=tiled_rounding(torch.float32), **given)
    named = {name: getattr(found, name) for name in ("query", "key", "value")}
    judge_gradients(named, query, key, value, options, grad_out, grad_lse, computed=torch.float32)
