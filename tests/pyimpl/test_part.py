"""A call of `attention` as a part of a larger one: the parts of a whole, put together, are it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any
from unittest import mock

import pytest
import torch
from attention_checks import inputs
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pyimpl import Part, attention, merge_states
from pyimpl.internal.scores import CHANGES, ScoreOptions

DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
# Of 16 bits these are rounded once, in parts too; a gradient by keys is the sum of rounded ones.
ROUNDED_ONCE = ("out", "lse", "query")
# Slices of a part, along batch, heads, queries and keys.
Slices = tuple[slice, slice, slice, slice]


@dataclass(frozen=True)
class Whole:
    """A whole call. cuts: where it is cut, along batch, heads of keys, queries and keys. tensors:
    of `TENSORS`; numbers: arguments of `attention`."""

    shape: tuple[int, int, int, int]
    group: int
    dtype: torch.dtype
    cuts: tuple[list[int], list[int], list[int], list[int]]
    tensors: tuple[str, ...] = ()
    numbers: dict[str, Any] = field(default_factory=dict)
    seed: int = 0

    @property
    def sizes(self) -> tuple[int, int, int, int]:
        batch, kv_heads, q_len, kv_len = self.shape
        return batch, kv_heads * self.group, q_len, kv_len

    def make(self) -> dict[str, Tensor]:
        """All tensors, as leaves."""
        query, key, value, _ = inputs(
            (*self.shape, 4, 3), self.dtype, seed=self.seed, group=self.group
        )
        found = {"query": query, "key": key, "value": value}
        generator = torch.Generator().manual_seed(self.seed)
        found |= {name: TENSORS[name](self.sizes, generator) for name in self.tensors}
        for name, tensor in found.items():
            if name != "attn_mask":
                kind = torch.float64 if self.dtype == torch.float64 else torch.float32
                kind = self.dtype if name in ("query", "key", "value") else kind
                found[name] = tensor.to(kind).requires_grad_()
        return found

    def slices(self) -> Iterator[Slices]:
        """The parts but for their keys, each with slices of all keys."""
        ends = [
            pairwise(sorted({0, n, *(cut for cut in cuts if cut <= n)}) or [0, 0])
            for n, cuts in zip(self.shape, self.cuts, strict=True)
        ]
        batches, heads, queries, keys = ([slice(*pair) for pair in axis] for axis in ends)
        for b in batches:
            for h in heads:
                for i in queries:
                    for j in keys:
                        yield b, h, i, j


Drawn = Callable[[tuple[int, int, int, int], torch.Generator], Tensor]
OF_HEADS = [change for change in CHANGES if change.kind == "head"]
# Options that are tensors; factors of scores are not to be small.
TENSORS: dict[str, Drawn] = {
    "attn_mask": lambda sizes, g: torch.rand(sizes, generator=g) < 0.7,
    "bias": lambda sizes, g: torch.randn((1, *sizes[1:]), generator=g),
    **{
        change.name: lambda sizes, g, by_batch=change.by_batch: (
            torch.rand(sizes[0 if by_batch else 1 : 2], generator=g) + 0.5
        )
        for change in OF_HEADS
    },
}


def of_part(whole: Whole, given: dict[str, Tensor], some: Slices, backend: str) -> Any:
    """Output and log-sum-exp of a part."""
    b, h, i, j = some
    heads = slice(h.start * whole.group, h.stop * whole.group)
    tensors = {
        "query": given["query"][b, heads, i],
        "key": given["key"][b, h, j],
        "value": given["value"][b, h, j],
    }
    if "attn_mask" in given:
        tensors["attn_mask"] = given["attn_mask"][b, heads, i, j]
    if "bias" in given:
        tensors["bias"] = given["bias"][:, heads, i, j]
    for change in OF_HEADS:
        # A sink is a part of its own, which one of those of the keys has.
        if change.name in given and (change.name != "sinks" or j.start == 0):
            tensors[change.name] = change.part(given[change.name], b, heads)
    part = Part(whole.sizes, b.start, heads.start, i.start, j.start)
    return attention(
        **tensors, enable_gqa=True, return_lse=True, part=part, backend=backend, **whole.numbers
    )


def by_parts(whole: Whole, given: dict[str, Tensor], backend: str) -> tuple[Tensor, Tensor]:
    """The parts, merged over keys and put side by side."""
    by_place: dict[tuple[int, int, int], list[Any]] = {}
    for some in whole.slices():
        place = (some[0].start, some[1].start, some[2].start)
        by_place.setdefault(place, []).append(of_part(whole, given, some, backend))
    merged = {
        place: merge_states(*(torch.stack(x) for x in zip(*found, strict=True)))
        for place, found in by_place.items()
    }
    for axis in (2, 1, 0):
        joined: dict[tuple[int, ...], list[Any]] = {}
        for place, found in merged.items():
            joined.setdefault(place[:axis], []).append(found)
        merged = {
            place: tuple(torch.cat(x, axis) for x in zip(*found, strict=True))
            for place, found in joined.items()
        }
    (result,) = merged.values()
    return result


def compare(whole: Whole, backend: str, by: str = "tiled") -> None:
    """Fail unless parts and whole have the same outputs and gradients, by torch's own tolerance for
    the dtype; of 16 bits those that are `ROUNDED_ONCE`, with all keys in each part and by one
    backend, since each rounds the row numbers in a way of its own."""
    narrow = whole.dtype.itemsize == 2
    if narrow:
        whole, by = replace(whole, cuts=(*whole.cuts[:3], [])), backend
    found = []
    for parts in (False, True):
        given = whole.make()
        if parts:
            out, lse = by_parts(whole, given, backend)
        else:
            out, lse = attention(
                **given, enable_gqa=True, return_lse=True, backend=by, **whole.numbers
            )
        generator = torch.Generator().manual_seed(1)
        by_out, by_lse = (
            torch.randn(x.shape, generator=generator, dtype=torch.float64).to(x.dtype)
            for x in (out, lse)
        )
        names = [name for name in given if name != "attn_mask"]
        # The gradient of −∞ is not asked for.
        seen = torch.where(lse.isfinite(), lse, 0.0)
        grads = torch.autograd.grad((out, seen), [given[name] for name in names], (by_out, by_lse))
        found.append({"out": out, "lse": lse, **dict(zip(names, grads, strict=True))})
    expected, result = found
    for name in ROUNDED_ONCE if narrow else expected:
        torch.testing.assert_close(
            result[name], expected[name], msg=lambda text, name=name: f"{name}: {text}"
        )


@st.composite
def wholes(draw: Callable[..., Any]) -> Whole:
    batch, kv_heads, group = draw(st.integers(1, 3)), draw(st.integers(1, 3)), 1
    group = draw(st.integers(1, 2))
    shape = (batch, kv_heads, draw(st.integers(1, 14)), draw(st.integers(1, 14)))
    cuts = tuple(draw(st.lists(st.integers(1, n), max_size=2)) for n in shape)
    numbers: dict[str, Any] = {
        "is_causal": draw(st.booleans()),
        "causal_alignment": draw(st.sampled_from(["top-left", "bottom-right"])),
        "window": draw(st.tuples(*[st.none() | st.integers(0, 12)] * 2)),
        "softcap": draw(st.none() | st.just(1.5)),
    }
    if draw(st.booleans()):
        numbers |= {"dropout_p": 0.4, "dropout_seed": draw(st.integers(0, 2**63 - 1))}
    tensors = draw(st.lists(st.sampled_from(sorted(TENSORS)), unique=True))
    dtype = draw(st.sampled_from(DTYPES))
    return Whole(shape, group, dtype, cuts, tuple(tensors), numbers, draw(st.integers(0, 99)))


@settings(max_examples=60, deadline=None)
@given(wholes(), st.sampled_from(["tiled", "reference"]))
def test_parts_of_any_call_are_the_whole(whole: Whole, backend: str) -> None:
    compare(whole, backend)


EVERYTHING: dict[str, Any] = {
    "is_causal": True, "causal_alignment": "bottom-right", "window": (9, None),
    "dropout_p": 0.4, "dropout_seed": 11,
}  # fmt: skip
FIXED = Whole(
    (2, 2, 11, 14), 2, torch.float32, ([1], [1], [3], [6]), ("alibi_slopes", "bias", "sinks"),
    EVERYTHING,
)  # fmt: skip


@pytest.mark.parametrize("backend", ["triton", "tiled", "reference"])
def test_parts_by_every_backend(backend: str) -> None:
    """Cut inside of the four keys that share a call of the generator."""
    compare(FIXED, backend)


def test_parts_longer_than_a_tile_of_the_kernels() -> None:
    compare(replace(FIXED, shape=(1, 1, 40, 70), cuts=([], [], [5], [35]), tensors=()), "triton")


def test_of_float64_the_parts_agree_to_the_last_digits() -> None:
    for backend in ("tiled", "reference"):
        compare(replace(FIXED, dtype=torch.float64, tensors=tuple(TENSORS)), backend)


AT = ScoreOptions.at
# Mistakes of a part about its place.
MUTANTS: dict[str, Callable[[ScoreOptions, Part], ScoreOptions]] = {
    "the first query stands at 0": lambda o, p: replace(AT(o, p), shift=o.shift - p.first_key),
    "the first key stands at 0": lambda o, p: replace(AT(o, p), shift=o.shift + p.first_query),
    "the first key the wrong way": lambda o, p: replace(
        AT(o, p), shift=o.shift + p.first_query + p.first_key
    ),
    "dropout of the first batches": lambda o, p: replace(
        AT(o, p), dropout=AT(o, replace(p, first_batch=0)).dropout
    ),
    "dropout of the first heads": lambda o, p: replace(
        AT(o, p), dropout=AT(o, replace(p, first_head=0)).dropout
    ),
    "dropout of the first queries": lambda o, p: replace(
        AT(o, p), dropout=AT(o, replace(p, first_query=0)).dropout
    ),
    "dropout of the first keys": lambda o, p: replace(
        AT(o, p), dropout=AT(o, replace(p, first_key=0)).dropout
    ),
    "dropout of batches with the heads of the part": lambda o, p: replace(
        AT(o, p), dropout=AT(o, replace(p, whole=(p.whole[0], 2, *p.whole[2:]))).dropout
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", MUTANTS)
def test_parts_in_wrong_places_are_seen(fault: str) -> None:
    whole = replace(FIXED, dtype=torch.float64, tensors=())
    with (
        mock.patch.object(ScoreOptions, "at", MUTANTS[fault]),
        pytest.raises(AssertionError, match="out: "),
    ):
        compare(whole, "tiled")


def test_the_numbers_of_another_call_give_another_alignment() -> None:
    """Bottom-right is the corner of the whole."""
    query, key, value, _ = inputs((1, 1, 3, 4, 8, 8), torch.float64)
    options: dict[str, Any] = {"is_causal": True, "causal_alignment": "bottom-right"}
    found = attention(query, key, value, part=Part((1, 1, 5, 9), first_key=4), **options)
    # Query 0 stands at 4 of the whole, and so at the first of these keys.
    assert torch.equal(found, attention(query, key, value, is_causal=True))


def test_under_transforms_and_with_second_derivatives() -> None:
    """There attention is computed by its definition."""
    given = FIXED.make()
    query, key, value = (given[name].double().detach() for name in ("query", "key", "value"))
    part = Part((3, 6, 20, 30), 1, 2, 5, 3)

    def once(query: Tensor) -> Tensor:
        return attention(
            query, key, value, enable_gqa=True, part=part, **EVERYTHING
        ).cos().sum()  # fmt: skip

    leaf = query.clone().requires_grad_()
    (expected,) = torch.autograd.grad(once(leaf), leaf)
    torch.testing.assert_close(torch.func.grad(once)(query), expected)
    (first,) = torch.autograd.grad(once(leaf), leaf, create_graph=True)
    torch.testing.assert_close(first, expected)


def test_one_graph_serves_all_places() -> None:
    graphs = 0

    def count(graph: Any, example: Any) -> Any:
        nonlocal graphs
        graphs += 1
        return graph.forward

    given = {name: FIXED.make()[name].detach() for name in ("query", "key", "value")}

    def once(first_query: int, first_key: int) -> Any:
        part = Part((3, 6, 40, 50), 1, 2, first_query, first_key)
        return attention(
            **given, enable_gqa=True, part=part, backend="tiled", return_lse=True, **EVERYTHING
        )

    torch.compiler.reset()
    compiled = torch.compile(once, fullgraph=True, backend=count, dynamic=True)
    for places in ((2, 3), (5, 9), (13, 4)):
        for one, other in zip(compiled(*places), once(*places), strict=True):
            assert torch.equal(one, other)
    assert graphs == 1


def test_exported_for_other_lengths() -> None:
    class Half(torch.nn.Module):
        """The second half of the keys."""

        def forward(self, query: Tensor, key: Tensor) -> Any:
            batch, heads, length, _ = query.shape
            part = Part((batch, heads, length, 2 * key.shape[2]), first_key=key.shape[2])
            return attention(
                query, key, key, part=part, is_causal=True, dropout_p=0.5, dropout_seed=3
            )

    dynamic = torch.export.Dim.DYNAMIC
    program = torch.export.export(
        Half(), (torch.randn(2, 4, 9, 8), torch.randn(2, 4, 6, 8)),
        dynamic_shapes=({2: dynamic}, {2: dynamic}), strict=False,
    ).module()  # fmt: skip
    query, key = torch.randn(2, 4, 12, 8), torch.randn(2, 4, 7, 8)
    assert torch.equal(program(query, key), Half()(query, key))


REFUSALS: list[tuple[Callable[[], Any], dict[str, Any], type[Exception], str]] = [
    (lambda: (1, 2, 3, 4), {}, TypeError, r"part must be a pyimpl.Part or None, not \(1, 2, 3, 4"),
    (lambda: Part(7), {}, TypeError, r"whole must be \(batch, heads, q_len, kv_len\), not 7"),
    (lambda: Part((1, 2, 3)), {}, TypeError, r"whole must be \(batch, heads, q_len, kv_len\), not"),
    (lambda: Part((1, 2, 3, 4.0)), {}, TypeError, "whole must be of whole numbers, not 4.0"),
    (lambda: Part((1, 2, 3, -4)), {}, ValueError, "whole must be at least 0, not -4"),
    (lambda: Part((1, 2, 3, 4), first_key=True), {}, TypeError,
     "first_key must be a whole number, not True"),
    (lambda: Part((1, 2, 3, 4), first_head=-1), {}, ValueError,
     "first_head must be at least 0, not -1"),
    (lambda: Part((1, 2, 3, 2**31)), {}, ValueError, "whole must have batch · heads, q_len"),
    (lambda: Part((2**16, 2**15, 3, 4)), {}, ValueError, "whole must have batch · heads, q_len"),
    (lambda: Part((1, 2, 3, 4), first_query=1), {}, ValueError,
     r"part must lie inside of the whole, whose q_len is 3, and not end at 1 \+ 3"),
    (lambda: Part((0, 2, 3, 4)), {}, ValueError,
     r"part must lie inside of the whole, whose batch is 0, and not end at 0 \+ 1"),
    (lambda: Part((1, 2, 3, 4)), {"dropout_p": 0.5}, ValueError,
     "dropout_seed must be given with part, the same for all parts"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("part", "options", "error", "message"), REFUSALS, ids=range(len(REFUSALS))
)
def test_refusals(
    part: Callable[[], Any], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    query, key = torch.zeros(1, 2, 3, 4), torch.zeros(1, 2, 4, 4)
    with pytest.raises(error, match=f"^{message}") as caught:
        attention(query, key, key, part=part(), **options)
    assert "\n" not in str(caught.value)
