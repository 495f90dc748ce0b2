"""Mistakes that other implementations of attention in shards made, or that could be made: edits in
a copy of `pyimpl.distributed`, each with a case that shows it."""

from __future__ import annotations

from dataclasses import replace

import torch
from shard_cases import Case

NARROW = Case((64, 64), "contiguous", dims=(16, 16), dtype=torch.bfloat16)
LONG = Case((12, 12), "contiguous", numbers={"is_causal": True})
DOCUMENTS = Case((13, 13), "contiguous", documents=True, seed=1)
DROPPED = Case((12, 12), "zigzag", numbers={"dropout_p": 0.4, "dropout_seed": 3})
IN_ROWS = Case(
    (16, 16), "zigzag", kv_heads=2, rows=2, function="ulysses_attention",
    numbers={"is_causal": True},
)  # fmt: skip
# Mistakes that others made or could make: edits in a copy of the package, each with a case that
# shows it.
MUTANTS: dict[str, tuple[tuple[str, str, str], int, Case]] = {
    # huggingface/diffusers issue 14265
    "stale keys in the backward pass": (
        ("internal/ring.py", "query[:, :, rows], k[:, :, keys], v[:, :, keys], out",
         "query[:, :, rows], key[:, :, keys], value[:, :, keys], out"),
        2, LONG,
    ),
    # zhuzilin/ring-flash-attention issue 42
    "partial outputs rounded to 16 bits": (
        ("internal/ring.py", "wide=True,\n            )  # fmt: skip\n            before = out",
         ")  # fmt: skip\n            before = out"),
        4, NARROW,
    ),
    # TransformerEngine issues 1557 and 1930
    "one token dropped at odd lengths": (
        ("internal/shards.py", "stop - start, 1)", "(stop - start) // 2 * 2 or 1, 1)"),
        2, Case((14, 14), "contiguous"),
    ),
    # axolotl issue 3608
    "documents ignored": (
        ("internal/blocks.py", "if sequence.documents is None:\n        yield",
         "if True:\n        yield"),
        2, DOCUMENTS,
    ),
    "wrong shift in the second half of zigzag": (
        ("internal/blocks.py", "a.first + sequence.shift - b.first",
         "queries[0].first + sequence.shift - b.first"),
        2, Case((12, 12), "zigzag", numbers={"is_causal": True}),
    ),
    "one round too few": (
        ("internal/blocks.py", "return t + 1", "return t"),
        3, LONG,
    ),
    "a sink in every round": (
        ("internal/ring.py", "    options = replace(options, sinks=None)\n", ""),
        2, Case((8, 8), tensors=("sinks",)),
    ),
    "dropout counted from the shard": (
        ("internal/blocks.py", "dropout.from_row(a.first, b.first)",
         "dropout.from_row(a.start, b.start)"),
        2, DROPPED,
    ),
    "gradients of keys that stay where they are": (
        ("internal/passing.py", "away == 0", "True"),
        2, LONG,
    ),
    "no gradient of the log-sum-exp": (
        ("internal/ring.py", "None if grad_lse is None else grad_lse.to(wide)", "None"),
        2, LONG,
    ),
    "causal and aligned to the shard": (
        ("internal/blocks.py", "distance if step == 1 else 0)", "0)"),
        2, LONG,
    ),
    "a stripe too far": (
        ("internal/blocks.py", "shift = (distance + right) // step",
         "shift = -((-distance - right) // step)"),
        3, Case((14, 14), "striped", numbers={"is_causal": True}),
    ),
    "ALiBi's slopes without a gradient by place": (
        ("internal/ring.py", "slopes = -(block.distance.abs() * by_bias)",
         "slopes = -(0 * by_bias)"),
        2, Case((8, 8), "striped", tensors=("slopes",)),
    ),
    "heads traded back out of order": (
        ("ulysses.py", "pieces = [shards.take(part, p) for p in range(processes.count)]",
         "pieces = [shards.take(part, p) for p in reversed(range(processes.count))]"),
        2, Case((8, 8), kv_heads=4, function="ulysses_attention"),
    ),
    "dropout of the first heads for all": (
        ("ulysses.py", "from_head(count, 0, heads.start)", "from_head(count, 0, 0)"),
        2, Case((8, 8), kv_heads=4, function="ulysses_attention",
                numbers={"dropout_p": 0.4, "dropout_seed": 3}),
    ),
    "heads of another row of the mesh": (
        ("ulysses.py", "some = slice(row.rank * part, (row.rank + 1) * part)",
         "some = slice(column.rank * part, (column.rank + 1) * part)"),
        4, replace(IN_ROWS, tensors=("slopes",)),
    ),
    "masks of the queries of the first row": (
        ("ulysses.py", "queries.places[column.rank]", "queries.places[0]"),
        4, replace(IN_ROWS, tensors=("mask",)),
    ),
    "every second process for a row": (
        ("internal/shards.py", "shards.places[i : i + width]",
         "shards.places[i // width :: shards.processes // width]"),
        4, IN_ROWS,
    ),
}  # fmt: skip
