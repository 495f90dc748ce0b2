"""The backend node tests of ONNX for its operator Attention (opsets 23 to 25), which come with the
package onnx: inputs, attributes and expected outputs, made by ONNX's own NumPy implementation.

Each case is translated into calls of `pyimpl` and its output compared with the expected one; the
two may be apart by the sum of both tolerances. ONNX defines the attributes in the operator's
documentation; where a query stands among the keys:

| inputs | query 0 stands at | call |
| --- | --- | --- |
| neither of the below | 0 | `attention`, aligned top-left |
| past_key, past_value | their length | `attention`, bottom-right, of offset + q_len keys |
| nonpad_kv_seqlen | nonpad_kv_seqlen[b] − q_len | `attention_decode`; `attention` of each, masked |

Not compared: the output qk_matmul_output, which the cases of `PARTLY` ask for. It is the matrix of
scores or weights, and `attention` makes no such matrix. Their other outputs are compared. The
attribute softmax_precision has no counterpart here: all backends compute in float32 at least. The
cases that end in "_expanded" hold the same inputs and outputs for ONNX's expansion into other
operators; FlexAttention and LinearAttention are other operators.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from attention_checks import NAMES, kernel_rounding, tiled_rounding
from suite_checks import BACKENDS, agree, find_tolerances
from torch import Tensor

import pyimpl
from bridge.conformance.tolerances.rounding_model import FORMATS, WHOLE_ROW, RoundingModel

onnx = pytest.importorskip("onnx", reason="needs the package onnx")
# This module's import registers its cases, as that of the whole package, which takes seconds, would
# (`onnx.backend.test.loader.load_model_tests(kind="node")`).
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import onnx.backend.test.case.node.attention as onnx_cases
    from onnx.backend.test.case.node import _NodeTestCases as REGISTERED

# Of these cases one output, qk_matmul_output, is not compared.
PARTLY = {
    "23_fullymasked_qk_matmul_output_mode3_zero",
    "24_fullymasked_qk_matmul_output_mode3_zero",
    "24_qk_matmul_output_mode3_softmax_precision",
    "3d_with_past_and_present_qk_matmul",
    "3d_with_past_and_present_qk_matmul_bias",
    "3d_with_past_and_present_qk_matmul_softcap",
    "3d_with_past_and_present_qk_matmul_softmax",
    "4d_with_past_and_present_qk_matmul",
    "4d_with_past_and_present_qk_matmul_bias",
    "4d_with_past_and_present_qk_matmul_bias_3d_mask",
    "4d_with_past_and_present_qk_matmul_bias_3d_mask_causal",
    "4d_with_past_and_present_qk_matmul_bias_4d_mask",
    "4d_with_past_and_present_qk_matmul_bias_4d_mask_causal",
    "4d_with_qk_matmul",
    "4d_with_qk_matmul_bias",
    "4d_with_qk_matmul_softcap",
    "4d_with_qk_matmul_softmax",
    "local_window_gqa_rank4_mask",
}
# All others are compared in full, so many in the version of requirements/test.lock.
IN_FULL = 75
ATTRIBUTES = {
    "is_causal", "kv_num_heads", "left_window_size", "q_num_heads", "qk_matmul_output_mode",
    "right_window_size", "scale", "softcap", "softmax_precision",
}  # fmt: skip
INPUTS = {"Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen"}


def as_tensor(array: np.ndarray) -> Tensor:
    """A copy; NumPy has no bfloat16 of its own."""
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(array.copy())


@dataclass(frozen=True)
class Case:
    """One node: its inputs and expected outputs by name, and its attributes."""

    name: str
    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]
    attributes: dict[str, Any]

    @property
    def query(self) -> Tensor:
        return self._heads("Q", "q_num_heads")

    @property
    def key(self) -> Tensor:
        return self._append("past_key", self._heads("K", "kv_num_heads"))

    @property
    def value(self) -> Tensor:
        return self._append("past_value", self._heads("V", "kv_num_heads"))

    def _heads(self, name: str, count: str) -> Tensor:
        """`[batch, heads, length, dim]`; the input may be `[batch, length, heads · dim]`."""
        given = self.inputs[name]
        if given.dim() == 4:
            return given
        return given.unflatten(-1, (self.attributes[count], -1)).transpose(1, 2)

    def _append(self, past: str, new: Tensor) -> Tensor:
        return torch.cat((self.inputs[past], new), 2) if past in self.inputs else new

    @property
    def mask(self) -> Tensor | None:
        """As given, to the whole length of the keys: missing entries are masked."""
        given = self.inputs.get("attn_mask")
        if given is None:
            return None
        fill = False if given.dtype == torch.bool else -math.inf
        return F.pad(given, (0, self.key.shape[2] - given.shape[-1]), value=fill)

    @property
    def offsets(self) -> Tensor:
        """Where query 0 of each sequence stands among its keys."""
        batch, _, q_len, _ = self.query.shape
        if "nonpad_kv_seqlen" in self.inputs:
            return self.inputs["nonpad_kv_seqlen"] - q_len
        past = self.inputs["past_key"].shape[2] if "past_key" in self.inputs else 0
        return torch.full((batch,), past)

    @property
    def window(self) -> tuple[int | None, int | None]:
        left, right = (self.attributes.get(f"{side}_window_size", -1) for side in ("left", "right"))
        return None if left < 0 else left, None if right < 0 else right

    @property
    def scale(self) -> float:
        return float(self.attributes.get("scale", 1 / math.sqrt(self.query.shape[-1])))

    @property
    def softcap(self) -> float | None:
        return self.attributes.get("softcap", 0.0) or None

    @property
    def visible(self) -> Tensor:
        """Which query may attend to which key, from ONNX's documentation, `[batch, heads, q_len,
        kv_len]`."""
        i = self.offsets[:, None, None, None] + torch.arange(self.query.shape[2])[:, None]
        j = torch.arange(self.key.shape[2])
        left, right = self.window
        seen = torch.ones(len(i), self.query.shape[1], i.shape[2], len(j), dtype=torch.bool)
        if self.attributes.get("is_causal"):
            seen = seen & (j <= i)
        if left is not None:
            seen = seen & (i - left <= j)
        if right is not None:
            seen = seen & (j <= i + right)
        if "nonpad_kv_seqlen" in self.inputs:
            seen = seen & (j < self.inputs["nonpad_kv_seqlen"][:, None, None, None])
        if self.mask is not None:
            seen = seen & (self.mask if self.mask.dtype == torch.bool else self.mask > -math.inf)
        return seen


def read(test: Any) -> Case:
    """A registered case as tensors; fails for attributes that are not known here."""
    (node,) = test.model.graph.node
    ((inputs, outputs),) = test.data_sets
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    assert attributes.keys() <= ATTRIBUTES
    names = [schema.name for schema in onnx.defs.get_schema("Attention").inputs]
    given = [name for name, used in zip(names, node.input, strict=False) if used]
    assert set(given) <= INPUTS
    made = [name for name in node.output if name]
    return Case(
        test.name.removeprefix("test_attention_"),
        dict(zip(given, map(as_tensor, inputs), strict=True)),
        dict(zip(made, map(as_tensor, outputs), strict=True)),
        attributes,
    )


CASES = [
    read(test)
    for test in REGISTERED
    if [node.op_type for node in test.model.graph.node] == ["Attention"]
]


def run(case: Case, backend: str) -> Tensor:
    """The output Y by `pyimpl`, in the layout "bhnd"."""
    query, key, value, mask = case.query, case.key, case.value, case.mask
    call: dict[str, Any] = {
        "is_causal": bool(case.attributes.get("is_causal", 0)),
        "window": case.window,
        "softcap": case.softcap,
        "scale": case.attributes.get("scale"),
        "enable_gqa": True,
        "backend": backend,
    }
    if "nonpad_kv_seqlen" in case.inputs:
        lens = case.inputs["nonpad_kv_seqlen"]
        if mask is None:
            return pyimpl.attention_decode(query, key, value, kv_lens=lens, **call)
        mask = mask.expand(len(lens), query.shape[1], query.shape[2], key.shape[2])
        each = [
            pyimpl.attention(
                query[b : b + 1], key[b : b + 1, :, :n], value[b : b + 1, :, :n],
                attn_mask=mask[b : b + 1, ..., :n], causal_alignment="bottom-right", **call,
            )
            for b, n in enumerate(lens.tolist())
        ]  # fmt: skip
        return torch.cat(each)
    offset, kv_len = int(case.offsets[0]), key.shape[2]
    if offset:
        call["causal_alignment"] = "bottom-right"
        # Aligned bottom-right query 0 stands at `offset` if there are this many keys more than that
        # there are queries: keys that are too many are hidden from all, those that are added too.
        missing = offset + query.shape[2] - kv_len
        assert missing >= 0 or call["is_causal"] or case.window == (None, None)
        if missing and (call["is_causal"] or case.window != (None, None)):
            key, value = (F.pad(x, (0, 0, 0, missing)) for x in (key, value))
            mask = torch.ones(kv_len, dtype=torch.bool) if mask is None else mask
            fill = False if mask.dtype == torch.bool else -math.inf
            mask = F.pad(mask, (0, missing), value=fill)
    if case.inputs["Q"].dim() == 3:
        query, key, value = (x.transpose(1, 2) for x in (query, key, value))
        out = pyimpl.attention(query, key, value, attn_mask=mask, layout="bnhd", **call)
        return out.transpose(1, 2)
    return pyimpl.attention(query, key, value, attn_mask=mask, **call)


def onnx_rounding(dtype: torch.dtype) -> RoundingModel:
    """The roundings of ONNX's implementation: the operands, scaled by √scale each, and everything
    after them, in the dtype of the inputs."""
    if dtype == torch.float32:
        return RoundingModel.sdpa_math("float32")
    low = FORMATS[NAMES[dtype]]
    return RoundingModel(
        f"onnx-{low.name}", low, low, low, low.unit, operands=low, operand_roundings=2,
        scores=low, weights=low, weights_normalized=True, block_n=WHOLE_ROW,
    )  # fmt: skip


def compare(case: Case, backend: str) -> None:
    """Fail unless the outputs are as ONNX expects them; present keys and values exactly."""
    query, key, value = case.query, case.key, case.value
    bias = None if case.mask is None or case.mask.dtype == torch.bool else case.mask
    ours = kernel_rounding if backend == "triton" else tiled_rounding
    tolerance, _ = find_tolerances(
        query, key, value, scale=case.scale, visible=case.visible, softcap=case.softcap, bias=bias,
        rounding_models=[ours(query.dtype), onnx_rounding(query.dtype)],
    )  # fmt: skip
    expected = case.outputs["Y"]
    if expected.dim() == 3:
        expected = expected.unflatten(-1, (query.shape[1], -1)).transpose(1, 2)
    agree(run(case, backend), expected, tolerance)
    for name, made in (("present_key", key), ("present_value", value)):
        if name in case.outputs:
            assert torch.equal(made, case.outputs[name])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_node(case: Case, backend: str) -> None:
    compare(case, backend)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_node_by_the_interpreted_kernels(case: Case) -> None:
    compare(case, "triton")


def test_every_case_is_compared_or_listed() -> None:
    """Another version of onnx may hold other cases; they are to be looked at before these numbers
    are changed. No other module holds cases of the operator."""
    partly = {case.name for case in CASES if "qk_matmul_output" in case.outputs}
    assert partly == PARTLY
    assert len(CASES) == IN_FULL + len(PARTLY)
    modules = Path(onnx_cases.__file__).parent.glob("*.py")
    users = [path.name for path in modules if '"Attention",' in path.read_text("utf-8")]
    assert users == ["attention.py"]


def exchange(call: dict[str, Any], **others: Any) -> dict[str, Any]:
    """The arguments with others in place of those that were given."""
    return call | {name: value for name, value in others.items() if name in call}


MISTAKES: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "top-left": lambda call: exchange(call, causal_alignment="top-left"),
    "not causal": lambda call: exchange(call, is_causal=False),
    "no window": lambda call: exchange(call, window=(None, None)),
    "window off by one": lambda call: exchange(
        call, window=tuple(n if n is None else n + 1 for n in call["window"])
    ),
    "no softcap": lambda call: exchange(call, softcap=None),
    "default scale": lambda call: exchange(call, scale=None),
    "no mask": lambda call: exchange(call, attn_mask=None),
    "padding is seen": lambda call: exchange(call, kv_lens=None),
}


def failing_cases(monkeypatch: pytest.MonkeyPatch, **wrong: Callable[..., Any]) -> list[str]:
    """The cases that fail with other functions in place of those of `pyimpl`."""
    for name, function in wrong.items():
        monkeypatch.setattr(pyimpl, name, function)
    failed = []
    for case in CASES:
        try:
            compare(case, "tiled")
        except AssertionError:
            failed.append(case.name)
    return failed


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_wrong_translation_is_caught(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(right: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *tensors, **call: right(*tensors, **MISTAKES[name](call))

    names = ("attention", "attention_decode")
    assert failing_cases(monkeypatch, **{name: wrong(getattr(pyimpl, name)) for name in names})


def test_the_wrong_head_of_a_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Query head h with key head h mod kv_heads."""
    right = pyimpl.attention

    def wrong(query: Tensor, key: Tensor, value: Tensor, **call: Any) -> Tensor:
        dim = 1 if call.get("layout", "bhnd") == "bhnd" else 2
        group = query.shape[dim] // key.shape[dim]
        repeated = (torch.cat([x] * group, dim) for x in (key, value))
        return right(query, *repeated, **call)

    failed = failing_cases(monkeypatch, attention=wrong)
    assert failed
    assert all("gqa" in name or name == "3d_local_window" for name in failed)
