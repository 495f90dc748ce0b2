"""Calls that look at no number of a tensor: the same results, and nothing outside of the tensors
where the numbers are wrong."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode

from pyimpl import attention, attention_decode, attention_varlen
from pyimpl.internal.scores import CHANGES

GENERATOR = torch.Generator().manual_seed(3)
Q, K, V = (torch.randn(2, 4, 9, 16, generator=GENERATOR) for _ in range(3))
LOW = torch.finfo(torch.float32).min
OPTIONS: dict[str, dict[str, Any]] = {
    "mask": {"attn_mask": torch.full((9, 9), LOW).triu(1)},
    "repeated": {"attn_mask": torch.full((1, 1, 1, 9), -torch.inf).expand(2, 4, 9, 9)},
    "half": {"bias": torch.randn(9, 9, generator=GENERATOR).half()},
    "by batch": {"alibi_slopes": torch.rand(2, 4, generator=GENERATOR)},
    "no sink": {"sinks": torch.tensor([0.0, 1.0, LOW, -torch.inf])},
    **{
        change.name: {change.name: torch.rand(4, generator=GENERATOR)}
        for change in CHANGES
        if change.kind == "head"
    },
}
PACKED = [torch.randn(9, 4, 16, generator=GENERATOR) for _ in range(3)]
SUMS = torch.tensor([0, 2, 2, 9])
ONE, CACHE = (torch.randn(3, 4, n, 16, generator=GENERATOR) for n in (1, 40))
POOL = torch.randn(6, 4, 16, 16, generator=GENERATOR)


def both(function: Any, *given: Tensor, **options: Any) -> list[tuple[Tensor, Tensor]]:
    """Output and log-sum-exp, checked and not."""
    named = {"backend": "triton", "return_lse": True} | options
    return [function(*given, check=check, **named) for check in (True, False)]


def same(found: tuple[Tensor, ...], wanted: tuple[Tensor, ...]) -> None:
    """The same bits."""
    for one, other in zip(found, wanted, strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("backend", ["triton", "tiled"])
@pytest.mark.parametrize("name", OPTIONS)
def test_right_numbers_give_the_same(name: str, backend: str) -> None:
    same(*both(attention, Q, K, V, backend=backend, **OPTIONS[name]))


@pytest.mark.parametrize("name", ["mask", "by batch", "no sink"])
def test_a_number_that_is_wrong_is_refused_only_where_somebody_looks(name: str) -> None:
    ((option, given),) = OPTIONS[name].items()
    wrong = given.clone()
    wrong.view(-1)[0] = torch.nan
    with pytest.raises(ValueError, match=option):
        attention(Q, K, V, backend="triton", **{option: wrong})
    out = attention(Q, K, V, check=False, backend="triton", **{option: wrong})
    # Of head 0 of sequence 0 alone, but for a mask that all share.
    assert out[0, 0, 0].isnan().all()
    assert name == "mask" or out[1, 1:].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_lengths_beyond_the_cache_are_those_of_the_cache(dtype: torch.dtype) -> None:
    lens = torch.tensor([17, 40, 0], dtype=dtype)
    same(*both(attention_decode, ONE, CACHE, CACHE, kv_lens=lens))
    most = torch.iinfo(dtype).max
    wrong = torch.tensor([17, most, -most], dtype=dtype)
    _, found = both(attention_decode, ONE, CACHE, CACHE, kv_lens=lens)
    named: dict[str, Any] = {"backend": "triton", "return_lse": True}
    same(attention_decode(ONE, CACHE, CACHE, kv_lens=wrong, check=False, **named), found)
    with pytest.raises(ValueError, match=f"kv_lens must be from 0 to the capacity, 40, not {most}"):
        attention_decode(ONE, CACHE, CACHE, kv_lens=wrong, **named)
    # Backends without kernels look in any case.
    with pytest.raises(ValueError, match="kv_lens"):
        attention_decode(ONE, CACHE, CACHE, kv_lens=wrong, check=False, backend="tiled")


@pytest.mark.parametrize("page", [6, -1, 2**40])
def test_a_page_that_is_not_in_the_pool_gives_nan_to_its_sequence(page: int) -> None:
    table = torch.tensor([[0, 1, 2], [3, 4, 5], [1, 3, 5]])
    lens = torch.tensor([40, 33, 48])
    right, again = both(attention_decode, ONE, POOL, POOL, kv_lens=lens, page_table=table)
    same(right, again)
    table[1, 1] = page
    out, lse = attention_decode(
        ONE, POOL, POOL, kv_lens=lens, page_table=table, check=False, return_lse=True,
        backend="triton",
    )  # fmt: skip
    assert out[1].isnan().all()
    same((out[::2], lse[::2]), (right[0][::2], right[1][::2]))


@pytest.mark.parametrize("causal", [False, True])
def test_packed_sequences_give_the_same(causal: bool) -> None:
    for more in ({}, {"max_q_len": 7, "max_kv_len": 7}, {"max_q_len": 99, "max_kv_len": 99}):
        named = {"is_causal": causal, "causal_alignment": "bottom-right", **more}
        same(*both(attention_varlen, *PACKED, SUMS, SUMS, **named))


@pytest.mark.parametrize("number", [1, 3])
def test_so_do_their_gradients(number: int) -> None:
    slopes = torch.rand(number, 4, generator=GENERATOR).squeeze(0)
    found = []
    for check in (True, False):
        given = [x.clone().requires_grad_() for x in (*PACKED, slopes)]
        out = attention_varlen(
            *given[:3], SUMS, SUMS, alibi_slopes=given[3], check=check, backend="triton"
        )
        found.append(torch.autograd.grad(out.sum(), given))
    same(*found)
    by_slices = [x.clone().requires_grad_() for x in (*PACKED, slopes)]
    out = attention_varlen(*by_slices[:3], SUMS, SUMS, alibi_slopes=by_slices[3], backend="tiled")
    for one, other in zip(found[0], torch.autograd.grad(out.sum(), by_slices), strict=True):
        torch.testing.assert_close(one, other)


def test_wrong_prefix_sums_read_nothing_outside() -> None:
    wrong = torch.tensor([-5, 2, 2, 70])
    # Rows behind the packed ones, which nobody may read or write.
    rows = [torch.cat((x, torch.full_like(x, torch.nan)))[:9] for x in PACKED]
    out, lse = attention_varlen(*rows, wrong, wrong, check=False, return_lse=True, backend="triton")
    same((out, lse), both(attention_varlen, *PACKED, SUMS, SUMS)[0])
    with pytest.raises(ValueError, match="cu_seqlens_q must rise from 0"):
        attention_varlen(*rows, wrong, wrong, backend="triton")


def test_queries_beyond_the_bound_are_of_no_sequence() -> None:
    rows = [torch.randn(300, 1, 16, generator=GENERATOR) for _ in range(3)]
    sums = torch.tensor([0, 9, 300])
    named: dict[str, Any] = {"check": False, "return_lse": True, "backend": "triton"}
    out, lse = attention_varlen(*rows, sums, sums, max_q_len=9, **named)
    whole, _ = attention_varlen(*rows, sums, sums, **named)
    # A tile that has queries below the bound has others too.
    gone = (lse == -torch.inf).all(0)
    assert 0 < int(gone.sum()) < 291
    assert torch.equal(out[gone], torch.zeros_like(out[gone]))
    assert torch.equal(out[~gone], whole[~gone])
    for name in ("max_q_len", "max_kv_len"):
        with pytest.raises(ValueError, match=f"{name} must be at least the longest sequence, 7"):
            attention_varlen(*PACKED, SUMS, SUMS, **{name: 6})
        with pytest.raises(ValueError, match=f"{name} must be at least 0, not -1"):
            attention_varlen(*PACKED, SUMS, SUMS, **{name: -1})
        with pytest.raises(TypeError, match=f"{name} must be a whole number or None, not 2.5"):
            attention_varlen(*PACKED, SUMS, SUMS, **{name: 2.5})


def test_check_is_true_false_or_none() -> None:
    for call in (
        lambda: attention(Q, K, V, check="yes"),
        lambda: attention_decode(ONE, CACHE, CACHE, check="yes"),
        lambda: attention_varlen(*PACKED, SUMS, SUMS, check="yes"),
    ):
        with pytest.raises(TypeError, match="check must be True or False, not 'yes'"):
            call()


class Operators(TorchDispatchMode):
    """Whether the operators that are called are to look at numbers, by their names."""

    def __init__(self) -> None:
        super().__init__()
        self.check: dict[str, bool] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "pyimpl":
            names = [argument.name for argument in func._schema.arguments]
            self.check[func._opname] = args[names.index("check")]
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("device", "looks"), [("cpu", True), ("cuda", False)])
@pytest.mark.parametrize("check", [None, True, False])
def test_unasked_only_a_cpu_s_numbers_are_looked_at(
    device: str, looks: bool, check: bool | None
) -> None:
    """A fake tensor raises where a number of it is asked for, so nothing before the operators asks
    either."""
    with FakeTensorMode(), Operators() as operators:
        rows = torch.empty(2, 4, 9, 16, device=device)
        packed = torch.empty(9, 4, 16, device=device)
        per_head, mask = torch.empty(4, device=device), torch.empty(9, 9, device=device)
        lens, sums = (torch.empty(n, dtype=torch.int32, device=device) for n in (2, 4))
        table = torch.empty(2, 3, dtype=torch.int32, device=device)
        named: dict[str, Any] = {"sinks": per_head, "alibi_slopes": per_head, "check": check}
        attention(rows, rows, rows, attn_mask=mask, **named)
        attention_varlen(packed, packed, packed, sums, sums, **named)
        attention_decode(rows, rows, rows, kv_lens=lens, page_table=table, **named)
    assert set(operators.check) == {"attention", "attention_varlen", "attention_decode"}
    assert set(operators.check.values()) == {looks if check is None else check}
