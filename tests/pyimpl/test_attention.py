"""The public function: its choices, its results, its refusals."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
import torch
from attention_checks import inputs, judge, kernel_rounding, score_options, tiled_rounding

from pyimpl import attention
from pyimpl.backends import tiled

Q, K, V, MASK = inputs((2, 3, 5, 7, 4, 6), torch.float32, masked=True)
FEW = inputs((2, 2, 5, 7, 4, 6), torch.float32, group=2)[:3]


@pytest.mark.parametrize("backend", ["auto", "triton", "tiled", "reference"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_backends(dtype: torch.dtype, backend) -> None:
    query, key, value = Q.to(dtype), K.to(dtype), V.to(dtype)
    options = {"is_causal": True, "scale": 0.7}
    result = attention(
        query, key, value, attn_mask=MASK, return_lse=True, backend=backend, **options
    )
    assert isinstance(result, tuple)
    assert (result[0].dtype, result[1].dtype) == (dtype, torch.float32)
    rounding = kernel_rounding(dtype) if backend == "triton" else tiled_rounding(dtype)
    judge(result, query, key, value, mask=MASK, rounding=rounding, **options)
    alone = attention(query, key, value, attn_mask=MASK, backend=backend, **options)
    assert isinstance(alone, torch.Tensor)
    assert torch.equal(alone, result[0])


@pytest.mark.parametrize("backend", ["auto", "tiled", "reference"])
def test_float64(backend) -> None:
    query, key, value = Q.double(), K.double(), V.double()
    result = attention(query, key, value, return_lse=True, backend=backend)
    assert (result[0].dtype, result[1].dtype) == (torch.float64, torch.float64)
    judge(result, query, key, value, rounding=tiled_rounding(torch.float64))


def test_auto_on_a_cpu_is_the_tile_loop() -> None:
    assert torch.equal(attention(Q, K, V), tiled.flash(Q, K, V, score_options(Q))[0])


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
@pytest.mark.parametrize(
    "sizes", [(0, 2, 3, 4), (2, 0, 3, 4), (2, 2, 0, 4), (2, 2, 3, 0), (0, 0, 0, 0)], ids=str
)
def test_empty_shapes(sizes: tuple[int, int, int, int], backend) -> None:
    query, key, value, mask = inputs((*sizes, 5, 6), torch.float32, masked=True)
    for options in ({}, {"attn_mask": mask}, {"is_causal": True}):
        out, lse = attention(query, key, value, return_lse=True, backend=backend, **options)
        assert torch.equal(out, torch.zeros(*sizes[:3], 6))
        assert torch.equal(lse, torch.full(sizes[:3], -torch.inf))


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
def test_rows_without_a_key(backend) -> None:
    mask = torch.tensor([False, True, False, True, False]).unsqueeze(-1)
    out, lse = attention(Q, K, V, attn_mask=mask, return_lse=True, backend=backend)
    empty = ~mask[:, 0]
    assert bool((out[:, :, empty] == 0).all())
    assert bool((lse[:, :, empty] == -torch.inf).all())
    assert bool(out[:, :, ~empty].isfinite().all())


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
def test_a_key_hidden_by_mask_and_causality_together_has_no_influence(backend) -> None:
    """The mask leaves key 3 to query 0 alone, and causality hides it from query 0."""
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[1:, 3] = False
    key, value = K.clone(), V.clone()
    key[:, :, 3], value[:, :, 3] = torch.nan, torch.nan
    options = {"attn_mask": mask, "is_causal": True, "backend": backend}
    assert torch.equal(attention(Q, key, value, **options), attention(Q, K, V, **options))


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
@pytest.mark.parametrize("number", [torch.nan, torch.inf])
@pytest.mark.filterwarnings("ignore:invalid value encountered:RuntimeWarning")
def test_a_query_that_is_not_finite_does_not_pass_for_masked(number: float, backend) -> None:
    query = Q.clone()
    query[0, 0, 2, 1] = number
    out, lse = attention(query, K, V, return_lse=True, backend=backend)
    assert bool(out[0, 0, 2].isnan().all())
    assert not bool(lse[0, 0, 2].isfinite())
    assert float(lse[0, 0, 2]) != -torch.inf
    assert bool(out[0, 0, :2].isfinite().all())


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
def test_inputs_with_a_negation_still_due(backend) -> None:
    """Views whose memory holds the negatives of their numbers."""
    query, key, value = (torch.complex(x, -x).conj().imag for x in (Q, K, V))
    assert query.is_neg()
    assert torch.equal(query, Q)
    negated = attention(query, key, value, backend=backend)
    assert torch.equal(negated, attention(Q, K, V, backend=backend))


def test_inference_on_parameters() -> None:
    parameter = torch.nn.Parameter(Q.clone())
    with torch.no_grad():
        assert torch.equal(attention(parameter, K, V), attention(Q, K, V))


META = torch.empty(2, 3, 5, 4, device="meta")
NAN, INF = float("nan"), float("inf")
BIAS = torch.zeros(5, 7)
REFUSALS = [
    ({"query": [1.0]}, TypeError, "query must be a torch.Tensor, not list"),
    ({"value": V.int()}, TypeError, "value must be float64, float32, .* not torch.int32"),
    ({"key": K[0]}, ValueError, r"key must be \[batch, heads, .* not of shape \[3, 7, 4\]"),
    ({"key": K.half()}, TypeError, "key must have the dtype of query, torch.float32, not .*16"),
    ({"query": Q.to_sparse()}, TypeError, "query must be a dense tensor, neither sparse nor"),
    ({"query": META}, ValueError, "key must be on the device of query, meta, not on cpu"),
    ({"key": K[:1]}, ValueError, "key must have the batch of query, 2, not 1"),
    ({"value": V[:1]}, ValueError, "value must have the batch of key, 2, not 1"),
    ({"value": V[:, :1]}, ValueError, "value must have the heads of key, 3, not 1"),
    ({"key": K[:, :1], "value": V[:, :1]}, ValueError, "heads of query, 3, not 1, unless enable_"),
    (
        {"key": K[:, :2], "value": V[:, :2], "enable_gqa": True},
        ValueError,
        "the heads of query must be a positive multiple of those of key, 2, not 3",
    ),
    (
        {"key": K[:, :0], "value": V[:, :0], "enable_gqa": True},
        ValueError,
        "the heads of query must be a positive multiple of those of key, 0, not 3",
    ),
    (
        {"query": Q[:, :0], "enable_gqa": True},
        ValueError,
        "the heads of query must be a positive multiple of those of key, 3, not 0",
    ),
    ({"enable_gqa": None}, TypeError, "enable_gqa must be True or False, not None"),
    ({"key": K[..., :3]}, ValueError, "key must have the head_dim of query, 4, not 3"),
    ({"value": V[:, :, :3]}, ValueError, "value must have the length of key, 7, not 3"),
    ({"value": V[..., :0]}, ValueError, r"last dimension of value must be at least 1"),
    ({"attn_mask": True}, TypeError, "attn_mask must be a torch.Tensor or None, not bool"),
    ({"attn_mask": MASK.int()}, TypeError, r"attn_mask must be boolean .* not torch.int32"),
    ({"attn_mask": META.bool()}, ValueError, "attn_mask must be on the device of query, cpu"),
    ({"attn_mask": MASK[..., :6]}, ValueError, r"broadcastable to .* = \[2, 3, 5, 7\], not of"),
    ({"attn_mask": MASK[None]}, ValueError, r"not of shape \[1, 2, 3, 5, 7\]"),
    ({"attn_mask": BIAS + NAN}, ValueError, "attn_mask must hold numbers or −∞, and holds NaN"),
    ({"attn_mask": BIAS, "bias": BIAS}, ValueError, "a floating attn_mask is a bias: give it or"),
    ({"bias": MASK}, TypeError, "bias must be floating, not torch.bool"),
    ({"bias": 0.5}, TypeError, "bias must be a torch.Tensor or None, not float"),
    ({"bias": BIAS[:, :3]}, ValueError, r"bias must be broadcastable to .* not of shape \[5, 3\]"),
    ({"bias": BIAS + INF}, ValueError, "bias must hold numbers or −∞, and holds NaN or "),
    ({"bias": META[..., :1]}, ValueError, "bias must be on the device of query, cpu, not on meta"),
    ({"alibi_slopes": 0.5}, TypeError, "alibi_slopes must be a torch.Tensor or None, not float"),
    ({"alibi_slopes": torch.ones(3).int()}, TypeError, "alibi_slopes must be floating, not torch"),
    (
        {"alibi_slopes": torch.ones(3, 2)},
        ValueError,
        r"alibi_slopes must be of shape \[3\] or \[2, 3\], not \[3, 2\]",
    ),
    ({"alibi_slopes": torch.ones(3) * -INF}, ValueError, "alibi_slopes must hold finite numbers"),
    ({"sinks": torch.ones(1)}, ValueError, r"sinks must be of shape \[3\], not \[1\]"),
    ({"sinks": torch.ones(3) * NAN}, ValueError, "sinks must hold numbers or −∞, and holds NaN"),
    ({"attn_mask": MASK.to_sparse()}, TypeError, "attn_mask must be a dense tensor, neither spars"),
    ({"bias": BIAS.to_sparse()}, TypeError, "bias must be a dense tensor, neither sparse nor"),
    ({"bias": BIAS + 1.8e38}, ValueError, r"bias must hold numbers below 1.7e\+38 .* holds 1.8e"),
    ({"bias": BIAS.double() + 1e300}, ValueError, r"bias must .* query of torch.float32, and hold"),
    ({"sinks": torch.ones(3).to_sparse()}, TypeError, "sinks must be a dense tensor, neither sp"),
    ({"sinks": torch.full((3,), 3e38)}, ValueError, r"sinks must hold numbers below 1.7e\+38 for"),
    ({"alibi_slopes": torch.full((3,), -3e38)}, ValueError, r"alibi_slopes must .* holds 3e\+38"),
    ({"sinks": META[0, :, 0, 0]}, ValueError, "sinks must be on the device of query, cpu, not on"),
    ({"is_causal": 1}, TypeError, "is_causal must be True or False, not 1"),
    ({"return_lse": 1}, TypeError, "return_lse must be True or False, not 1"),
    ({"causal_alignment": "left"}, ValueError, "causal_alignment must be one of 'top-left', 'bot"),
    (
        {"causal_alignment": np.array(["a", "b"])},
        ValueError,
        "causal_alignment must be one of 'top",
    ),
    ({"window": 3}, TypeError, r"window must be a pair \(left, right\), not 3"),
    ({"window": (3,)}, TypeError, r"window must be a pair \(left, right\), not \(3,\)"),
    ({"window": (None, 1.5)}, TypeError, "the right of window must be a whole number or None, no"),
    ({"window": (-1, 0)}, ValueError, "the left of window must be at least 0 or None .* not -1"),
    ({"softcap": "2"}, TypeError, "softcap must be a number or None, not '2'"),
    ({"softcap": 0.0}, ValueError, "softcap must be finite and above 0, not 0.0"),
    ({"softcap": 10**5000}, ValueError, "softcap must be finite and above 0, not inf"),
    ({"softcap": 2.4e38}, ValueError, "softcap must be finite in torch.float32, .* not 2.4e"),
    ({"softcap": 1e-39}, ValueError, "softcap must be so large that scale / softcap is finite in"),
    ({"softcap": INF}, ValueError, "softcap must be finite and above 0, not inf"),
    ({"scale": "2"}, TypeError, "scale must be a number or None, not '2'"),
    ({"scale": True}, TypeError, "scale must be a number or None, not True"),
    ({"scale": -(10**5000)}, ValueError, "scale must be finite in torch.float32, .* not -inf"),
    ({"scale": torch.eye(9)}, TypeError, r"scale must be a number or None, not tensor\(.*…"),
    ({"window": (10**5000 * -1, None)}, ValueError, "left of window .* not so long a int"),
    ({"scale": NAN}, ValueError, "scale must be finite in torch.float32, .* not nan"),
    ({"scale": -INF}, ValueError, "scale must be finite in torch.float32, .* not -inf"),
    ({"scale": 1e39}, ValueError, r"scale must be finite in torch.float32, .* not 1e\+39"),
    ({"layout": "nhd"}, ValueError, "layout must be one of 'bhnd', 'bnhd', not 'nhd'"),
    ({"layout": "bnhd", "query": Q[0]}, ValueError, r"must be \[batch, length, heads, head_dim\]"),
    ({"backend": "cuda"}, ValueError, "backend must be one of 'auto', .*, not 'cuda'"),
]


@pytest.mark.parametrize(("change", "error", "message"), REFUSALS, ids=range(len(REFUSALS)))
def test_refusals(change: dict[str, object], error: type[Exception], message: str) -> None:
    arguments = {"query": Q, "key": K, "value": V, **change}
    with pytest.raises(error, match=message) as caught:
        attention(**arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
def test_a_scale_may_be_any_real_number(backend) -> None:
    out = attention(Q, K, V, scale=0.5, backend=backend)
    for scale in (np.float32(0.5), np.float64(0.5), Fraction(1, 2)):
        assert torch.equal(attention(Q, K, V, scale=scale, backend=backend), out)


def test_what_triton_cannot_take_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"takes float32, float16 and bfloat16, not torch\.float64"
    ):
        attention(Q.double(), K.double(), V.double(), backend="triton")
    wide = torch.zeros(1, 1, 2, 300)
    with pytest.raises(ValueError, match="takes head sizes up to 256, not 300"):
        attention(wide, wide, wide, backend="triton")
    assert attention(wide, wide, wide).shape == wide.shape


OPTIONS = {
    "softcap": {"softcap": 1.0},
    "alibi_slopes": {"alibi_slopes": torch.ones(4)},
    "bias": {"bias": BIAS + 0.5},
    "sinks": {"sinks": torch.ones(4)},
    "window": {"window": (1, None)},
    "causal_alignment": {"is_causal": True, "causal_alignment": "bottom-right"},
    "enable_gqa": {},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_triton_takes_every_option(name: str) -> None:
    call = {"enable_gqa": True, "return_lse": True, **OPTIONS[name]}
    out, lse = attention(*FEW, backend="triton", **call)
    expected_out, expected_lse = attention(*FEW, backend="reference", **call)
    assert float((out - expected_out).abs().max()) < 1e-5
    assert float((lse - expected_lse).abs().max()) < 1e-5


BACKENDS = ["triton", "tiled", "reference"]
LOWEST = torch.finfo(torch.float32).min


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_lowest_number_masks_as_infinity_does(backend) -> None:
    """Where it alone is left of a row, too, and whatever the key's value holds."""
    value = V.clone()
    value[:, :, 6] = NAN
    bias = torch.randn(5, 7).masked_fill(~MASK[0, 0], -INF)
    bias[:, 6] = -INF
    results = {}
    for low in (-INF, LOWEST, -(2.0**127)):
        lowered = bias.masked_fill(bias == -INF, low)
        before = lowered.clone()
        for given in (lowered, lowered.expand(2, 3, 5, 7), lowered.double()):
            results[low, given.dtype, given.dim()] = attention(
                Q, K, value, bias=given, sinks=torch.tensor([low, 0.5, low]), return_lse=True,
                backend=backend,
            )  # fmt: skip
        assert torch.equal(lowered, before)
    expected_out, expected_lse = results.pop((-INF, torch.float32, 2))
    assert bool((expected_lse == -INF).any())
    for out, lse in results.values():
        assert float((out - expected_out).abs().max()) < 1e-5
        assert torch.equal(lse == -INF, expected_lse == -INF)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_largest_numbers_that_are_taken(backend) -> None:
    """Just below the bounds nothing overflows."""
    most = torch.full((3,), 1.7e38)
    for options in ({"sinks": most}, {"bias": most[0]}, {"softcap": 2e38}, {"softcap": 2e-38}):
        options["scale"] = 1.0 if "softcap" in options else 0.5
        query = torch.full_like(Q, 0.5)
        out, lse = attention(
            query, torch.full_like(K, 0.5), V, return_lse=True, backend=backend, **options
        )
        assert bool(out.isfinite().all())
        assert bool(lse.isfinite().all())
    for sign in (1.0, -1.0):
        one = attention(
            Q, K[:, :, :5], V[:, :, :5], alibi_slopes=sign * most, is_causal=True, window=(0, 0),
            backend=backend,
        )  # fmt: skip
        assert float((one - V[:, :, :5]).abs().max()) < 1e-5


