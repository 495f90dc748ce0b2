"""Dropout: the generator, which weights are kept, and that every backend keeps the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.utils.checkpoint
from attention_checks import (
    inputs,
    judge,
    judge_options,
    kernel_rounding,
    score_options,
    tiled_rounding,
)
from backward_checks import judge_gradients, public_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from option_cases import options_of
from spec_by_hand import philox
from torch import Tensor

from pyimpl import attention, attention_varlen
from pyimpl.internal.dropout import Dropout, philox4x32, seed_of

BACKENDS = ["triton", "tiled", "reference"]
SEED = 0x1234567890ABCDEF


# Random123's file `kat_vectors`, its lines for philox4x32 with 10 rounds: counter, key, answer.
KNOWN = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000",
     "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff",
     "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0",
     "d16cfe09 94fdcceb 5001e420 24126ea1"),
]  # fmt: skip


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_known_answers(counter: str, key: str, answer: str) -> None:
    numbers = [[int(word, 16) for word in words.split()] for words in (counter, key, answer)]
    c, k = (tuple(torch.tensor(n) for n in words) for words in numbers[:2])
    assert [int(word) for word in philox4x32(c, k)] == numbers[2]
    assert philox(*numbers[:2]) == numbers[2]


def dropout(p: float, seed: int = SEED) -> Dropout:
    return Dropout(p, torch.tensor(seed))


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**63 - 1), p=st.floats(0.0, 1.0, exclude_min=True),
    row=st.integers(0, 2**29), column=st.integers(0, 2**29), columns=st.integers(0, 11),
)  # fmt: skip
def test_kept_by_hand(seed: int, p: float, row: int, column: int, columns: int) -> None:
    """With packed sequences' first rows too, whose columns begin inside of a call."""
    one = dropout(p, seed)
    found = one.kept_weights(2, 3, range(row, row + 2), range(column, column + columns))
    packed = one.from_row(row, column).kept_weights(2, 3, range(2), range(columns))
    part = one.from_head(3, 1, 1)
    some = part.kept_weights(1, 2, range(row, row + 2), range(column, column + columns))
    assert torch.equal(found, packed)
    assert torch.equal(found[1:, 1:], some)
    key = [seed % 2**32, seed // 2**32]
    for (b, h, i, j), kept in zip(
        torch.cartesian_prod(*map(torch.arange, found.shape)).tolist(), found.flatten(), strict=True
    ):
        word = philox([(column + j) // 4, row + i, 3 * b + h, 0], key)[(column + j) % 4]
        assert bool(kept) == (word < one.threshold)


@pytest.mark.parametrize(
    ("p", "threshold"),
    [
        (2.0**-32, 2**32 - 1), (0.5, 2**31), (1 - 2.0**-32, 1), (1.0, 0), (2.0**-33, 2**32),
        (3 * 2.0**-33, 2**32 - 2), (1 - 2.0**-33, 0), (1e-300, 2**32),
    ],
)  # fmt: skip
def test_thresholds(p: float, threshold: int) -> None:
    """The nearest whole number to (1 − p) · 2³², of two the even one."""
    assert dropout(p).threshold == threshold


@pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.9])
def test_the_share_that_is_kept(p: float) -> None:
    """By Hoeffding's inequality the share of n independent weights misses 1 − p by more than
    √(ln(2 / f) / 2n) with probability at most f; here f = 10⁻¹², for each of 24 shares: of all
    weights, of those in columns of one remainder by 4, and of pairs of neighbours (of which every
    other one is taken: they are independent) that are kept together."""
    kept = dropout(p).kept_weights(2, 2, range(256), range(256))
    shares = [(kept, 1 - p)]
    shares += [(kept[..., n::4], 1 - p) for n in range(4)]
    for dim in range(4):
        pairs = kept.unflatten(dim, (-1, 2)).movedim(dim + 1, 0)
        shares.append((pairs[0] & pairs[1], (1 - p) ** 2))
    for some, expected in shares:
        bound = math.sqrt(math.log(2 / 1e-12) / (2 * some.numel()))
        assert abs(float(some.double().mean()) - expected) <= bound
    assert not torch.equal(kept, dropout(p, SEED + 1).kept_weights(2, 2, range(256), range(256)))
    assert not torch.equal(
        kept, dropout(p, SEED ^ 1 << 40).kept_weights(2, 2, range(256), range(256))
    )


def test_numbers_of_vectors_are_kept_as_weights_of_one_head() -> None:
    places = torch.tensor([7, 0, 12])
    one = dropout(0.4)
    expected = one.kept_weights(2, 1, range(13), range(10))[:, 0, places]
    assert torch.equal(one.kept_numbers(2, places, 10), expected)


def test_seeds_of_sites_by_hand() -> None:
    seed = torch.tensor(SEED)
    for number in (0, 1, 5):
        low, high, _, _ = philox([number, 0, 0, 1], [SEED & 0xFFFFFFFF, SEED >> 32])
        assert int(seed_of(seed, number)) == (low | high << 32) & (2**63 - 1)


def test_every_backend_keeps_the_same() -> None:
    """Of equal scores each weight is 1 / kv_len, and of the identity as values the output."""
    query, value = torch.zeros(2, 3, 18, 8), torch.eye(35).expand(2, 3, 35, 35)
    expected = dropout(0.3).kept_weights(2, 3, range(18), range(35))
    for backend in BACKENDS:
        out = attention(
            query, value.new_zeros(2, 3, 35, 8), value, dropout_p=0.3, dropout_seed=SEED,
            backend=backend,
        )  # fmt: skip
        assert torch.equal(out != 0, expected)
        torch.testing.assert_close(out, expected / (35 * 0.7))


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_within_the_tolerance(dtype: torch.dtype, backend: str) -> None:
    query, key, value, mask = inputs((2, 2, 20, 37, 8, 8), dtype, masked=True, group=2)
    sinks = torch.linspace(-1.0, 1.0, 4)
    result = attention(
        query, key, value, attn_mask=mask, is_causal=True, causal_alignment="bottom-right",
        sinks=sinks, enable_gqa=True, return_lse=True, dropout_p=0.25, dropout_seed=SEED,
        backend=backend,
    )  # fmt: skip
    rounding = kernel_rounding(dtype) if backend == "triton" else tiled_rounding(dtype)
    judge(
        result, query, key, value, rounding=rounding, mask=mask, is_causal=True, shift=17,
        sinks=sinks, dropout=dropout(0.25),
    )  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
def test_gradients(backend: str) -> None:
    """By the operators and autograd, of the formula with the matrix of weights in float64."""
    dtype = torch.float32 if backend == "triton" else torch.float64
    query, key, value, _ = inputs((1, 2, 18, 21, 8, 8), dtype, group=2)
    options = options_of("dropout and everything", query, key)
    grad_out, grad_lse = torch.randn(1, 4, 18, 8).to(dtype), torch.randn(1, 4, 18).to(dtype)
    found = public_gradients(query, key, value, options, grad_out, grad_lse, backend)
    judge_gradients(found, query, key, value, options, grad_out, grad_lse, computed=dtype)


def run(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> tuple[Tensor, ...]:
    """Output, log-sum-exp and the gradients."""
    leaves = [x.detach().requires_grad_() for x in (query, key, value)]
    out, lse = attention(*leaves, return_lse=True, **options)
    return out, lse, *torch.autograd.grad(out.cos().sum(), leaves)


@pytest.mark.parametrize("backend", BACKENDS)
def test_without_and_with_nothing_left(backend: str) -> None:
    query, key, value, _ = inputs((1, 2, 5, 7, 8, 6), torch.float32)
    expected = run(query, key, value, backend=backend)
    state = torch.get_rng_state()
    for seed in (None, 3):
        found = run(query, key, value, dropout_p=0.0, dropout_seed=seed, backend=backend)
        assert all(torch.equal(x, y) for x, y in zip(found, expected, strict=True))
    assert torch.equal(torch.get_rng_state(), state)
    for p in (1.0, 1.0 - 2.0**-53):
        out, lse, *gradients = run(query, key, value, dropout_p=p, backend=backend)
        assert torch.equal(lse, expected[1])
        assert not any(bool(x.any()) for x in (out, *gradients))


@pytest.mark.parametrize("backend", BACKENDS)
def test_packed_sequences(backend: str) -> None:
    """Packed sequences are one problem with a mask: the weights that are kept are those of the
    packed rows. The sequences of keys begin at every remainder by 4, and are longer than a tile."""
    sums_q, sums_k = torch.tensor([0, 5, 5, 23, 25]), torch.tensor([0, 39, 41, 82, 84])
    sequence = [torch.arange(4).repeat_interleave(sums.diff()) for sums in (sums_q, sums_k)]
    dtype = torch.float32 if backend == "triton" else torch.float64
    generator = torch.Generator().manual_seed(0)
    shapes = ((25, 4, 16), (84, 2, 16), (84, 2, 8))
    leaves = [torch.randn(s, generator=generator, dtype=dtype).requires_grad_() for s in shapes]
    outs = attention_varlen(
        *leaves, sums_q, sums_k, enable_gqa=True, return_lse=True, dropout_p=0.4,
        dropout_seed=SEED, backend=backend,
    )  # fmt: skip
    grads = [torch.randn(x.shape, generator=generator, dtype=dtype) for x in outs]
    found = [by_head(g) for g in torch.autograd.grad(outs, leaves, grads)]

    query, key, value = (by_head(x.detach()) for x in leaves)
    mask = sequence[0][:, None] == sequence[1]
    options = score_options(query, mask=mask, dropout=dropout(0.4))
    rounding = kernel_rounding(dtype) if backend == "triton" else tiled_rounding(dtype)
    result = by_head(outs[0].detach()), outs[1].detach()[None]
    judge_options(result, query, key, value, options, rounding)
    named = dict(zip(("query", "key", "value"), found, strict=True))
    given = (query, key, value, options, by_head(grads[0]), grads[1][None])
    judge_gradients(named, *given, computed=dtype)


def by_head(packed: Tensor) -> Tensor:
    """`[tokens, heads, dim]` as one sequence `[1, heads, tokens, dim]`."""
    return packed.transpose(0, 1)[None]


@pytest.mark.parametrize("backend", ["tiled", "triton"])
def test_seeds_are_drawn_from_torch(backend: str) -> None:
    """Eager and compiled; a number and a tensor are one seed."""
    query, key, value, _ = inputs((1, 2, 5, 7, 8, 6), torch.float32)

    def once(seed: int | Tensor | None = None) -> Tensor:
        return attention(query, key, value, dropout_p=0.5, dropout_seed=seed, backend=backend)

    def run_seeded(function: Callable[[], Tensor]) -> list[Tensor]:
        torch.manual_seed(7)
        return [function() for _ in range(2)]

    torch.compiler.reset()
    compiled = torch.compile(once, fullgraph=True, backend="aot_eager")
    first, second = run_seeded(once)
    assert not torch.equal(first, second)
    for again in (run_seeded(once), run_seeded(compiled)):
        assert torch.equal(first, again[0])
        assert torch.equal(second, again[1])
    for function in (once, compiled):
        assert torch.equal(function(SEED), function(torch.tensor(SEED)))


def test_the_backward_pass_of_a_drawn_seed_replays_it() -> None:
    """The gradient of a sum is linear in the output, so ⟨dV, V⟩ is the sum itself."""
    query, key, value, _ = inputs((1, 2, 30, 40, 8, 6), torch.float64)
    value.requires_grad_()
    for function in (attention, torch.compile(attention, fullgraph=True, backend="aot_eager")):
        out = function(query, key, value, dropout_p=0.5)
        (gradient,) = torch.autograd.grad(out.sum(), value)
        torch.testing.assert_close((gradient * value).sum(), out.sum())


def test_checkpointing_draws_the_same_again() -> None:
    leaves = [x.requires_grad_() for x in inputs((1, 2, 5, 7, 8, 6), torch.float64)[:3]]
    found = []
    for again in (False, True):
        torch.manual_seed(7)
        out = attention(*leaves, dropout_p=0.5)
        if again:
            torch.manual_seed(7)
            out = torch.utils.checkpoint.checkpoint(
                lambda *x: attention(*x, dropout_p=0.5), *leaves, use_reentrant=False
            )
        found.append([out, *torch.autograd.grad(out.cos().sum(), leaves)])
    assert all(torch.equal(x, y) for x, y in zip(*found, strict=True))


def test_under_autocast() -> None:
    query, key, value, _ = inputs((1, 2, 5, 7, 8, 6), torch.float32)
    options = {"dropout_p": 0.5, "dropout_seed": SEED}
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = attention(query, key, value, **options)
    expected = attention(query.bfloat16(), key.bfloat16(), value.bfloat16(), **options)
    assert torch.equal(found, expected)


REFUSALS = [
    ({"dropout_p": 1.5}, ValueError, "dropout_p must be from 0 to 1, not 1.5"),
    ({"dropout_p": -0.1}, ValueError, "dropout_p must be from 0 to 1, not -0.1"),
    ({"dropout_p": math.nan}, ValueError, "dropout_p must be from 0 to 1, not nan"),
    ({"dropout_p": 10**400}, ValueError, "dropout_p must be from 0 to 1, not 1000"),
    ({"dropout_p": -(10**400)}, ValueError, "dropout_p must be from 0 to 1, not -1000"),
    ({"dropout_p": None}, TypeError, "dropout_p must be a number, not None"),
    ({"dropout_p": True}, TypeError, "dropout_p must be a number, not True"),
    ({"dropout_seed": 0.5}, TypeError, "dropout_seed must be a whole number, a .* not 0.5"),
    ({"dropout_seed": -1}, ValueError, "dropout_seed must be at least 0 and below 2⁶³, not -1"),
    ({"dropout_seed": 2**63}, ValueError, "dropout_seed must be at least 0 and below 2⁶³, not 9"),
    (
        {"dropout_seed": torch.ones(2)},
        ValueError,
        r"dropout_seed must be a number or an int64 tensor of no .* not torch.float32 of .* \[2\]",
    ),
    (
        {"dropout_seed": torch.zeros((), dtype=torch.int64, device="meta")},
        ValueError,
        "dropout_seed must be on the device of query, cpu, not on meta",
    ),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(change: dict[str, Any], error: type[Exception], message: str) -> None:
    rows, sums = torch.zeros(3, 2, 4), torch.tensor([0, 3])
    for call in (
        lambda **options: attention(*[torch.zeros(1, 2, 3, 4)] * 3, **options),
        lambda **options: attention_varlen(rows, rows, rows, sums, sums, **options),
    ):
        with pytest.raises(error, match=message) as caught:
            call(**change)
        assert "\n" not in str(caught.value)
