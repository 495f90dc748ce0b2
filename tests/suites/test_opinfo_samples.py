"""The sample inputs that PyTorch's own tests use for attention: two entries (OpInfo) of
`torch.testing._internal`, on a CPU.

`SDPA`: three or four dimensions, a query that is broadcast over the batch, causal, a floating mask.
`EFFICIENT`: layout "bnhd", causal top-left or bottom-right, scale, packed sequences. The operator
itself runs on CUDA alone; its samples are described to SDPA by a mask.

Expected is the result of SDPA's math backend for the sample in float64; the two may be apart by the
sum of both tolerances. Left out are samples with dropout, 12 of the 25 of `SDPA` and 9 of the 18 of
`EFFICIENT` in torch 2.13: SDPA's generator is another than `pyimpl.dropout`, so that other weights
are dropped. Neither entry has samples of errors. Those of
`torch.ops.aten._flash_attention_forward` are those of `EFFICIENT` with fewer options. The
interpreted kernels take seconds: they run on `SDPA` in float16.

With torch 2.13 this needs the package expecttest, which `torch.testing._internal` imports.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from attention_checks import kernel_rounding, tiled_rounding
from suite_checks import BACKENDS, agree, find_tolerances
from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel

import pyimpl
from bridge.conformance.tolerances.rounding_model import RoundingModel

SDPA = "nn.functional.scaled_dot_product_attention"
EFFICIENT = "torch.ops.aten._efficient_attention_forward"
DTYPES = [torch.float64, torch.float32, torch.float16, torch.bfloat16]
CASES = [(dtype, backend) for dtype in DTYPES for backend in BACKENDS]
EXPECTED = RoundingModel.sdpa_math("float64")


@pytest.fixture(scope="module")
def entries() -> dict[str, Any]:
    """The two entries by name. To import them takes seconds."""
    pytest.importorskip("expecttest", reason="torch.testing._internal needs the package expecttest")
    with pytest.MonkeyPatch.context() as patch:
        # The import would forbid other tests to set flags such as torch.backends.cudnn.benchmark.
        patch.setattr(torch.backends, "disable_global_flags", lambda: None)
        from torch.testing._internal.common_methods_invocations import op_db

    return {entry.name: entry for entry in op_db if entry.name in (SDPA, EFFICIENT)}


def samples(entry: Any, dtype: torch.dtype) -> list[Any]:
    """Those without dropout."""
    every = list(entry.sample_inputs("cpu", dtype, requires_grad=False))
    return [sample for sample in every if sample.kwargs["dropout_p"] == 0.0]


def rounding(dtype: torch.dtype, backend: str) -> RoundingModel:
    return (kernel_rounding if backend == "triton" else tiled_rounding)(dtype)


def expected_result(query: Tensor, key: Tensor, value: Tensor, **options: Any) -> Tensor:
    """SDPA's result in float64."""
    wide = {k: x.double() if k == "attn_mask" and x.is_floating_point() else x
            for k, x in options.items() if x is not None}  # fmt: skip
    with sdpa_kernel(SDPBackend.MATH):
        return F.scaled_dot_product_attention(query.double(), key.double(), value.double(), **wide)


def as_sdpa(sample: Any) -> tuple[tuple[Tensor, Tensor, Tensor], dict[str, Any]]:
    """query, key and value of four dimensions and one batch, and the options."""
    tensors = (sample.input, *sample.args)
    rank = max(x.dim() for x in tensors)
    batch = torch.broadcast_shapes(*(x.shape[:-2] for x in tensors))
    tensors = [x.expand(*batch, *x.shape[-2:]) for x in tensors]
    if rank == 3:
        tensors = [x.unsqueeze(0) for x in tensors]
    return tuple(tensors), {k: x for k, x in sample.kwargs.items() if k != "dropout_p"}


@pytest.mark.parametrize(("dtype", "backend"), [*CASES, (torch.float16, "triton")], ids=str)
def test_scaled_dot_product_attention(
    dtype: torch.dtype, backend: str, entries: dict[str, Any]
) -> None:
    """The very same call as of SDPA, but for the number of dimensions."""
    for sample in samples(entries[SDPA], dtype):
        (query, key, value), options = as_sdpa(sample)
        theirs = expected_result(sample.input, *sample.args, **options).view(*query.shape[:3], -1)
        ours = pyimpl.attention(query, key, value, backend=backend, **options)
        visible = torch.ones(query.shape[2], key.shape[2], dtype=torch.bool)
        tolerance, _ = find_tolerances(
            query, key, value, scale=1 / math.sqrt(query.shape[-1]), bias=options.get("attn_mask"),
            visible=visible.tril() if options["is_causal"] else visible,
            rounding_models=[rounding(dtype, backend), EXPECTED],
        )  # fmt: skip
        agree(ours.double(), theirs, tolerance)