@pytest.mark.parametrize("backend", BACKENDS)
def test_masks_in_any_order_of_memory(backend) -> None:
    """Elementwise results take the order of their operands."""
    mask = torch.rand(4, 5, 7, generator=torch.Generator().manual_seed(0)) < 0.6
    call = {"enable_gqa": True, "is_causal": True, "backend": backend}
    expected = attention(*FEW, attn_mask=mask, **call)
    for order in ((1, 0, 2), (2, 0, 1), (2, 1, 0), (1, 2, 0)):
        back = [order.index(i) for i in range(3)]
        other = mask.permute(order).contiguous().permute(back)
        assert torch.equal(attention(*FEW, attn_mask=other, **call), expected)


@pytest.mark.parametrize("backend", BACKENDS)
def test_whole_numbers_of_numpy(backend) -> None:
    out = attention(Q, K, V, window=(np.int64(2), np.uint8(1)), backend=backend)
    assert torch.equal(out, attention(Q, K, V, window=(2, 1), backend=backend))


def in_a_new_process(program: str, **environment: str) -> str:
    """The output of the program; TRITON_INTERPRET is set only if it is given."""
    inherited = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**inherited, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.thorough
def test_triton_on_a_cpu_without_the_interpreter() -> None:
    program = (
        "import torch, pyimpl\n"
        "x = torch.zeros(1, 1, 2, 4)\n"
        "try: pyimpl.attention(x, x, x, backend='triton')\n"
        "except ValueError as error: print(error)"
    )
    assert "takes CUDA tensors, not cpu (CPU tensors only in Triton's" in in_a_new_process(program)


@pytest.mark.thorough
def test_without_triton() -> None:
    program = (
        "import sys; sys.modules['triton'] = None\n"
        "import torch, pyimpl\n"
        "x = torch.zeros(1, 1, 2, 4)\n"
        "print(tuple(pyimpl.attention(x, x, x).shape))\n"
        "try: pyimpl.attention(x, x, x, backend='triton')\n"
        "except ImportError as error: print(error)\n"
        "print('bridge' in sys.modules)"
    )
    assert in_a_new_process(program).splitlines() == [
        "(1, 1, 2, 4)",
        "backend 'triton' needs the package triton, which is not installed",
        "False",
    ]
