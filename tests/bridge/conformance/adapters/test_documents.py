"""Functions that take documents, by `cu_seqlens`, are called with each problem as one of three: one
that ignores the borders fails, and one that knows nothing of documents is called as ever."""

from __future__ import annotations

import random
from collections.abc import Callable

import committed
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from bridge.conformance.adapters import documents
from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.functions.features import Features, probe
from bridge.conformance.judging.run import AMONG_DOCUMENTS, Result, run
from bridge.conformance.tolerances.rounding_model import generous
from bridge.vectors.model.attention import AttentionVector

FAMILIES = ("causal", "gradient", "unequal-lengths")


def attention(fault: str = "") -> Callable[..., Tensor]:
    """A function of documents, with this mistake."""

    def call(
        query: Tensor, key: Tensor, value: Tensor, *, is_causal: bool = False,
        scale: float | None = None, cu_seqlens: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        if fault == "refuses documents" and cu_seqlens is not None:
            raise NotImplementedError("no documents")
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        scores = scale * query @ key.mT
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool)
        seen = seen.tril() if is_causal else seen
        if cu_seqlens is not None and fault != "documents ignored":
            i, j = (torch.arange(n, dtype=torch.int32) for n in seen.shape)
            late = fault == "a document begins one too late"
            of_i, of_j = (
                torch.bucketize(x - int(late), cu_seqlens[1:], right=True) for x in (i, j)
            )
            seen = seen & (of_i[:, None] == of_j)
        weights = scores.masked_fill(~seen, -torch.inf).softmax(-1).nan_to_num()
        if fault == "documents ignored in the backward pass" and cu_seqlens is not None:
            ignored = scores.softmax(-1)
            weights = weights.detach() + ignored - ignored.detach()
        return weights @ value

    return call


def features(call: Callable[..., Tensor]) -> Features:
    return probe(call, "cpu", ("float64",))


def judge_call(call: Callable[..., Tensor]) -> Result:
    adapter = CallableAdapter("f:x", call, features(call), generous)
    families = committed.families(*FAMILIES)
    return run(adapter, families, "float64", order=random.Random(1), buffers="none")


def test_a_right_one_passes() -> None:
    assert "documents" in features(attention()).supported
    assert judge_call(attention()).ok


@pytest.mark.parametrize(
    ("fault", "families"),
    [
        ("documents ignored", {"causal", "gradient"}),
        ("a document begins one too late", {"causal", "gradient"}),
        ("documents ignored in the backward pass", {"gradient"}),
    ],
)
def test_a_mistake_is_seen_and_told(fault: str, families: set[str]) -> None:
    """Of the problems that can stand at another place."""
    failures = judge_call(attention(fault)).failures
    assert {vector.family for vector in failures} == families
    for vector in failures:
        assert vector.reason.startswith(f"{AMONG_DOCUMENTS}: ")


def test_without_documents_none_are_given() -> None:
    refuses = attention("refuses documents")
    assert "no documents" in features(refuses).unsupported["documents"]
    assert judge_call(refuses).ok
    assert features(torch.nn.functional.scaled_dot_product_attention).unsupported["documents"]


def test_which_problems_can_stand_at_another_place() -> None:
    """As many keys as queries, and nothing by pairs of them."""
    for family in committed.families("causal", "causal-bottom-right", "bias", "window", "document"):
        for vector in family.vectors:
            assert isinstance(vector, AttentionVector)
            if not documents.can_be_among(vector):
                continue
            assert vector.q_len == vector.kv_len
            assert vector.bias is None
            assert family.name != "document"


@given(st.integers(0, 9), st.integers(1, 8))
def test_the_problem_is_found_again(length: int, multiple: int) -> None:
    x = torch.randn(2, 3, length, 4)
    (query, key, value), sums = documents.wrap((x, x, x), multiple)
    assert query.shape[2] == key.shape[2] == value.shape[2] == int(sums[-1])
    assert query.shape[2] % multiple == 0
    for whole in (query, key, value):
        assert torch.equal(torch.as_tensor(documents.own(whole, length, multiple)), x)
    assert documents.own(None, length, multiple) is None
