"""The exact vectors through the kernels' TTIR, without any tolerance.

A vector's numbers are rational and its weights powers of two, so a kernel without rounding must
find the expected numbers themselves: outputs, log-sum-exps and gradients. Vectors of functions that
kernels call inside, random words and bounds of loops, run these in kernels of their own (`probes`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from bridge.ttir import probes
from bridge.ttir.launches import Kernels
from bridge.ttir.memory import Memory
from bridge.ttir.rational import RationalDomain
from bridge.ttir.vector_runner import Runner
from bridge.vectors.model.attention import AttentionVector, Vector
from bridge.vectors.model.dropout import DropoutVector, PhiloxVector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import (
    CacheVector,
    CascadeVector,
    GroupedQueryVector,
    Key,
    MergeVector,
    PagedVector,
    TileBoundsVector,
    Tree,
    VarlenVector,
)
from bridge.vectors.model.sampled import SampledVector
from bridge.vectors.model.shards import ShardsVector
from bridge.vectors.model.transformers import LayerVector, TransformerVector
from pyimpl.backends.kernels.parts.sequences import Sequences
from pyimpl.internal.scores import ScoreOptions

_TAKEN = (
    AttentionVector, CacheVector, CascadeVector, DropoutVector, GradientVector, GroupedQueryVector,
    MergeVector, PagedVector, PhiloxVector, TileBoundsVector, VarlenVector,
)  # fmt: skip
# The family that runs through the decoding kernel's splits too.
SPLIT = "split-kv"


def not_run(vector: Vector) -> str | None:
    """Why `differences` does not take a vector; None: it does."""
    if isinstance(vector, LayerVector | TransformerVector):
        return "a layer: PyTorch computes it, and calls kernels for its attention alone"
    if isinstance(vector, SampledVector):
        return "some rows of several heads: all would take hours number by number"
    if isinstance(vector, ShardsVector):
        return "shards of a sequence: each is attention, whose kernels plain vectors run"
    if vector.model != "exact":
        return "its numbers are known between bounds: e^x of a rational number is irrational"
    if not isinstance(vector, _TAKEN):
        return f"no kernel is known for {vector.operation}"
    return None


def differences(
    vector: Vector, splits: int = 0, make: Callable[..., Kernels] = Kernels, **kernels: Any
) -> Iterator[str]:
    """A sentence for each number that differs between the kernels and the vector.

    splits: 0: the forward kernel; else the decoding kernel with so many splits and the combining
    one. Where keys change, lie in pages or come in blocks it is the decoding kernel always.
    make, kernels: a class of kernels and its fields. Raises ValueError for a vector that `not_run`
    gives a reason for, and as `machine.Machine.run` does.
    """
    reason = not_run(vector)
    if reason is not None:
        raise ValueError(f"vector {vector.id} cannot run: {reason}")
    runner = Runner(make(Memory(RationalDomain()), **kernels), splits)
    match vector:
        case VarlenVector():
            yield from _varlen(runner, vector)
        case PagedVector():
            yield from _run_paged(runner, vector)
        case CascadeVector():
            yield from _cascade(runner, vector)
        case MergeVector():
            out, lse = _merge_tree(runner, vector, vector.tree)
            yield from runner.compare([vector.expected], out[0, 0], lse[0, 0], "merged")
        case CacheVector():
            yield from _cache(runner, vector)
        case GradientVector():
            yield from _gradient(runner, vector)
        case AttentionVector():
            yield from _heads(
                runner, vector, [vector.q], [vector.k], [vector.v], (1, 1, 1), [vector.expected]
            )
        case GroupedQueryVector():
            sizes = (1, vector.num_heads, vector.num_kv_heads)
            yield from _heads(runner, vector, vector.q, vector.k, vector.v, sizes, vector.expected)
        case DropoutVector():
            sizes = (vector.batch, vector.num_heads, vector.num_kv_heads)
            yield from _heads(runner, vector, vector.q, vector.k, vector.v, sizes, vector.expected)
        case PhiloxVector():
            found = probes.words(runner.kernels, vector.key, vector.counters, vector.rounds)
            yield from _tell(found, vector.expected, "words of counter")
        case TileBoundsVector():
            bounds = probes.visits(
                runner.kernels, vector.q_len, vector.kv_len, vector.block_m, vector.block_n,
                vector.mask.window,
            )  # fmt: skip
            yield from _tell(bounds, vector.expected, "visited by tile")


def _tell(found: Sequence[Any], expected: Sequence[Any], name: str) -> Iterator[str]:
    for number, (one, wanted) in enumerate(zip(found, expected, strict=True)):
        if one != wanted:
            yield f"{name} {number} are {one}, not {wanted}"


def _heads(
    runner: Runner, vector: Any, q: Any, k: Any, v: Any, sizes: tuple[int, int, int], expected: Any
) -> Iterator[str]:
    """Attention of heads: matrices [batch · heads], and rows that are expected of each."""
    out, lse, _ = runner.attention(vector, q, k, v, sizes)
    heads = sizes[1]
    for number, rows in enumerate(expected):
        place = (number // heads, number % heads)
        yield from runner.compare(rows, out[place], lse[place], f"head {number}")


def _varlen(runner: Runner, vector: VarlenVector) -> Iterator[str]:
    q = runner.tensor(runner.apply_sign(vector, vector.q), len(vector.q), 1, vector.head_dim)
    k = runner.tensor(vector.k, len(vector.k), 1, vector.head_dim)
    v = runner.tensor(vector.v, len(vector.v), 1, vector.value_dim)
    cu_q, cu_k = (
        torch.tensor(x, dtype=torch.int32) for x in (vector.cu_seqlens_q, vector.cu_seqlens_k)
    )
    longest = max(b - a for a, b in pairwise(vector.cu_seqlens_q))
    longest_k = max(b - a for a, b in pairwise(vector.cu_seqlens_k))
    sequences = Sequences(cu_q, cu_k, longest, longest_k, vector.alignment == "bottom-right")
    window = vector.masks[0].window
    bounds: dict[str, Any] = {} if window is None else {"left": window.left, "right": window.right}
    options = ScoreOptions(runner.scale(vector.scale), **bounds)
    out, lse = runner.kernels.varlen(q, k, v, sequences, options)
    yield from runner.compare(vector.expected, out[:, 0], lse[0], "packed")


def _run_paged(runner: Runner, vector: PagedVector) -> Iterator[str]:
    pages, size = vector.num_pages, vector.page_size
    batch, table = len(vector.q), vector.filled_tables()
    out, lse = runner.kernels.decode(
        runner.tensor(runner.apply_sign(vector, vector.q), batch, 1, 1, vector.head_dim),
        runner.tensor(vector.k, pages, 1, size, vector.head_dim),
        runner.tensor(vector.v, pages, 1, size, vector.value_dim),
        ScoreOptions(runner.scale(vector.scale)),
        splits=max(1, runner.splits),
        kv_lens=torch.tensor(vector.lengths, dtype=torch.int32),
        page_table=torch.tensor(table, dtype=torch.int32).reshape(batch, len(table[0])),
    )
    yield from runner.compare(vector.expected, out[:, 0, 0], lse[:, 0, 0], "paged")


def _gradient(runner: Runner, vector: GradientVector) -> Iterator[str]:
    """The forward kernel, then all of the backward pass. Where queries are multiplied before, their
    gradient is not the kernels' alone."""
    sizes = (1, vector.num_heads, vector.num_kv_heads)
    queries = tuple(head.q for head in vector.attentions())
    given = runner.backward_arguments(vector, queries)
    found = runner.kernels.backward(*given, runner.options(vector, sizes))
    if vector.bias is None:
        # The gradient by a bias of 0 is expected too.
        zeros = runner.wide(0, 1, vector.num_heads, vector.q_len, vector.kv_len)
        options = runner.options(vector, sizes, bias=zeros)
        found["bias"] = runner.kernels.backward(*given, options)["bias"]
    if queries != vector.q:
        del found["query"]
    yield from runner.compare_gradients(vector, found)


