"""DTensors: any case of them against one process, and mistakes in the rules with a case that shows
each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from dtensor_jobs import Case, by_mesh, by_one
from hypothesis import strategies as st
from process_pool import shared_pool
from shard_cases import FOLDED, TENSORS, argument

MESHES = [(4,), (2, 2)]


@st.composite
def cases(draw: Any) -> Case:
    """Any case."""
    mesh = draw(st.sampled_from(MESHES))
    names = draw(st.lists(st.sampled_from(sorted(TENSORS)), max_size=3, unique_by=argument))
    if "floating mask" in names:
        names = [n for n in names if argument(n) != "bias"]
    bounds = st.none() | st.integers(0, 4)
    numbers = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "is_causal": st.booleans(),
                "causal_alignment": st.sampled_from(["top-left", "bottom-right"]),
                "window": st.tuples(bounds, bounds),
                "softcap": st.just(1.5),
            },
        )
    )
    if draw(st.booleans()):
        numbers |= {"dropout_p": 0.4, "dropout_seed": draw(st.integers(0, 2**63 - 1))}
    placements = st.sampled_from(["batch", "heads", "rows", "all", "sum"])
    return Case(
        mesh,
        tuple(draw(placements) for _ in mesh),
        batch=draw(st.integers(1, 3)),
        heads=draw(st.sampled_from([(4, 4), (4, 2), (4, 1), (6, 2), (3, 3), (8, 4)])),
        lengths=(draw(st.integers(1, 7)), draw(st.integers(1, 7))),
        whole_keys=draw(st.booleans()),
        tensors=tuple(names),
        plain=draw(st.booleans()),
        bnhd=draw(st.booleans()),
        numbers=numbers,
        seed=draw(st.integers(0, 2**31)),
    )


def check(case: Case, fault: tuple[str, str] | None = None) -> None:
    """Fail unless every process finds the same as one alone, by torch's tolerance for float64."""
    expected = by_one(case)
    for found in shared_pool().run(4, by_mesh, case, fault):
        for name, tensor in found.items():
            torch.testing.assert_close(
                tensor, expected[name], msg=lambda text, n=name: f"{n}: {text}"
            )


ALL: dict[str, Any] = {"dropout_p": 0.4, "dropout_seed": 3, "window": (3, 2), "softcap": 1.5}
CASES = [
    Case((4,), ("sum",)),
    Case((4,), ("batch",), batch=3, tensors=("slopes of each batch", "mask")),
    Case((4,), ("rows",), numbers={"is_causal": True, "causal_alignment": "bottom-right"}),
    Case((4,), ("heads",), heads=(3, 3), tensors=("sinks", "masking bias"), numbers=ALL),
    Case((2, 2), ("batch", "heads"), tensors=("slopes", "sinks", "bias"), numbers=ALL),
    Case((2, 2), ("heads", "heads"), heads=(6, 2), tensors=(*FOLDED, "floating mask"),
         bnhd=True),
    Case((2, 2), ("rows", "heads"), tensors=("mask", "bias of queries"), plain=True,
         whole_keys=True, numbers=ALL),
    Case((2, 2), ("rows", "rows"), batch=1, lengths=(5, 5), numbers={"is_causal": True}),
]  # fmt: skip
CAUSAL: dict[str, Any] = {"is_causal": True}
DROPPED: dict[str, Any] = {"dropout_p": 0.4, "dropout_seed": 3}
ROWS = Case((4,), ("rows",), lengths=(8, 8), numbers=CAUSAL)
HEADS = Case((4,), ("heads",), heads=(4, 4))
PLACE = "place = Part(whole, *(held.start for held in (batches, own, rows)))"
MUTANTS: dict[str, tuple[tuple[str, str], Case]] = {
    "each process begins at place 0": (
        (PLACE, "place = Part(whole, batches.start, own.start)"), ROWS,
    ),
    "the second process begins at a place of its own": (
        (PLACE, "place = Part(whole, batches.start, own.start, rows.start + (rows.start == 2))"),
        ROWS,
    ),
    "heads exchanged": (
        ("held = held[here[number] * each : (here[number] + 1) * each]",
         "held = held[::-1][here[number] * each : (here[number] + 1) * each][::-1]"),
        replace(HEADS, numbers=DROPPED),
    ),
    "dropout of the first heads in all": (
        (PLACE, "place = Part(whole, batches.start, 0, rows.start)"),
        replace(HEADS, numbers=DROPPED),
    ),
    "dropout of the first queries in all": (
        ("options.at(self.place)",
         "options.at(replace(self.place, first_query=0)), shift=options.at(self.place).shift"),
        replace(ROWS, numbers=DROPPED),
    ),
    "gradients of keys that are not summed": (
        ("Partial() if role is not None and axes[role] is None else placement", "placement"), ROWS,
    ),
    "gradients of keys of all processes that do the same, summed": (
        ("Partial() if role is not None and axes[role]", "Partial() if role is None or axes[role]"),
        replace(HEADS, placed=("all",)),
    ),
    "heads of keys counted as those of queries": (
        ("[head // group for head in own]", "[head % key.shape[1] for head in own]"),
        replace(HEADS, heads=(4, 2)),
    ),
    "a share of a sum taken for the sum": (
        ("return tensor.redistribute(placements=self.placements(axes)).to_local()",
         "return tensor.to_local()"),
        Case((4,), ("sum",)),
    ),
}  # fmt: skip
# A call that is refused, and by which words.
REFUSED = {
    "rows of keys": "ValueError: key must not be sharded along its length, for its queries are on "
    "other processes too: call pyimpl.distributed.ring_attention with local tensors",
    "two ways": "ValueError: query, key and value must be sharded alike by each dimension of the "
    "mesh, not query along dimension 1 and key along dimension 0",
    "last dimension": "ValueError: query must not be sharded along its last dimension",
    "no DTensor": "TypeError: query, key and value must all be DTensors, which key is not",
    "another mesh": "ValueError: value must be on the mesh of query, ",
    "no seed": "ValueError: dropout_seed must be given for DTensors, the same in every process: ",
    "varlen": "NotImplementedError: attention_varlen takes no DTensors: call it with local tensors",
    "ring": "TypeError: query must be the tensor of this process, not a DTensor: give to_local()",
}
