"""Dropout in the compiled kernels on a GPU. Run alone: `python -m pytest tests/gpu`.

Skipped where `gpu_device` says.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from attention_checks import NAMES, judge_options, score_options
from backward_checks import judge_gradients, public_gradients
from gpu_device import DEVICE, length, skip_elsewhere

from bridge.conformance.tolerances.rounding_model import RoundingModel
from pyimpl import Part, attention, attention_varlen
from pyimpl.internal.dropout import Dropout
from pyimpl.internal.scores import ScoreOptions

skip_elsewhere()

SEED = 0x1234567890ABCDEF
DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# Lengths in all but the first test.
Q_LEN, KV_LEN = length(130), length(150)


def dropout(p: float = 0.3, device: str = "cpu") -> Dropout:
    return Dropout(p, torch.tensor(SEED, device=device))


def judge_on_cpu(
    outputs: list[torch.Tensor],
    gradients: dict[str, torch.Tensor],
    given: list[torch.Tensor],
    options: ScoreOptions,
    grad_out: torch.Tensor,
) -> None:
    """On the CPU: within the tolerance of a kernel whose matrix unit truncates. `options` are those
    of the CPU."""
    out, lse, *inputs = (x.detach().cpu() for x in (*outputs, *given))
    dtype = inputs[0].dtype
    rounding = RoundingModel.flash(NAMES[dtype], denominator="unrounded", truncating=True)
    judge_options((out, lse), *inputs, options, rounding)
    judge_gradients(
        {name: x.cpu() for name, x in gradients.items()}, *inputs, options, grad_out.cpu(),
        computed=torch.float32, weights=dtype, truncating=True,
    )  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_the_kernels_keep_what_the_cpu_keeps(p: float, dtype: torch.dtype) -> None:
    """Of equal scores each weight is 1 / kv_len, and of the identity as values the output."""
    query = torch.zeros(2, 3, 300, 64, device=DEVICE, dtype=dtype)
    value = torch.eye(200, device=DEVICE, dtype=dtype).expand(2, 3, 200, 200)
    key = torch.zeros(2, 3, 200, 64, device=DEVICE, dtype=dtype)
    out = attention(query, key, value, dropout_p=p, dropout_seed=SEED, backend="triton")
    expected = Dropout(p, torch.tensor(SEED)).kept_weights(2, 3, range(300), range(200))
    assert torch.equal((out != 0).cpu(), expected)


@pytest.mark.parametrize("first_key", [0, 1, 2, 3])
def test_the_kernels_keep_in_a_part_what_the_whole_keeps(first_key: int) -> None:
    query = torch.zeros(2, 3, 100, 64, device=DEVICE)
    key = torch.zeros(2, 3, 90, 64, device=DEVICE)
    value = torch.eye(90, device=DEVICE).expand(2, 3, 90, 90)
    part = Part((4, 5, 300, 200), 1, 2, 150, first_key)
    out = attention(
        query, key, value, dropout_p=0.3, dropout_seed=SEED, part=part, backend="triton"
    )
    columns = range(first_key, first_key + 90)
    expected = dropout().kept_weights(4, 5, range(150, 250), columns)[1:3, 2:5]
    assert torch.equal((out != 0).cpu(), expected)


@pytest.mark.parametrize("head_dim", [18, 64, 128, 256])
@pytest.mark.parametrize("changed", ["nothing", "causal", "bias", "mask"])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_outputs_and_gradients(dtype: torch.dtype, changed: str, head_dim: int) -> None:
    generator = torch.Generator().manual_seed(0)

    def normal(*size: int, kind: torch.dtype = dtype) -> torch.Tensor:
        return torch.randn(*size, generator=generator).to(kind)

    query, grad_out = (normal(2, 4, Q_LEN, head_dim) for _ in range(2))
    key, value = (normal(2, 2, KV_LEN, head_dim) for _ in range(2))
    options = score_options(query, is_causal=changed == "causal", dropout=dropout())
    if changed == "bias":
        options = replace(options, bias=normal(4, 1, KV_LEN, kind=torch.float32))
    if changed == "mask":
        options = replace(options, mask=torch.rand(4, 1, KV_LEN, generator=generator) < 0.7)
    pairs = {"bias": options.bias, "mask": options.mask}
    there = replace(
        options,
        dropout=dropout(device=DEVICE),
        **{name: None if x is None else x.to(DEVICE) for name, x in pairs.items()},
    )
    given = [x.to(DEVICE) for x in (query, key, value)]
    outputs = torch.ops.pyimpl.attention(*given, "triton", *there.flat())
    gradients = public_gradients(*given, there, grad_out.to(DEVICE), None, "triton")
    judge_on_cpu(outputs, gradients, given, options, grad_out)


def test_packed_sequences() -> None:
    """As one sequence with a mask; the sequences of keys begin at every remainder by 4."""
    lens = [[length(n) for n in (100, 0, 157, 40)], [131, 66, 97, 6]]
    sums = [torch.tensor([0, *n], device=DEVICE).cumsum(0) for n in lens]
    generator = torch.Generator(device=DEVICE).manual_seed(0)
    q_len, kv_len = (sum(n) for n in lens)
    query, key, value, grad_out = (
        torch.randn(n, heads, 64, generator=generator, device=DEVICE)
        for n, heads in ((q_len, 4), (kv_len, 2), (kv_len, 2), (q_len, 4))
    )
    leaves = [x.requires_grad_() for x in (query, key, value)]
    out, lse = attention_varlen(
        *leaves, *sums, enable_gqa=True, dropout_p=0.3, dropout_seed=SEED, backend="triton",
        return_lse=True,
    )  # fmt: skip
    names = ("query", "key", "value")
    gradients = dict(zip(names, torch.autograd.grad(out, leaves, grad_out), strict=True))

    def by_head(x: torch.Tensor) -> torch.Tensor:
        return x.transpose(0, 1).unsqueeze(0)

    documents = (torch.arange(4).repeat_interleave(torch.tensor(n)) for n in lens)
    of_query, of_key = documents
    options = score_options(by_head(query), mask=of_query.unsqueeze(1) == of_key, dropout=dropout())
    judge_on_cpu(
        [by_head(out), lse.unsqueeze(0)],
        {name: by_head(x) for name, x in gradients.items()},
        [by_head(x) for x in leaves],
        options,
        by_head(grad_out),
    )


def test_a_seed_is_drawn_on_the_device() -> None:
    x = torch.randn(1, 2, 100, 64, device=DEVICE, dtype=torch.bfloat16)

    def run_seeded(function) -> list[torch.Tensor]:
        torch.manual_seed(7)
        return [function(x, x, x, dropout_p=0.5, backend="triton") for _ in range(2)]

    first, second = run_seeded(attention)
    assert not torch.equal(first, second)
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
    for again in (run_seeded(attention), run_seeded(compiled)):
        assert torch.equal(first, again[0])
        assert torch.equal(second, again[1])
