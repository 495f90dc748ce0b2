"""Modules with their sequences in shards: any case of them against one process, mistakes in the
modules with a case that shows each, and calls that are refused."""

from __future__ import annotations

from typing import Any

import torch
from context_jobs import Case, by_one, by_part, join, run_wrapped
from hypothesis import strategies as st
from process_pool import shared_pool
from shard_cases import SHARDS, Draw

TABLE = Draw(0).normal(9, 8)


@st.composite
def cases(draw: Any) -> Case:
    """Any case."""
    module = draw(st.sampled_from(["self", "cross", "encoder", "decoder", "transformer"]))
    method = draw(st.sampled_from(["ring", "ulysses"]))
    made: dict[str, Any] = {}
    numbers: dict[str, Any] = {}
    if draw(st.booleans()):
        numbers["dropout_seed"] = draw(st.integers(0, 2**63 - 1))
    # Without a seed dropout is refused.
    made["dropout"] = 0.4 if numbers and draw(st.booleans()) else 0.0
    if module in ("self", "cross"):
        made["add_zero_attn"] = draw(st.booleans())
        bounds = st.none() | st.integers(0, 4)
        numbers["window"] = draw(st.tuples(bounds, bounds))
    if module in ("self", "cross", "encoder"):
        numbers["is_causal"] = draw(st.booleans())
    if module == "transformer" and draw(st.booleans()):
        made["positions"] = TABLE
    shards = st.sampled_from(sorted(SHARDS))
    return Case(
        module,
        (draw(st.integers(1, 9)), draw(st.integers(1, 9))),
        (draw(shards), draw(shards)),
        method,
        rows=2 if method == "ulysses" and draw(st.booleans()) else 0,
        batch=draw(st.integers(1, 2)),
        padded=draw(st.booleans()),
        masked=module in ("self", "cross", "encoder") and draw(st.booleans()),
        made=made,
        numbers=numbers,
        seed=draw(st.integers(0, 2**31)),
    )


def check(case: Case, processes: int = 4, fault: tuple[str, str, str] | None = None) -> None:
    """Fail unless the processes together find the same as one: by torch's own tolerance for
    float64."""
    compare(join(case, shared_pool().run(processes, by_part, case, fault)), by_one(case))


def compare(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert set(found) == set(expected)
    for name, tensor in found.items():
        torch.testing.assert_close(
            tensor, expected[name], msg=lambda text, n=name: f"{n}: {text}"
        )  # fmt: skip


def check_wrapped(case: Case, way: str) -> None:
    """Fail unless every process finds its part of the output and the whole gradients."""
    expected = by_one(case)
    expected = {n: x for n, x in expected.items() if not n.startswith("the gradient of input")}
    found = shared_pool().run(4, run_wrapped, case, way)
    outputs = [one["out"] for one in found]
    for one in found:
        compare(one | {"out": join(case, [{"out": x} for x in outputs])["out"]}, expected)


DROPPED: dict[str, Any] = {"made": {"dropout": 0.4}, "numbers": {"dropout_seed": 7}}
MODEL = Case("transformer", (9, 6), ("zigzag", "uneven"), padded=True, seed=3, **DROPPED)
CASES = [
    Case("self", (9, 9), ("zigzag", "contiguous"), masked=True, padded=True,
         numbers={"is_causal": True}),
    Case("self", (9, 9), ("striped", "contiguous"), numbers={"window": (3, 1)},
         made={"add_zero_attn": True, "num_kv_heads": 2}),
    Case("self", (5, 5), ("any places", "contiguous"), made={"batch_first": False}),
    Case("cross", (7, 9), ("zigzag", "striped"), masked=True, padded=True),
    Case("cross", (7, 9), ("zigzag", "striped"), "ulysses", masked=True, padded=True,
         **DROPPED),
    Case("cross", (6, 9), ("contiguous", "uneven"), "ulysses", rows=2,
         numbers={"is_causal": True, "causal_alignment": "bottom-right"}),
    Case("encoder", (9, 9), ("striped", "contiguous"), "ulysses", padded=True, **DROPPED),
    Case("decoder", (5, 9), ("zigzag", "any places"), padded=True, **DROPPED),
    MODEL,
    Case("transformer", (9, 3), ("zigzag", "uneven"), "ulysses", rows=2, padded=True,
         made={"dropout": 0.0, "positions": TABLE}),
]  # fmt: skip
# Edits in a copy of `pyimpl.modules`, each with a case that shows it.
MUTANTS: dict[str, tuple[tuple[str, str, str], Case]] = {
    "positions from 0 on in every shard": (
        ("transformer.py", "encodings_at(places.double()",
         "encodings_at(torch.arange(len(places)).double()"),
        MODEL,
    ),
    "a table from its first place on in every shard": (
        ("transformer.py", "self.position_table[places]", "self.position_table[: len(places)]"),
        CASES[-1],
    ),
    "dropout from 0 on in every shard": (
        ("internal/drops.py", "places = self.context.places(x.device)",
         "places = torch.arange(length)"),
        MODEL,
    ),
    "sources in the shards of the targets": (
        ("transformer.py", "context.of_keys()\n        drops",
         "context.of_queries()\n        drops"),
        Case("transformer", (8, 8), ("contiguous", "zigzag"), made={"dropout": 0.0}),
    ),
    "targets attend by the shards of the sources": (
        ("decoder.py", "context.of_queries()", "context"),
        Case("decoder", (8, 8), ("contiguous", "zigzag"), made={"dropout": 0.0}),
    ),
    "padding of the memory forgotten": (
        ("decoder.py", "key_mask=memory_key_mask,\n                dropout_seed",
         "dropout_seed"),
        Case("decoder", (5, 9), padded=True, made={"dropout": 0.0}),
    ),
    "every process attends to its own part": (
        ("multi_head_attention.py", "heads = context.attend(*tensors",
         'heads = attention(*tensors, layout="bnhd"'),
        Case("self", numbers={"is_causal": True}),
    ),
}  # fmt: skip
REFUSED = {
    "no context": "TypeError: context_parallel must be a ContextParallel or None, not Shards(",
    "no shards": "TypeError: shards must be Shards, such as Shards.zigzag, not [3, 3]",
    "no method": "ValueError: method must be one of 'ring', 'ulysses', not 'rings'",
    "shards of others": "ValueError: shards must be of the 2 processes of the group, not of 3",
    "an added key": "ValueError: context_parallel must be None with add_bias_kv: the key that it",
    "keys of another sequence": "ValueError: the key_shards of context_parallel must be None where",
    "heads": "ValueError: the heads of query must be a multiple of the number of processes that",
    "a mask of own keys": "ValueError: key_mask must be [batch, kv_len] = [2, 6], not of shape",
    "no seed": "ValueError: dropout_seed must be given with context_parallel, the same in every",
    "no seed for weights": "ValueError: dropout_seed must be given, the same in every process: ",
    "seeds": "ValueError: dropout_seed must be the same in every process of the group, not ",
    "lengths in one": "ValueError: the digest of src_key_mask must be the same in every process",
    "a cache": "ValueError: dropout_seed and context_parallel must be None where the cache has",
    "a table": "ValueError: positions has 5 places, fewer than the 6 tokens",
}
# Those of process 1, which are errors in process 0 too.
REFUSED_IN_ONE = {
    "a width in one": "the last dimension of query must be query_dim, 8, not 7",
    "a token in one": "src must hold tokens from 0 to 10, not 11",
    "a length in one": "src must have the length that its shards give process 1, 3, not 2",
}