def _cascade(runner: Runner, vector: CascadeVector) -> Iterator[str]:
    """Run the steps of `pyimpl.attention_cascade`: the prefix by the forward kernel, all queries as
    those of one request; the suffixes by the decoding kernel; both combined."""
    batch, longest = len(vector.q), max(map(len, vector.suffix_k))
    prefix, dim, value_dim = len(vector.prefix_k), vector.head_dim, vector.value_dim
    options = ScoreOptions(runner.scale(vector.scale))
    q = runner.apply_sign(vector, vector.q)
    out, lse = runner.kernels.forward(
        runner.tensor(q, 1, 1, batch, dim),
        runner.tensor(vector.prefix_k, 1, 1, prefix, dim),
        runner.tensor(vector.prefix_v, 1, 1, prefix, value_dim),
        options,
    )
    keys = [[*k, *[(0,) * dim] * (longest - len(k))] for k in vector.suffix_k]
    values = [[*v, *[(0,) * value_dim] * (longest - len(v))] for v in vector.suffix_v]
    own = runner.kernels.decode(
        runner.tensor(q, batch, 1, 1, dim),
        runner.tensor(keys, batch, 1, longest, dim),
        runner.tensor(values, batch, 1, longest, value_dim),
        options,
        splits=max(1, runner.splits),
        kv_lens=torch.tensor([*map(len, vector.suffix_k)], dtype=torch.int32),
    )
    first = (out.view(batch, 1, 1, value_dim), lse.view(batch, 1, 1))
    out, lse = runner.combine(first, own)
    yield from runner.compare(vector.expected, out[:, 0, 0], lse[:, 0, 0], "cascade")


def _attend_scores(runner: Runner, keys: Sequence[Key], value_dim: int) -> tuple[Tensor, Tensor]:
    """One query over keys that are given by their scores: `[1, 1, 1, value_dim]` and
    `[1, 1, 1]`."""
    scores = [(0 if key.score is None else key.score,) for key in keys]
    seen = torch.tensor([key.score is not None for key in keys], dtype=torch.bool)
    return runner.kernels.decode(
        runner.tensor(1, 1, 1, 1, 1),
        runner.tensor(scores, 1, 1, len(keys), 1),
        runner.tensor([key.value for key in keys], 1, 1, len(keys), value_dim),
        ScoreOptions(runner.scale(1), mask=seen.reshape(1, len(keys))),
        splits=max(1, runner.splits),
    )


def _merge_tree(runner: Runner, vector: MergeVector, tree: Tree) -> tuple[Tensor, Tensor]:
    """A block by the decoding kernel, two trees by the combining one."""
    if isinstance(tree, int):
        return _attend_scores(runner, vector.blocks[tree], vector.value_dim)
    return runner.combine(*(_merge_tree(runner, vector, part) for part in tree))


def _cache(runner: Runner, vector: CacheVector) -> Iterator[str]:
    """The decoding kernel over the keys that there are, at first and after each change."""
    keys = list(vector.keys)
    for number, state in enumerate(vector.expected):
        if number:
            keys = vector.edits[number - 1].apply(keys)
        out, lse = _attend_scores(runner, keys, vector.value_dim)
        yield from runner.compare([state], out[0, 0], lse[0, 0], f"after change {number}")