def test_every_kind_of_sample_is_met(entries: dict[str, Any]) -> None:
    """PyTorch chooses the samples: this notices if they become fewer or others."""
    entry = entries[SDPA]
    every = list(entry.sample_inputs("cpu", torch.float32, requires_grad=False))
    left = samples(entry, torch.float32)
    assert entry.error_inputs_func is None
    assert {sample.kwargs["dropout_p"] for sample in every} == {0.0, 0.5}
    # As many with dropout as without, and one with a mask.
    assert len(every) == 2 * len(left) - 1
    assert {name for sample in every for name in sample.kwargs} == {
        "attn_mask", "is_causal", "dropout_p",
    }  # fmt: skip
    kinds = {(s.input.dim(), s.args[0].dim(), s.kwargs["is_causal"]) for s in left}
    assert kinds == {(q, k, causal) for q, k in ((3, 3), (4, 4), (3, 4)) for causal in (0, 1)}
    left = samples(entries[EFFICIENT], torch.float32)
    assert {sample.kwargs["custom_mask_type"] for sample in left} == {0, 1, 2}
    assert {sample.kwargs["cu_seqlens_q"] is None for sample in left} == {False, True}


ALIGNMENTS = {0: None, 1: "top-left", 2: "bottom-right"}


def judge_padded(sample: Any, alignment: str | None, dtype: torch.dtype, backend: str) -> None:
    """One sample in the layout "bnhd", causal or not."""
    tensors, scale = (sample.input, *sample.args), sample.kwargs["scale"]
    call: dict[str, Any] = {"layout": "bnhd", "scale": scale, "backend": backend}
    if alignment is not None:
        call |= {"is_causal": True, "causal_alignment": alignment}
    ours = pyimpl.attention(*tensors, **call).transpose(1, 2)
    query, key, value = (x.transpose(1, 2) for x in tensors)
    q_len, kv_len = query.shape[2], key.shape[2]
    visible = torch.ones(q_len, kv_len, dtype=torch.bool)
    if alignment is not None:
        visible = visible.tril(kv_len - q_len if alignment == "bottom-right" else 0)
    theirs = expected_result(query, key, value, attn_mask=visible, scale=scale)
    tolerance, _ = find_tolerances(
        query, key, value, scale=scale or 1 / math.sqrt(query.shape[-1]), visible=visible,
        rounding_models=[rounding(dtype, backend), EXPECTED],
    )  # fmt: skip
    agree(ours.double(), theirs, tolerance)


def judge_packed(sample: Any, dtype: torch.dtype, backend: str) -> None:
    """One sample of packed sequences, whose last keys belong to none: they are cut off."""
    sums = [sample.kwargs[name] for name in ("cu_seqlens_q", "cu_seqlens_k")]
    query, key, value = (x[0] for x in (sample.input, *sample.args))
    key, value = key[: sums[1][-1]], value[: sums[1][-1]]
    ours = pyimpl.attention_varlen(query, key, value, *sums, backend=backend).transpose(0, 1)[None]
    query, key, value = (x.transpose(0, 1)[None] for x in (query, key, value))
    of = [torch.repeat_interleave(torch.arange(len(cu) - 1), cu.diff()) for cu in sums]
    visible = of[0][:, None] == of[1]
    theirs = expected_result(query, key, value, attn_mask=visible)
    tolerance, _ = find_tolerances(
        query, key, value, scale=1 / math.sqrt(query.shape[-1]), visible=visible,
        rounding_models=[rounding(dtype, backend), EXPECTED],
    )  # fmt: skip
    agree(ours.double(), theirs, tolerance)


@pytest.mark.parametrize(("dtype", "backend"), CASES, ids=str)
def test_efficient_attention_forward(
    dtype: torch.dtype, backend: str, entries: dict[str, Any]
) -> None:
    for sample in samples(entries[EFFICIENT], dtype):
        if sample.kwargs["cu_seqlens_q"] is None:
            judge_padded(sample, ALIGNMENTS[sample.kwargs["custom_mask_type"]], dtype, backend)
        else:
            judge_packed(sample, dtype, backend)


@pytest.mark.parametrize(
    ("name", "value"), [("causal_alignment", "top-left"), ("is_causal", False), ("scale", None)]
)
def test_a_wrong_call_is_caught(
    name: str, value: object, entries: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    right = pyimpl.attention

    def wrong(*tensors: Tensor, **call: Any) -> Tensor:
        return right(*tensors, **(call | {name: value} if name in call else call))

    monkeypatch.setattr(pyimpl, "attention", wrong)
    with pytest.raises(AssertionError, match="over the tolerance"):
        test_efficient_attention_forward(torch.bfloat16, "tiled", entries)
