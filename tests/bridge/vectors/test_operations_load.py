"""The loader refuses damage of the operations beside attention, one sentence each."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from vector_edits import Vector, document, drop, put, refusal_of

from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import family_of

MASKED = {"log_sum_exp": None, "output": {"lower": ["0", "0"], "upper": ["0", "0"]}}

# Errors that a schema sees as well are in `test_shapes`.
DAMAGE: dict[str, tuple[str, int, Callable[[Vector], None], str]] = {
    "a softcap of 0": ("softcap", 0, put("softcap", "0"), "field softcap: is not positive."),
    "a bias of another length": (
        "bias", 1, drop("bias", 1), "field bias[1]: has 1 numbers, but kv_len is 2.",
    ),
    "a slope that is not exact in bfloat16": (
        "alibi", 0, put("alibi", "slope", "1/3"),
        "field alibi.slope: 1/3 is not exact in bfloat16.",
    ),
    "a sink in the exact model": (
        "causal", 0, put("sink", "1"),
        "field sink: is 1, but the exact model can hold no sink but 0.",
    ),
    "a masked row beside a sink": (
        "sink", 0,
        put("expected", 0, MASKED),
        "field expected[0].log_sum_exp: does not agree with the mask.",
    ),
    "a log-sum-exp that is not the denominator's": (
        "log-sum-exp", 0, put("expected", 0, "log2_sum_exp", "5"),
        "field expected[0].log2_sum_exp: is not the logarithm of denominator, plus max.",
    ),
    "a rate of an input that is not there": (
        "tangent", 0, put("tangent_sink", "1"),
        "field tangent_sink: is given, but there is nothing whose rate it is.",
    ),
    "a rate that is not there": (
        "tangent-score-mods", 6, lambda vector: vector.pop("tangent_bias"),
        "field tangent_bias: is missing.",
    ),
    "a rate of another length": (
        "tangent", 0, drop("tangent_k"), "field tangent_k: has 4 rows, but kv_len is 5.",
    ),
    "a rate that is not exact in bfloat16": (
        "tangent-score-mods", 9, put("tangent_sink", "1/3"),
        "field tangent_sink: 1/3 is not exact in bfloat16.",
    ),
    "a tangent of a query that sees a key": (
        "tangent", 0, put("expected", 0, MASKED),
        "field expected[0].log_sum_exp: does not agree with the mask.",
    ),
    "heads that no group makes": (
        "grouped-query", 1, put("num_heads", 3),
        "field num_heads: is 3, no multiple of num_kv_heads, 2.",
    ),
    "a head too few": (
        "grouped-query", 1, drop("k"), "field k: has 1 matrices, but num_kv_heads is 2.",
    ),
    "a row of another head's result": (
        "grouped-query", 1, drop("expected", 1), "field expected[1]: has 1 rows, but q_len is 2.",
    ),
    "prefix sums that fall": (
        "varlen", 2, put("cu_seqlens_q", [0, 2, 1, 3]),
        "field cu_seqlens_q: does not rise from 0.",
    ),
    "prefix sums of fewer sequences": (
        "varlen", 2, drop("cu_seqlens_k"),
        "field cu_seqlens_k: has 3 numbers, but the number of numbers of cu_seqlens_q is 4.",
    ),
    "a token too few": (
        "varlen", 2, drop("k"), "field k: has 21 rows, but the last of cu_seqlens_k is 22.",
    ),
    "a mask of positions in a batch": (
        "varlen", 2, put("mask", {"kind": "key-length", "length": 1}),
        "field mask.kind: is none that means the same for every length.",
    ),
    "a page that is not there": (
        "paged", 2, put("tables", 0, [2, 0, 3]), "field tables[0][2]: is 3, but num_pages is 3.",
    ),
    "more tokens than the pages hold": (
        "paged", 2, put("lengths", [13]), "field lengths[0]: is 13, more than its pages hold.",
    ),
    "a suffix without values": (
        "cascade", 1, drop("suffix_v", 0),
        "field suffix_v[0]: has 2 rows, but the number of rows of suffix_k[0] is 3.",
    ),
    "a place of two devices": (
        "shards-zigzag", 1, put("devices", 0, "keys", [0, 1, 6, 6]),
        "field devices: does not have each of the 8 places of keys once.",
    ),
    "keys of a device that is not there": (
        "shards-zigzag", 1, put("devices", 0, "arrivals", [0, 2]),
        "field devices[0].arrivals[1]: is 2, but there are 2 devices.",
    ),
    "keys that arrive twice": (
        "shards-zigzag", 1, put("devices", 1, "arrivals", [1, 1]),
        "field devices[1].arrivals: has a device twice.",
    ),
    "a shard without results": (
        "shards-zigzag", 1, drop("expected", 0, "partials"),
        "field expected[0].partials: has 1 lists, but the number of numbers of "
        "devices[0].arrivals is 2.",
    ),
    "a row of a query too few": (
        "shards-zigzag", 1, drop("expected", 1, "merged"),
        "field expected[1].merged: has 3 rows, but the number of numbers of "
        "devices[1].queries is 4.",
    ),
    "a mask by number in shards": (
        "shards-zigzag", 1, put("mask", {"kind": "key-length", "length": 1}),
        "field mask.kind: is neither none nor a window.",
    ),
    "a leaf without a block": (
        "merge", 0, put("tree", [0, [1, 2]]), "field tree[1][1]: is 2, but there are 2 blocks.",
    ),
    "a state of nothing that is not 0": (
        "merge", 15, put("expected", "l", "1"), "field expected: is not 0, but m is null (no key).",
    ),
    "an output beyond the values": (
        "merge", 2, put("expected", "o", ["100000", "0"]),
        "field expected.o[0]: makes an output larger than every value, of which it is a mean.",
    ),
    "an edit of a key that is not there": (
        "cache-edits", 4, put("edits", 0, "index", 3),
        "field edits[0].index: is 3, but there are 3 keys then.",
    ),
    "a state too few": (
        "cache-edits", 4, drop("expected"),
        "field expected: has 1 states, but the number of edits and one is 2.",
    ),
    "a negative denominator": (
        "cache-edits", 4, put("expected", 1, "l", "-1/2"),
        "field expected[1].l: is negative, but is a sum of weights.",
    ),
    "a part of another width": (
        "combine", 1, drop("parts", 0, "output"),
        "field parts[0].output: has 1 numbers, but value_dim is 2.",
    ),
    "a letter that says nothing": (
        "tile-bounds", 0, put("expected", 0, "x---"), "field expected[0]",
    ),
    "a tile of queries too few": (
        "tile-bounds", 0, drop("expected"),
        "field expected: has 3 entries, but the number of tiles of queries is 4.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_in_one_sentence(name: str) -> None:
    family, n, edit, sentence = DAMAGE[name]
    assert sentence in refusal_of(family, n, edit)


def test_an_operation_of_another_model_is_refused() -> None:
    natural = document("paged", 0) | {"model": "natural"}
    with pytest.raises(VectorError, match=r"paged\.json: field model: is natural"):
        family_of(natural, "paged.json")


def test_an_unknown_operation_is_refused() -> None:
    other = document("paged", 0) | {"operation": "convolution"}
    with pytest.raises(VectorError, match=r'\.json: field operation: "convolution" is not one'):
        family_of(other, "paged.json")
