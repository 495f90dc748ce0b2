"""The Gluon forward kernel on a Hopper GPU. Run alone: `python -m pytest tests/gpu`.

Skipped where `gpu_device` says, and on other devices.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from backward_checks import judge_gradients, public_gradients
from gpu_device import DEVICE, needs_hopper, skip_elsewhere
from kernel_checks import judge, score_options
from torch import Tensor
from torch.nn.functional import pad

from bridge.conformance.adapters.own import PyimplTriton
from bridge.conformance.judging.run import run
from bridge.conformance.tensors.batch import Outputs
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.vectors.format.index import INDEX
from bridge.vectors.load import read_trusted
from bridge.vectors.model.attention import AttentionVector
from pyimpl import attention
from pyimpl.backends.kernels.forward import forward as triton_forward
from pyimpl.backends.kernels.hopper import choice
from pyimpl.backends.kernels.parts import kept
from pyimpl.internal.scores import ScoreOptions

skip_elsewhere()

pytestmark = needs_hopper

DTYPES = {torch.float16: "float16", torch.bfloat16: "bfloat16"}
VECTORS = Path(__file__).parents[1] / "vectors"
FAMILIES = {
    entry["family"]: VECTORS / entry["file"]
    for entry in json.loads((VECTORS / INDEX).read_text("utf-8"))["families"]
    if entry["operation"] == AttentionVector.operation
}
# Queries and keys that fill no tile, tiles that are full, fewer keys than a tile has.
LENGTHS = [(189, 300), (256, 256), (77, 5)]
MASKS: dict[str, Any] = {
    "full": {},
    "causal": {"right": 0},
    "bottom-right": {"right": 0, "shift": 111},
    "window": {"left": 70, "right": 3, "shift": 11},
    "left": {"left": 30},
    "no key for some": {"right": 0, "shift": -100},
}


def gluon(query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> Any:
    from pyimpl.backends.kernels.hopper.forward import forward

    return forward(query, key, value, options)


def normal(*size: int, dtype: torch.dtype = torch.bfloat16, seed: int = 0) -> Tensor:
    generator = torch.Generator(device=DEVICE).manual_seed(seed + sum(size))
    return torch.randn(*size, generator=generator, device=DEVICE).to(dtype)


def inputs(
    q_len: int, kv_len: int, head_dim: int, dtype: torch.dtype = torch.bfloat16
) -> tuple[Tensor, Tensor, Tensor]:
    """Of two sequences, whose two heads share one of keys and values."""
    query = normal(2, 2, q_len, head_dim, dtype=dtype)
    key, value = (normal(2, 1, kv_len, head_dim, dtype=dtype, seed=n) for n in (1, 2))
    return query, key, value


def check(found: Any, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> None:
    """Within the tolerance of a kernel whose matrix unit truncates."""
    rounding = RoundingModel.flash(DTYPES[query.dtype], denominator="unrounded", truncating=True)
    judge(found, query, key, value, options, rounding)


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("head_dim", choice.HEAD_DIMS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_against_reference(dtype: torch.dtype, head_dim: int, mask: str, lengths: Any) -> None:
    given = inputs(*lengths, head_dim, dtype)
    options = score_options(given[0], **MASKS[mask])
    found = gluon(*given, options)
    check(found, *given, options)
    for first, second in zip(gluon(*given, options), found, strict=True):
        assert torch.equal(first, second)


def test_a_launch_that_is_kept_has_the_tensors_of_its_call() -> None:
    given = inputs(189, 300, 128)
    options = score_options(given[0], is_causal=True)
    gluon(*given, options)
    others = tuple(x.flip(2).contiguous() for x in given)
    check(gluon(*others, options), *others, options)


@pytest.mark.parametrize("head_dim", choice.HEAD_DIMS)
def test_more_tiles_than_multiprocessors(head_dim: int) -> None:
    query = normal(6, 40, 600, head_dim)
    key, value = (normal(6, 10, 500, head_dim, seed=n) for n in (1, 2))
    options = score_options(query, is_causal=True)
    out, lse = gluon(query, key, value, options)
    for batch, head in ((0, 0), (0, 39), (2, 17), (5, 38)):
        rows, keys = slice(head, head + 1), slice(head // 4, head // 4 + 1)
        one = slice(batch, batch + 1)
        part = (query[one, rows], key[one, keys], value[one, keys])
        check((out[one, rows], lse[one, rows]), *part, options)
    once = [gluon(*(x[n : n + 1] for x in (query, key, value)), options)[0] for n in range(6)]
    assert torch.equal(torch.cat(once), out)


@pytest.mark.parametrize("head_dim", [64, 128])
def test_layouts(head_dim: int) -> None:
    given = inputs(150, 200, head_dim)
    options = score_options(given[0], is_causal=True)
    expected = gluon(*given, options)
    across = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in given]
    apart = [torch.cat([x, x], -1)[..., :head_dim] for x in given]
    inside = [pad(x, (0, 0, 3, 5))[:, :, 3:-5] for x in given]
    for others in (across, apart, inside):
        assert not all(x.is_contiguous() for x in others)
        for first, second in zip(gluon(*others, options), expected, strict=True):
            assert torch.equal(first, second)
    options = replace(options, scale=-options.scale)
    negated = gluon(torch._neg_view(given[0]), *given[1:], options)
    assert torch.equal(negated[0], expected[0])


def test_heads_that_are_broadcast_are_for_the_triton_kernel() -> None:
    query, key, value = inputs(150, 200, 128)
    key, value = (x.expand(-1, query.shape[1], -1, -1) for x in (key, value))
    with pytest.raises(ValueError, match="none of them 0"):
        attention(query, key, value, backend="gluon")
    assert torch.equal(attention(query, key, value), attention(query, key, value, backend="triton"))


@pytest.fixture
def in_force(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A row for each head size, as if it had been seen right; how often it is launched."""
    from pyimpl.backends.kernels.hopper import forward

    launched: list[int] = []
    launch = forward.launch
    rows = tuple(
        replace(choice.SEEN[0], head_dim=n, tritons=choice.TRITONS, causal=True,
                kernel=choice.text_of_the_kernel())
        for n in choice.HEAD_DIMS
    )  # fmt: skip
    monkeypatch.setattr(choice, "SEEN", rows)
    monkeypatch.setattr(kept, "_KEPT", {})
    monkeypatch.setattr(kept, "_DECIDED", {})
    monkeypatch.setattr(forward, "launch", lambda *x, **y: launched.append(1) or launch(*x, **y))
    return launched


