"""The Triton kernels of the backward pass, interpreted, against the gradients of the float64
formula."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from attention_checks import inputs, inside_buffer, score_options
from backward_checks import judge_gradients
from hypothesis import given, settings
from hypothesis import strategies as st
from option_cases import OPTIONS, options_of
from torch import Tensor

from pyimpl import attention
from pyimpl.backends import reference
from pyimpl.backends.kernels.backward import backward
from pyimpl.backends.kernels.parts import tuning
from pyimpl.internal.gradients import Gradients, Wanted
from pyimpl.internal.scores import ScoreOptions

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
EVERYTHING = Wanted(slopes=True, bias=True, sinks=True)


def run(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    grad_out: Tensor,
    grad_lse: Tensor | None = None,
    atomics: bool = False,
    **blocks: int,
) -> Gradients:
    """The gradients, from the outputs of the reference in the dtypes of the forward kernel."""
    out, lse = reference.attention(query, key, value, options)
    return backward(
        query, key, value, out.to(query.dtype), lse.float(), grad_out, grad_lse, options,
        EVERYTHING._replace(slopes=not atomics), blocks={"block_m": 16, "block_n": 16} | blocks,
        atomics=atomics,
    )  # fmt: skip


def normal(like: Tensor, *size: int, seed: int = 1, dtype: torch.dtype | None = None) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(size, generator=generator).to(like.dtype if dtype is None else dtype)


def judge_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    options: ScoreOptions,
    seed: int = 1,
    **changes: int,
) -> None:
    grad_out = normal(query, *query.shape[:3], value.shape[3], seed=seed)
    grad_lse = normal(query, *query.shape[:3], seed=seed + 1, dtype=torch.float32)
    found = run(query, key, value, options, grad_out, grad_lse, **changes)
    named = found.round_to_inputs(query, key, value, options)._asdict()
    named["alibi_slopes"] = named.pop("slopes")
    named = {name: x for name, x in named.items() if x is not None}
    judge_gradients(
        named, query, key, value, options, grad_out, grad_lse,
        computed=torch.float32, weights=query.dtype,
    )  # fmt: skip


@pytest.mark.sampled(4)
@pytest.mark.parametrize("atomics", [False, True])
@pytest.mark.parametrize("name", OPTIONS)
def test_every_option(name: str, atomics: bool) -> None:
    query, key, value, _ = inputs((2, 1, 21, 37, 20, 12), torch.float32, group=2)
    judge_kernel(query, key, value, options_of(name, query, key), atomics=atomics)


@settings(max_examples=15, deadline=None)
@given(
    shape=st.tuples(*[st.integers(1, 2)] * 2, *[st.integers(0, 40)] * 2, *[st.integers(1, 40)] * 2),
    group=st.integers(1, 2),
    dtype=st.sampled_from(DTYPES),
    name=st.sampled_from(sorted(OPTIONS)),
    block_m=st.sampled_from([16, 32]),
    block_n=st.sampled_from([16, 32]),
    atomics=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_any_shape(
    shape, group, dtype, name: str, block_m: int, block_n: int, atomics: bool, seed: int
) -> None:
    query, key, value, _ = inputs(shape, dtype, seed=seed, group=group)
    options = options_of(name, query, key, seed)
    judge_kernel(query, key, value, options, block_m=block_m, block_n=block_n, atomics=atomics)


@pytest.mark.parametrize("atomics", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_keys_and_queries_that_see_nothing_may_hold_anything(masked: bool, atomics: bool) -> None:
    """The last keys, which no query sees, and the last queries, which see no key."""
    query, key, value, _ = inputs((1, 1, 30, 40, 16, 16), torch.float32)
    options = score_options(query, left=9, right=0, shift=12)
    hidden = torch.zeros(40, dtype=torch.bool)
    hidden[:3] = True
    if masked:
        hidden[20:25] = True
        options = replace(options, mask=~hidden[None].expand(30, 40))
    grad_out = normal(query, 1, 1, 30, 16)
    clean = run(query, key, value, options, grad_out, atomics=atomics)
    key, value = (x.masked_fill(hidden[:, None], math.nan) for x in (key, value))
    outputs = reference.attention(query, key.nan_to_num(), value.nan_to_num(), options)
    found = backward(
        query, key, value, *(x.float() for x in outputs), grad_out, None, options, Wanted(),
        blocks={"block_m": 16, "block_n": 16}, atomics=atomics,
    )  # fmt: skip
    for one, other in zip(found[:3], clean[:3], strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("atomics", [False, True])
def test_padding_keys_outweigh_no_key(atomics: bool) -> None:
    """Where all scores are far below 0, that of a padding key, 0, would have an infinite weight."""
    query, key, value, _ = inputs((1, 1, 32, 20, 16, 16), torch.float32)
    query, key = 30 + query, -30 + key
    judge_kernel(query, key, value, score_options(query), atomics=atomics)


@pytest.mark.parametrize(("head_dim", "value_dim"), [(1, 256), (256, 16), (80, 96)])
def test_head_sizes(head_dim: int, value_dim: int) -> None:
    query, key, value, _ = inputs((1, 1, 17, 18, head_dim, value_dim), torch.bfloat16)
    judge_kernel(query, key, value, score_options(query, is_causal=True))


@pytest.mark.parametrize("fill", [math.nan, math.inf])
def test_any_strides_and_nothing_beside(fill: float) -> None:
    """Of tensors in the middle of others, the others are neither read nor written."""
    query, key, value, mask = inputs((1, 2, 18, 20, 17, 9), torch.float32, masked=True)
    options = score_options(query, mask=mask, right=3)
    grad_out = normal(query, 1, 2, 18, 9)
    expected = run(query, key, value, options, grad_out)
    others = (inside_buffer(x, fill)[0] for x in (query, key, value))
    found = run(*others, options, inside_buffer(grad_out, fill)[0])
    expanded = run(query, key, value, options, torch.ones(1, 1, 1, 1).expand(1, 2, 18, 9))
    for one, other in zip(found[:3], expected[:3], strict=True):
        assert torch.equal(one, other)
    for one in expanded[:3]:
        assert bool(one.isfinite().all())


def test_the_same_bits_again_and_whatever_the_tiles_skip() -> None:
    """The order of sums is fixed; a window gives the same as the mask of its pairs."""
    query, key, value, _ = inputs((1, 1, 40, 50, 16, 16), torch.float32, group=2)
    options = score_options(query, left=12, right=7, shift=4)
    grad_out = normal(query, 1, 2, 40, 16)
    first, second = (run(query, key, value, options, grad_out) for _ in range(2))
    visible = reference.window(options, 40, 50, query.device)
    masked = replace(options, left=None, right=None, mask=visible)
    third = run(query, key, value, masked, grad_out)
    for one, again in zip(first[:3], second[:3], strict=True):
        assert torch.equal(one, again)
    names = ("query", "key", "value")
    for found, meant in ((first, options), (third, masked)):
        named = dict(zip(names, found[:3], strict=True))
        judge_gradients(named, query, key, value, meant, grad_out, computed=torch.float32)


def test_what_the_kernels_do_not_take_is_refused() -> None:
    query, key, value, _ = inputs((1, 1, 4, 4, 8, 8), torch.float32)
    options = score_options(query)
    grad_out = normal(query, 1, 1, 4, 8)
    for change, message in (
        ({"grad_out": grad_out[..., :4]}, r"grad_out must be torch.float32 \[1, 1, 4, 8\]"),
        ({"grad_out": grad_out.half()}, "grad_out must be torch.float32"),
        ({"key": key[:, :, :3]}, "key must be"),
        ({"block_m": 8}, "block_m must be a power of two, at least 16, not 8"),
    ):
        given = {"query": query, "key": key, "value": value, "grad_out": grad_out} | change
        if "key" in change:
            out, lse = reference.attention(query, key, value, options)
            with pytest.raises(ValueError, match=message):
                backward(
                    query, given["key"], value, out.float(), lse.float(), grad_out, None, options,
                    EVERYTHING,
                )  # fmt: skip
        else:
            with pytest.raises(ValueError, match=message):
                run(options=options, **given)


def test_atomics_and_slopes_are_refused() -> None:
    query, key, value, _ = inputs((1, 2, 4, 4, 8, 8), torch.float32)
    options = score_options(query, alibi_slopes=torch.ones(1, 2))
    out, lse = reference.attention(query, key, value, options)
    with pytest.raises(ValueError, match="atomics must be False where the gradient of alibi"):
        backward(
            query, key, value, out.float(), lse.float(), query, None, options, EVERYTHING,
            atomics=True,
        )  # fmt: skip


@pytest.mark.parametrize("deterministic", [False, True])
def test_measuring_may_choose_atomics(deterministic: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless PyTorch is told to be deterministic; sums that measuring added to are cleared."""
    query, key, value, _ = inputs((1, 1, 20, 20, 16, 16), torch.float32)
    options = score_options(query, is_causal=True)
    grad_out = normal(query, 1, 1, 20, 16)
    asked: list[list[str]] = []

    def fastest(make, default, device):
        launch = make({"block_m": 16, "block_n": 16, "num_warps": 4, "num_stages": 1})
        launch.run(device)
        return launch

    def fastest_way(ways, launch, device) -> str:
        asked.append(list(ways))
        return "atomics"

    monkeypatch.setattr(tuning, "is_wanted", lambda device: True)
    monkeypatch.setattr(tuning, "fastest", fastest)
    monkeypatch.setattr(tuning, "fastest_way", fastest_way)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: deterministic)
    out, lse = reference.attention(query, key, value, options)
    found = backward(query, key, value, out.float(), lse.float(), grad_out, None, options, Wanted())
    assert asked == ([] if deterministic else [["two loops", "atomics"]])
    named = dict(zip(("query", "key", "value"), found[:3], strict=True))
    judge_gradients(named, query, key, value, options, grad_out, computed=torch.float32)


def test_the_public_function_uses_the_kernels() -> None:
    query, key, value, _ = inputs((1, 1, 5, 6, 8, 8), torch.float32)
    options = score_options(query, right=0)
    found = []
    for backend in ("triton", "reference"):
        leaves = [x.clone().requires_grad_() for x in (query, key, value)]
        out = attention(*leaves, is_causal=True, scale=options.scale, backend=backend)
        gradients = torch.autograd.grad(out.square().sum(), leaves)
        named = dict(zip(("query", "key", "value"), gradients, strict=True))
        by = 2 * out.detach()
        judge_gradients(named, query, key, value, options, by, computed=torch.float32)
        found.append(gradients)
    assert not any(torch.equal(*pair) for pair in zip(*found, strict=True))
