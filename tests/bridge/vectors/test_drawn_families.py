"""Random draws have the property that their family is for, whatever the seeds: another name of a
case must not take it away."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from committed import family, names

from bridge.vectors.exact.attention import visible_keys
from bridge.vectors.model.attention import AttentionVector
from bridge.vectors.model.operations import VarlenVector

OPTIONS = ("scale", "softcap", "alibi", "bias", "sink")
# As the vectors name them; causal masks are windows without a bound on one side.
KINDS = {"none", "window", "key-length", "key-padding", "document", "boolean"}


def count_visible(vector: AttentionVector) -> list[int]:
    """By query, how many keys it sees."""
    return [len(visible_keys(vector, i)) for i in range(vector.q_len)]


def test_a_query_sees_nothing_in_each_vector_for_that() -> None:
    assert all(0 in count_visible(vector) for vector in family("fully-masked").vectors)


def test_holes_leave_each_query_a_key_and_hide_one() -> None:
    for vector in family("masked-holes").vectors:
        assert min(count_visible(vector)) > 0, vector.id
        assert sum(count_visible(vector)) < vector.q_len * vector.kv_len, vector.id


def test_sequences_without_queries_and_without_keys_are_among_them() -> None:
    vectors = [v for v in family("varlen-drawn").vectors if isinstance(v, VarlenVector)]
    for starts in ("cu_seqlens_q", "cu_seqlens_k"):
        assert any(a == b for v in vectors for a, b in pairwise(getattr(v, starts)))


@pytest.mark.parametrize("name", ["drawn", "gradient-drawn"])
def test_every_scale_and_kind_of_mask_is_drawn(name: str) -> None:
    vectors = family(name).vectors
    for given, wanted in (
        (Counter(int(v.scale) for v in vectors), set(range(-1, 3))),
        (Counter(v.mask.kind for v in vectors), KINDS),
    ):
        assert set(given) >= wanted
        assert min(given[one] for one in wanted) >= len(vectors) / 18


@pytest.mark.parametrize("option", OPTIONS)
def test_every_option_is_drawn_and_left_out(option: str) -> None:
    vectors = family("drawn-natural").vectors
    given = sum(getattr(vector, option) is not None for vector in vectors)
    assert len(vectors) / 3 < given < len(vectors) * 2 / 3


@pytest.mark.parametrize("name", names("gradient"))
def test_losses_with_and_without_the_log_sum_exp(name: str) -> None:
    """Not every attention function returns it."""
    vectors = family(name).vectors
    by_lse = sum(any(any(row) for row in vector.grad_log_sum_exp) for vector in vectors)
    assert len(vectors) / 3 < by_lse < len(vectors) * 2 / 3
