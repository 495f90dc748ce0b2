"""The Triton forward kernel, interpreted, against plain float64."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from attention_checks import inputs, inside_buffer, kernel_rounding
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_checks import judge, score_options
from torch import Tensor

from pyimpl.backends.kernels.forward import forward, forward_into, padded_size

DTYPES = [torch.float32, torch.float16, torch.bfloat16]
# batch, heads, q_len, kv_len, head_dim, value_dim; tiles are 16 × 16 unless said otherwise.
SHAPES = [
    (1, 1, 1, 1, 1, 1),
    (2, 1, 37, 53, 24, 40),
    (1, 2, 16, 48, 16, 16),
    (1, 1, 33, 15, 17, 5),
    (1, 1, 20, 50, 64, 64),
]


def run(query: Tensor, key: Tensor, value: Tensor, block: int = 16, **options: object):
    chosen = score_options(query, **options)
    return forward(query, key, value, chosen, block_m=block, block_n=block)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_against_reference(dtype, shape, is_causal: bool, masked: bool) -> None:
    query, key, value, mask = inputs(shape, dtype, masked=masked)
    result = run(query, key, value, mask=mask, is_causal=is_causal)
    assert result[0].dtype == dtype
    assert result[1].dtype == torch.float32
    options = score_options(query, mask=mask, is_causal=is_causal)
    judge(result, query, key, value, options, kernel_rounding(dtype, block_n=16))


@settings(max_examples=20, deadline=None)
@given(
    shape=st.tuples(
        st.integers(1, 2),
        st.integers(1, 2),
        st.integers(1, 40),
        st.integers(0, 70),
        st.integers(1, 40),
        st.integers(1, 40),
    ),
    dtype=st.sampled_from(DTYPES),
    is_causal=st.booleans(),
    masked=st.booleans(),
    scale=st.one_of(st.none(), st.floats(-3.0, 3.0)),
    block_m=st.sampled_from([16, 32]),
    block_n=st.sampled_from([16, 32, 64]),
    seed=st.integers(0, 2**31),
)
def test_any_shape(
    shape, dtype, is_causal, masked, scale, block_m: int, block_n: int, seed: int
) -> None:
    query, key, value, mask = inputs(shape, dtype, seed=seed, masked=masked)
    options = score_options(query, mask=mask, is_causal=is_causal, scale=scale)
    result = forward(query, key, value, options, block_m=block_m, block_n=block_n)
    judge(result, query, key, value, options, kernel_rounding(dtype, block_n))


@pytest.mark.parametrize(
    ("head_dim", "value_dim"),
    [(1, 256), (3, 2), (15, 17), (31, 63), (65, 80), (96, 127), (129, 192), (255, 1), (256, 256)],
)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_head_sizes_with_default_tiles(dtype, head_dim: int, value_dim: int) -> None:
    query, key, value, _ = inputs((1, 1, 5, 70, head_dim, value_dim), dtype)
    options = score_options(query)
    judge(forward(query, key, value, options), query, key, value, options, kernel_rounding(dtype))


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_nothing_outside_the_tensors_is_read_or_written(dtype, is_causal: bool, masked) -> None:
    query, key, value, mask = inputs((2, 1, 21, 39, 18, 35), dtype, masked=masked)
    options = score_options(query, is_causal=is_causal, mask=mask)
    blocks = {"block_m": 16, "block_n": 16}
    expected_out, expected_lse = forward(query, key, value, options, **blocks)

    surrounded = [inside_buffer(x, math.nan)[0] for x in (query, key, value)]
    if mask is not None:
        options = replace(options, mask=inside_buffer(mask, True)[0])
    sentinel = -777.0
    out, out_buffer = inside_buffer(torch.zeros_like(expected_out), sentinel)
    lse, lse_buffer = inside_buffer(torch.zeros_like(expected_lse), sentinel)
    forward_into(*surrounded, out, lse, options, **blocks)
    assert torch.equal(out, expected_out)
    assert torch.equal(lse, expected_lse)
    for view, buffer in ((out, out_buffer), (lse, lse_buffer)):
        view.fill_(sentinel)
        assert bool((buffer == sentinel).all())


@pytest.mark.thorough
@pytest.mark.skipif(sys.platform != "linux", reason="needs mmap and mprotect")
def test_nothing_outside_the_tensors_is_even_touched() -> None:
    program = Path(__file__).with_name("guarded_memory.py")
    path = os.pathsep.join(sys.path)
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "no access outside\n"), done.stderr


def test_any_strides() -> None:
    query, key, value, mask = inputs((2, 2, 20, 33, 16, 24), torch.float32, masked=True)
    expected = run(query, key, value, mask=mask)

    def rearrange(x: Tensor, order: tuple[int, ...]) -> Tensor:
        back = sorted(range(4), key=order.__getitem__)
        return x.permute(order).contiguous().permute(back)

    strided = torch.empty(*query.shape[:-1], 2 * query.shape[-1])[..., ::2].copy_(query)
    for q, k, v, m in (
        (rearrange(query, (0, 2, 1, 3)), rearrange(key, (2, 0, 1, 3)), value, mask),
        (query, rearrange(key, (0, 1, 3, 2)), rearrange(value, (3, 2, 1, 0)), mask),
        (strided, key, value, rearrange(mask, (3, 2, 1, 0))),
    ):
        result = run(q, k, v, mask=m)
        assert torch.equal(result[0], expected[0])
        assert torch.equal(result[1], expected[1])


def test_broadcast_inputs() -> None:
    query, key, value, mask = inputs((1, 1, 20, 33, 16, 24), torch.float32, masked=True)
    wide = [x.expand(2, 2, -1, -1) for x in (query, key, value)]
    expected = run(*(x.contiguous() for x in wide), mask=mask.expand(2, 2, -1, -1).contiguous())
    for m in (mask, mask[0], mask[0, 0], mask.expand(2, 1, -1, -1), mask.expand(2, 2, -1, -1)):
        result = run(*wide, mask=m)
        assert torch.equal(result[0], expected[0])
        assert torch.equal(result[1], expected[1])
    one_row = mask[:, :, 1:2]
    result = run(*wide, mask=one_row)
    assert torch.equal(result[0], run(*wide, mask=one_row.expand(-1, -1, 20, -1))[0])


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_no_keys(masked: bool, is_causal: bool) -> None:
    query, key, value, mask = inputs((2, 1, 5, 0, 8, 3), torch.float16, masked=masked)
    out, lse = run(query, key, value, mask=mask, is_causal=is_causal)
    assert torch.equal(out, torch.zeros(2, 1, 5, 3, dtype=torch.float16))
    assert torch.equal(lse, torch.full((2, 1, 5), -torch.inf))


@pytest.mark.parametrize("shape", [(0, 2, 3, 4, 5, 6), (2, 0, 3, 4, 5, 6), (2, 2, 0, 4, 5, 6)])
def test_no_queries(shape: tuple[int, int, int, int, int, int]) -> None:
    query, key, value, mask = inputs(shape, torch.float32, masked=True)
    out, lse = run(query, key, value, mask=mask)
    assert out.shape == (*shape[:3], 6)
    assert lse.shape == shape[:3]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_masked_rows_tiles_and_mixtures(dtype: torch.dtype) -> None:
    """Rows without a key, rows whose first or last tiles are masked, tiles masked for some rows."""
    query, key, value, _ = inputs((1, 1, 40, 64, 16, 16), dtype)
    mask = torch.zeros(1, 1, 40, 64, dtype=torch.bool)
    mask[:, :, 1, 50] = True
    mask[:, :, 2, 3] = True
    mask[:, :, 3, 20:40] = True
    mask[:, :, 16:32, 16:32] = True
    out, lse = run(query, key, value, mask=mask)
    assert not bool(out.isnan().any())
    empty = ~mask.any(-1)
    assert bool((out[empty] == 0).all())
    assert bool((lse[empty] == -torch.inf).all())
    assert torch.equal(out[:, :, 1], value[:, :, 50])
    assert torch.equal(out[:, :, 2], value[:, :, 3])
    options = score_options(query, mask=mask)
    judge((out, lse), query, key, value, options, kernel_rounding(dtype, 16))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_exact_where_the_arithmetic_is(dtype: torch.dtype) -> None:
    """Scale ln 2 makes every weight a power of two; with equal scores the output is a mean."""
    key = torch.tensor([1.0, -2.0, 3.0, 0.0]).expand(1, 1, 32, 4).to(dtype)
    query = torch.arange(-20.0, 20.0).reshape(1, 1, 10, 4).to(dtype)
    value = torch.arange(-96.0, 96.0).reshape(1, 1, 32, 6).to(dtype)
    out, _ = run(query, key, value, scale=math.log(2.0))
    mean = value.double().mean(2, keepdim=True).expand(-1, -1, 10, -1)
    assert torch.equal(out, mean.to(dtype))
    # Two keys, one of them ahead by 3: weights 1 and 1/8, l = 9/8.
    query, key = torch.ones(1, 1, 1, 1).to(dtype), torch.tensor([[[[4.0], [7.0]]]]).to(dtype)
    value = torch.tensor([[[[8.0, 16.0], [72.0, -128.0]]]]).to(dtype)
    out, _ = run(query, key, value, scale=math.log(2.0))
    numerators = torch.tensor([72.0 + 1.0, -128.0 + 2.0], dtype=torch.float64)
    assert torch.equal(out[0, 0, 0], (numerators / 1.125).to(torch.float32).to(dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("scale", [0.0, -1.0, 40.0, -1000.0])
def test_scales_and_large_spreads(dtype: torch.dtype, scale: float) -> None:
    query, key, value, _ = inputs((1, 1, 9, 40, 8, 8), dtype)
    result = run(query, key, value, scale=scale)
    options = score_options(query, scale=scale)
    judge(result, query, key, value, options, kernel_rounding(dtype, 16))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_maximum_in_each_tile(dtype: torch.dtype) -> None:
    """A key 100 above the others, first in one tile, then in the next: o and l are rescaled."""
    query, key, value, _ = inputs((1, 4, 3, 64, 16, 8), dtype)
    for head, position in enumerate((0, 17, 40, 63)):
        key[:, head, position] = 100 * query[:, head, 0] / query[:, head, 0].norm() ** 2
    result = run(query, key, value, scale=1.0)
    options = score_options(query, scale=1.0)
    judge(result, query, key, value, options, kernel_rounding(dtype, 16))


@pytest.mark.parametrize("blocks", [(16, 16), (16, 64), (64, 16), (32, 128), (None, None)], ids=str)
def test_tile_sizes(blocks: tuple[int | None, int | None]) -> None:
    query, key, value, mask = inputs((1, 2, 50, 90, 20, 20), torch.float32, masked=True)
    options = score_options(query, mask=mask, is_causal=True)
    block_m, block_n = blocks
    result = forward(query, key, value, options, block_m=block_m, block_n=block_n)
    again = forward(query, key, value, options, block_m=block_m, block_n=block_n)
    assert torch.equal(result[0], again[0])
    assert torch.equal(result[1], again[1])
    judge(result, query, key, value, options, kernel_rounding(torch.float32))


def test_keys_that_no_query_sees_have_no_influence() -> None:
    """NaN in them changes no bit: beyond the last query under causality, or masked throughout."""
    query, key, value, _ = inputs((1, 2, 20, 70, 16, 16), torch.float32)
    bad_key, bad_value = key.clone(), value.clone()
    bad_key[:, :, 20:], bad_value[:, :, 20:] = math.nan, math.inf
    assert torch.equal(
        run(query, key, value, is_causal=True)[0], run(query, bad_key, bad_value, is_causal=True)[0]
    )
    mask = torch.ones(20, 70, dtype=torch.bool)
    hidden = [0, 3, 17, 18, 33, 69]
    mask[:, hidden] = False
    bad_key, bad_value = key.clone(), value.clone()
    bad_key[:, :, hidden], bad_value[:, :, hidden] = math.nan, math.nan
    assert torch.equal(
        run(query, key, value, mask=mask)[0], run(query, bad_key, bad_value, mask=mask)[0]
    )


def test_refusals() -> None:
    query, key, value, _ = inputs((1, 1, 2, 3, 4, 4), torch.float32)
    options = score_options(query)
    with pytest.raises(ValueError, match=r"block_m must be a power of two, at least 16, not 24"):
        forward(query, key, value, options, block_m=24)
    with pytest.raises(ValueError, match=r"block_n must be a power of two, at least 16, not 8"):
        forward(query, key, value, options, block_n=8)
    with pytest.raises(
        ValueError, match=r"takes float32, float16 and bfloat16, not torch\.float64"
    ):
        forward(query.double(), key.double(), value.double(), options)
    wide = torch.zeros(1, 1, 2, 257)
    with pytest.raises(ValueError, match="takes head sizes up to 256, not 257"):
        forward(wide, wide, wide, options)
    many = torch.zeros(()).expand(2**16, 2**15, 1, 4)
    with pytest.raises(ValueError, match="query tiles must be below 2³¹, not 2147483648"):
        forward_into(many, many, many, many, many[..., 0], options)
    with pytest.raises(ValueError, match=r"out must be \[1, 1, 2, 4\] on cpu, not \[1, 1, 3, 4\]"):
        forward_into(query, key, value, key, query[..., 0], options)
    with pytest.raises(ValueError, match=r"lse must be \[1, 1, 2\] on cpu, not \[1, 1, 3\]"):
        forward_into(query, key, value, query, key[..., 0], options)
    long = torch.zeros(()).expand(1, 1, 2**29, 4)
    with pytest.raises(ValueError, match=r"kv_len must be below 2²⁹ .* not 536870912"):
        forward(query, long, long, options)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"scale": 3e38}, r"scale·log₂e must be within float32 .* scale is 3e\+38"),
        ({"scale": math.nan}, "scale is nan"),
        ({"scale": 1e10, "softcap": 1e-30}, "scale/softcap must be within .* softcap is 1e-30"),
        ({"softcap": 0.0}, "softcap must be above 0, not 0.0"),
        ({"softcap": math.nan}, "softcap must be above 0, not nan"),
        ({"left": -1}, "left must be None or at least 0, not -1"),
        ({"right": -2}, "right must be None or at least 0, not -2"),
        ({"shift": -(2**29)}, "shift must be between −2²⁹ and 2²⁹, not -536870912"),
        ({"mask": torch.ones(5, 7)}, "mask must be boolean on cpu, not torch.float32 on cpu"),
        ({"mask": torch.ones(4, 7) > 0}, r"mask must be .* \[1, 2, 5, 7\], not .* \[4, 7\]"),
        ({"bias": torch.ones(5, 7).int()}, "bias must be floating on cpu, not torch.int32"),
        ({"bias": torch.ones(1, 1, 1, 5, 7)}, r"bias must be broadcastable .* \[1, 1, 1, 5, 7\]"),
        ({"alibi_slopes": torch.ones(2)}, r"must be floating \[1, 2\] on cpu, .* \[2\]"),
        ({"sinks": torch.ones(2).int()}, r"sinks must be floating \[2\] on cpu, not torch.int32"),
        ({"sinks": torch.ones(1)}, r"sinks must be floating \[2\] on cpu, not .* \[1\]"),
    ],
)
def test_options_that_are_refused(changes: dict[str, object], message: str) -> None:
    query, key, value, _ = inputs((1, 2, 5, 7, 4, 6), torch.float32)
    with pytest.raises(ValueError, match=message):
        forward(query, key, value, score_options(query, **changes))


def test_padded() -> None:
    assert [padded_size(n) for n in (1, 16, 17, 64, 65, 256)] == [16, 16, 32, 64, 128, 256]


def test_tensors_that_do_not_fit_are_refused() -> None:
    query, key, value, _ = inputs((1, 2, 5, 7, 4, 6), torch.float32)
    for change, message in (
        ({"key": key[..., :3]}, r"key must be .*\[1, 2, 7, 4\] .* not .*\[1, 2, 7, 3\]"),
        ({"value": value[:, :, :5]}, r"key must be .*\[1, 2, 5, 4\]"),
        ({"value": value[:, :1]}, r"value must be .*\[1, 2, 7, 6\] .* not .*\[1, 1, 7, 6\]"),
        ({"key": key.half()}, "key must be torch.float32 .* not torch.float16"),
        ({"key": key[:, [0, 0, 0]]}, "of query must be a positive multiple .* key, 3, not 2"),
        ({"key": key[:, :0]}, "of query must be a positive multiple .* key, 0, not 2"),
    ):
        arguments = {"query": query, "key": key, "value": value, **change}
        with pytest.raises(ValueError, match=message):
            forward(**arguments, options=score_options(query))


def test_threads() -> None:
    """Triton's interpreter is not made for them: launches take turns."""
    query, key, value, _ = inputs((1, 2, 33, 40, 16, 16), torch.float32)
    expected = run(query, key, value)[0]
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: run(query, key, value)[0], range(8)))
    assert all(torch.equal(result, expected) for result in results)