@pytest.mark.parametrize("head_dim", choice.HEAD_DIMS)
def test_auto_takes_it(head_dim: int, in_force: list[int]) -> None:
    query, key, value = inputs(256, 256, head_dim)
    given = {"is_causal": True, "enable_gqa": True, "return_lse": True}
    found = attention(query, key, value, **given)
    assert in_force == [1]
    wanted = attention(query, key, value, backend="gluon", **given)
    assert all(torch.equal(x, y) for x, y in zip(found, wanted, strict=True))
    by_triton = attention(query, key, value, backend="triton", **given)
    own = triton_forward(query, key, value, score_options(query, is_causal=True))
    assert all(torch.equal(x, y) for x, y in zip(by_triton, own, strict=True))
    assert in_force == [1]


@pytest.mark.parametrize(
    ("q_len", "kv_len", "window", "taken"),
    [
        (256, 500, (None, 0), True),
        (200, 200, (None, 0), True),
        (150, 200, (None, None), True),
        (200, 500, (None, 0), False),
        (150, 200, (30, 0), False),
    ],
)
def test_what_a_hidden_key_holds_is_not_seen_under_auto(
    q_len: int, kv_len: int, window: Any, taken: bool, in_force: list[int]
) -> None:
    query, key, value = inputs(q_len, kv_len, 128)
    seen = kv_len if window[1] is None else min(kv_len, q_len)
    key[:, :, seen:] = math.nan
    value[:, :, seen:] = math.nan
    found = attention(query, key, value, window=window, enable_gqa=True, return_lse=True)
    options = score_options(query, left=window[0], right=window[1])
    check(found, query, key[:, :, :seen], value[:, :, :seen], options)
    assert bool(in_force) == taken


@pytest.mark.parametrize("head_dim", choice.HEAD_DIMS)
def test_gradients(head_dim: int) -> None:
    query, key, value = inputs(150, 200, head_dim)
    grad_out, grad_lse = normal(*query.shape, seed=3), normal(*query.shape[:3], seed=4).float()
    given = (query, key, value, score_options(query, is_causal=True), grad_out, grad_lse)
    judge_gradients(
        public_gradients(*given, "gluon"), *given,
        computed=torch.float32, weights=query.dtype, truncating=True,
    )  # fmt: skip


def test_a_call_is_captured_in_a_graph() -> None:
    query, key, value = inputs(150, 200, 128)

    def call() -> Tensor:
        return attention(query, key, value, is_causal=True, enable_gqa=True, backend="gluon")

    call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = call()
    value.copy_(value.flip(2))
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(found, call())


def test_offsets_past_32_bits() -> None:
    """The second batch element starts 2³¹ elements after the first."""
    if torch.cuda.mem_get_info()[0] < 6 * 2**30:
        pytest.skip("needs 6 GiB of free GPU memory")
    query, key, value = inputs(40, 40, 64)
    options = score_options(query)
    expected = gluon(query, key, value, options)[0]
    size = key[0].numel()
    buffer = torch.empty(2**31 + size, dtype=key.dtype, device=DEVICE)
    far = buffer.as_strided(key.shape, (2**31, 40 * 64, 64, 1))
    far.copy_(key)
    assert torch.equal(gluon(query, far, value, options)[0], expected)
    far.copy_(value)
    assert torch.equal(gluon(query, key, far, options)[0], expected)


class Padded(PyimplTriton):
    """The Gluon kernel on vectors, whose heads are filled up with zeros to 64."""

    name = "pyimpl-gluon"
    takes = frozenset()
    dtypes = ("float16", "bfloat16")

    def why_unsupported(self, vector: AttentionVector, dtype: str, device: str) -> str | None:
        if max(vector.head_dim, vector.value_dim) > 64:
            return "a head size above 64"
        if not vector.q_len or not vector.kv_len:
            return "backend 'gluon' takes no empty tensors"
        if vector.scale == 0:
            return "backend 'gluon' takes no scale of 0"
        by_place = vector.mask.kind == "none" or vector.mask.window is not None
        return None if by_place else "a mask that is no window"

    def forward(self, query: Tensor, key: Tensor, value: Tensor, options: ScoreOptions) -> Outputs:
        filled = [pad(x, (0, 64 - x.shape[-1])).contiguous() for x in (query, key, value)]
        out, lse = gluon(*filled, options)
        return Outputs(out[..., : value.shape[-1]], lse)


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("dtype", Padded.dtypes)
def test_every_vector_that_it_takes(dtype: str, name: str) -> None:
    result = run(Padded(), [read_trusted(FAMILIES[name])], dtype, DEVICE)
    if all(vector.status == "unsupported" for vector in result.vectors):
        pytest.skip(f"no vector of {name} in {dtype} is for the kernel")
    assert not result.failures, "\n".join(str(vector) for vector in result.failures)
    assert result.ok
