"""Offsets past 2³¹ elements, interpreted, in memory that is reserved and mostly never touched."""

from __future__ import annotations

import mmap
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
import torch
from attention_checks import inputs
from kernel_checks import score_options
from torch import Tensor
from triton.runtime import interpreter

from pyimpl.backends import reference
from pyimpl.backends.kernels import backward_bias, backward_keys, backward_queries
from pyimpl.backends.kernels.backward import backward, row_numbers_launch
from pyimpl.backends.kernels.decode import decode
from pyimpl.backends.kernels.forward import forward
from pyimpl.backends.kernels.paged import decode_paged
from pyimpl.backends.kernels.parts.backward_launch import Given
from pyimpl.backends.kernels.parts.launch import is_far
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.backends.kernels.varlen import varlen
from pyimpl.internal.gradients import Wanted

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs MAP_NORESERVE")


@pytest.fixture(autouse=True, params=[2**26, 2**28])
def step(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elements from one key to the next. The last of 40 keys lies 39 · 2²⁶ > 2³¹ after the first,
    but only 15 · 2²⁶ < 2³¹ after the first of a tile of 16; with 2²⁸ that is past 2³¹ too."""
    monkeypatch.setitem(STEP, "elements", request.param)


STEP: dict[str, int] = {}


@contextmanager
def far_apart(tensor: Tensor, dim: int) -> Iterator[Tensor]:
    """A copy with the stride of `step` in `dim`, and otherwise those of a contiguous one."""
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
    elements = STEP["elements"] * (tensor.shape[dim] - 1) + tensor.numel()
    memory = mmap.mmap(-1, tensor.itemsize * elements, flags=flags)
    whole = torch.frombuffer(memory, dtype=tensor.dtype)
    strides = list(tensor.contiguous().stride())
    strides[dim] = STEP["elements"]
    yield whole.as_strided(tensor.shape, strides).copy_(tensor)


def test_forward_and_decode() -> None:
    query, key, value, _ = inputs((1, 1, 3, 40, 16, 16), torch.float16)
    options = score_options(query)
    blocks = {"block_m": 16, "block_n": 16}
    expected = forward(query, key, value, options, **blocks)[0]
    split = decode(query, key, value, options, block_n=16)[0]
    with far_apart(key, 2) as far:
        assert torch.equal(forward(query, far, value, options, **blocks)[0], expected)
        assert torch.equal(decode(query, far, value, options, block_n=16)[0], split)
    with far_apart(value, 2) as far:
        assert torch.equal(forward(query, key, far, options, **blocks)[0], expected)
    mask = torch.rand(3, 40) < 0.5
    bias = torch.zeros(3, 40, dtype=torch.float16).masked_fill(~mask, -torch.inf)
    expected = forward(query, key, value, score_options(query, bias=bias), **blocks)[0]
    with far_apart(bias, 1) as far:
        options = score_options(query, bias=far)
        assert torch.equal(forward(query, key, value, options, **blocks)[0], expected)


def test_pages_and_packed_sequences() -> None:
    query, key, value, _ = inputs((1, 1, 3, 40, 16, 16), torch.float16)
    options = score_options(query)
    pages = [x[0, 0][:, None, None] for x in (key, value)]
    table, lens = torch.arange(40)[None].int(), torch.tensor([40]).int()
    expected = decode_paged(query, *pages, table, lens, options, block_n=16)[0]
    with far_apart(pages[0], 0) as far:
        result = decode_paged(query, far, pages[1], table, lens, options, block_n=16)[0]
        assert torch.equal(result, expected)
    rows = [x[0].transpose(0, 1) for x in (query, key, value)]
    cu_q, cu_k = torch.tensor([0, 1, 3]).int(), torch.tensor([0, 1, 40]).int()
    blocks = {"block_m": 16, "block_n": 16}
    expected = varlen(*rows, cu_q, cu_k, options, **blocks)[0]
    with far_apart(rows[2], 0) as far:
        assert torch.equal(varlen(*rows[:2], far, cu_q, cu_k, options, **blocks)[0], expected)


def gradient_inputs(q_len: int, kv_len: int, heads: int = 1) -> dict[str, Tensor]:
    """The inputs of the backward kernels, float16, by name; the last three float32."""
    query, key, value, _ = inputs((1, heads, q_len, kv_len, 16, 16), torch.float16)
    out, lse = reference.attention(query, key, value, score_options(query))
    grad_out = inputs((1, heads, q_len, q_len, 16, 16), torch.float16, seed=1)[0]
    grad_lse = torch.randn(1, heads, q_len, generator=torch.Generator().manual_seed(2))
    return {
        "query": query, "key": key, "value": value, "out": out.half(), "grad_out": grad_out,
        "lse": lse.float(), "grad_lse": grad_lse,
    }  # fmt: skip


def gradients(given: dict[str, Tensor], **changes: Tensor) -> list[Tensor]:
    options = {name: changes.pop(name) for name in ("bias", "mask") if name in changes}
    given = given | changes
    found = backward(
        *(given[n] for n in ("query", "key", "value", "out", "lse", "grad_out", "grad_lse")),
        score_options(given["query"], **options), Wanted(bias="bias" in options),
        blocks={"block_m": 16, "block_n": 16},
    )  # fmt: skip
    return [x for x in found if x is not None]


def assert_same(found: list[Tensor], expected: list[Tensor]) -> None:
    for one, other in zip(found, expected, strict=True):
        assert torch.equal(one, other)


QUERIES = ["query", "grad_out", "out", "lse", "grad_lse"]


@pytest.mark.parametrize("name", [*QUERIES, "key", "value"])
def test_the_backward_pass_reads(name: str) -> None:
    given = gradient_inputs(*((40, 3) if name in QUERIES else (3, 40)))
    with far_apart(given[name], 2) as far:
        assert_same(gradients(given, **{name: far}), gradients(given))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", ["query", "key", "grad_out", "lse"])
def test_the_backward_pass_reads_heads(name: str) -> None:
    given = gradient_inputs(2, 2, heads=40)
    with far_apart(given[name], 1) as far:
        assert_same(gradients(given, **{name: far}), gradients(given))


@pytest.mark.parametrize("dim", [2, 3])
def test_the_backward_pass_reads_bias_and_mask(dim: int) -> None:
    given = gradient_inputs(*((40, 3) if dim == 2 else (3, 40)))
    q_len, kv_len = given["query"].shape[2], given["key"].shape[2]
    mask = torch.rand(1, 1, q_len, kv_len, generator=torch.Generator().manual_seed(3)) < 0.8
    bias = torch.randn(1, 1, q_len, kv_len).half()
    expected = gradients(given, bias=bias, mask=mask)
    with far_apart(bias, dim) as far:
        assert_same(gradients(given, bias=far, mask=mask), expected)
    with far_apart(mask, dim) as far:
        assert_same(gradients(given, bias=bias, mask=far), expected)


@pytest.mark.parametrize("packed", [False, True])
def test_the_backward_pass_writes(packed: bool) -> None:
    """The written tensors lie far apart: gradients that are allocated do not."""
    data = gradient_inputs(40, 40)
    out, lse = data["out"], data["lse"]
    bias = torch.zeros(1, 1, 40, 40, dtype=torch.float16)
    options = score_options(data["query"], bias=None if packed else bias)
    sequences = None
    if packed:
        cu_seqlens = torch.tensor([0, 1, 40]).int()
        sequences = Sequences(cu_seqlens, cu_seqlens, 40, 40, True)
    tensors = (data["query"], data["key"], data["value"], data["grad_out"])
    given = Given(*tensors, lse, lse, options, sequences)
    blocks = {"block_m": 16, "block_n": 16, "num_warps": 4, "num_stages": 1}
    cpu = torch.device("cpu")

    def write(
        row_lse: Tensor, delta: Tensor, query: Tensor, key: Tensor, value: Tensor, bias: Tensor
    ) -> None:
        rows = (row_lse, delta)
        row_numbers_launch(out, data["grad_out"], lse, data["grad_lse"], *rows).run(cpu)
        here = given._replace(lse=row_lse, delta=delta)
        backward_keys.launch(here, key, value, capability=80, chosen=blocks).run(cpu)
        backward_queries.launch(here, query, None, capability=80, chosen=blocks).run(cpu)
        if not packed:
            backward_bias.launch(here, bias, capability=80, chosen=blocks).run(cpu)

    like = (lse, lse, *tensors[:3], bias.float())
    near = [torch.zeros_like(x) for x in like]
    write(*near)
    assert all(x.abs().max() > 0 for x in near[: 5 if packed else 6])
    with ExitStack() as stack:
        far = [stack.enter_context(far_apart(torch.zeros_like(x), 2)) for x in like]
        write(*far)
        assert_same(far, near)


def test_far_is_what_can_pass_32_bits() -> None:
    assert not is_far(16, (2**27 - 16, 1), (64, 1))
    assert is_far(16, (64, 1), (2**27, 1))
    assert is_far(16, (1, 2**24))
    assert not is_far(256, (0, 0))


def test_more_than_65535_heads_in_the_backward_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the last programs run: the others are like them."""
    heads, last = 65_540, 5
    given = gradient_inputs(1, 1, heads)

    def programs(*bounds: int) -> range:
        assert bounds[0] in (1, heads), "programs in another number than heads"
        return range(heads - last, heads) if bounds == (heads,) else range(*bounds)

    monkeypatch.setattr(interpreter, "range", programs, raising=False)
    found = gradients(given)
    monkeypatch.undo()
    some = {name: x[:, -last:] for name, x in given.items()}
    assert_same([x[:, -last:] for x in found], gradients(some))
    assert all(x[:, -last:].abs().max() > 0 for x in found[2:])
