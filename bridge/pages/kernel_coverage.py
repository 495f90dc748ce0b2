"""`docs/kernel-coverage.md`: how far each Triton kernel is checked, feature by feature."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.conformance.adapters.layouts import TAKEN as LAYOUTS
from bridge.pages.map_data import Maps
from bridge.pages.render import render
from bridge.proving.own import SUBJECTS
from bridge.ttir.classes import EDGES, features
from bridge.ttir.compare import Shape
from bridge.ttir.shapes import BACKWARD, DECODE, FORWARD
from bridge.ttir.texts import TEXTS, Text
from bridge.ttir.vectors import SPLIT, not_run
from bridge.vectors.model.attention import AttentionVector, Family, Mask, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import CacheVector, MergeVector, VarlenVector
from pyimpl.backends.kernels.offline.cases import KERNELS, cases
from pyimpl.backends.kernels.parts.launch import padded_size
from pyimpl.internal.scores import KERNEL_CHANGES

PAGE = "docs/kernel-coverage.md"
# Kernels that know nothing of scores: all that they are asked for is one row.
_WITHOUT_SCORES = ("rows", "combine")
_BACKWARD = ("rows", "keys", "queries", "bias")
# The kernels that a vector of an operation runs, with tolerances.
RUN_BY = {
    "attention": ("forward",),
    "dropout": ("forward",),
    "grouped-query": ("forward",),
    "cascade": ("forward", "decode"),
    "varlen": ("varlen",),
    "paged": ("paged",),
    "combine": (),
    "shards": ("forward",),
    "gradient": ("forward", *_BACKWARD),
}
# The kernels that run a family exactly: PyTorch combines parts there, the combining kernel here.
EXACTLY_BY = {
    **RUN_BY,
    "cascade": ("forward", "decode", "combine"),
    "paged": ("paged", "combine"),
    "merge": ("decode", "combine"),
    "cache": ("decode", "combine"),
    # They run functions that kernels call inside, in a kernel of its own.
    "philox": (),
    "tile-bounds": (),
}
# The titles in `features` for the cases of `cases`.
_WIDE = "16 bits in, float32 out"
_GRID = "a grid of fixed programs"
_CASES = {
    "": "full",
    "causal": "right edge",
    "wide": _WIDE,
    "grid": _GRID,
    **{change.feature: change.title for change in KERNEL_CHANGES},
}
_ORDER = (
    "all", *EDGES.values(), "padded head size", "packed", "mask",
    *(change.title for change in KERNEL_CHANGES), "dropout", _WIDE, _GRID,
)  # fmt: skip


@dataclass
class Row:
    """The coverage of one feature of a kernel, with others or alone: texts that are proved, with
    the ids of their theorems; shapes of which all inputs are looked at; and families with how many
    of their vectors are, exactly and with tolerances."""

    proved: dict[str, list[str]] = field(default_factory=dict)
    shapes: list[str] = field(default_factory=list)
    exact: dict[str, int] = field(default_factory=dict)
    vectors: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Kernel:
    """name: as `kernels.offline.compile` has it; file: from the root, function: the kernel's."""

    name: str
    file: str
    function: str
    rows: dict[str, Row]


def page(maps: Maps, families: Sequence[Family]) -> str:
    """The text of the page."""
    theorems = {theorem.lean: theorem.id for theorem in maps.theorems.values()}
    return render(
        "kernel-coverage.md.jinja",
        kernels=kernels(families, theorems),
        reasons=reasons(families),
    )


def kernels(
    families: Sequence[Family], theorems: Mapping[str, str], texts: Iterable[Text] = TEXTS
) -> list[Kernel]:
    """All kernels, in the order of `kernels.offline.cases`, each with a row for each feature that
    it has or that was looked at. theorems: ids by their Lean names."""
    found: dict[str, dict[str, Row]] = {name: defaultdict(Row) for name in KERNELS}
    for case in cases():
        words = {_CASES.get(word, word) for word in case.features.split("+")}
        for feature in _of_kernel(case.kernel, words):
            found[case.kernel][feature]
    for text in texts:
        ids = [
            id
            for name, id in theorems.items()
            if name.startswith(f"Attention.Kernel.{text.family}.")
        ]
        asked = features(text.launch())
        name = "varlen" if "packed" in asked else "forward"
        for feature in _of_kernel(name, asked) if ids else ():
            found[name][feature].proved[text.what] = ids
    for name, shape in _shapes():
        for feature in _of_kernel(name, _of_shape(shape)):
            shapes = found[name][feature].shapes
            if (said := _describe(shape)) not in shapes:
                shapes.append(said)
    for family in families:
        for vector in family.vectors:
            for name, is_exact in _runs(family, vector):
                for feature in _of_kernel(name, _of_vector(vector)):
                    row = found[name][feature]
                    counts = row.exact if is_exact else row.vectors
                    counts[family.name] = counts.get(family.name, 0) + 1
    return [_kernel(name, rows) for name, rows in found.items()]


def reasons(families: Iterable[Family]) -> Counter[str | None]:
    """How many vectors are run exactly (None), and how many are not, by the reason."""
    return Counter(not_run(vector) for family in families for vector in family.vectors)


def _of_kernel(name: str, asked: Iterable[str]) -> set[str]:
    """Which rows of a kernel this belongs to. That sequences are packed makes a row of the backward
    pass alone: forwards such a kernel has another name, and of caches it means their lengths."""
    if name in _WITHOUT_SCORES:
        return {"all"}
    return set(asked) - (set() if name in _BACKWARD else {"packed"})


def _kernel(name: str, rows: Mapping[str, Row]) -> Kernel:
    case = next(case for case in cases() if case.kernel == name)
    function = KERNELS[name](case, 90).kernel.fn
    file = "/".join(function.__module__.split(".")) + ".py"
    there = [*_ORDER, *sorted(rows.keys() - set(_ORDER))]
    ordered = {feature: rows[feature] for feature in there if feature in rows}
    return Kernel(name, file, function.__name__, ordered)


def _shapes() -> Iterator[tuple[str, Shape]]:
    """The shapes of which all inputs are looked at, by kernel."""
    forward = [*FORWARD.values(), *SUBJECTS["forward"].formal]
    for shape in forward:
        yield "varlen" if shape.lengths else "forward", shape
    for shape in SUBJECTS["varlen"].formal:
        yield "varlen", shape
    for shape in [*BACKWARD.values(), *SUBJECTS["backward"].formal]:
        for name in _BACKWARD:
            if shape.bias or name != "bias":
                yield name, shape
    for shape, options in DECODE.values():
        yield "paged" if "page_size" in options else "decode", shape
        yield "combine", shape
    for name in ("decode", "combine"):
        for shape in SUBJECTS[name].formal:
            yield name, shape


def _of_shape(shape: Shape) -> set[str]:
    left, right = shape.window
    found = {EDGES[left is not None, right is not None]}
    given = {"bias": shape.bias, "ALiBi": shape.alibi, "packed": bool(shape.lengths)}
    found |= {feature for feature, there in given.items() if there}
    return found | _padding(shape.head_dim, shape.value_dim)


def _padding(*sizes: int) -> set[str]:
    return {"padded head size"} if any(padded_size(size) != size for size in sizes) else set()


def _describe(shape: Shape) -> str:
    return (
        f"{shape.q_len} × {shape.kv_len}, batch {shape.batch}, heads {shape.heads}/"
        f"{shape.kv_heads}, sizes {shape.head_dim}/{shape.value_dim}"
    )


def _runs(family: Family, vector: Vector) -> Iterator[tuple[str, bool]]:
    """The kernels that a vector runs, and whether exactly."""
    if vector.operation in RUN_BY and (
        isinstance(vector, AttentionVector | GradientVector) or vector.operation in LAYOUTS
    ):
        for name in RUN_BY[vector.operation]:
            yield name, False
    if not_run(vector) is None:
        more = ("decode", "combine") if family.name == SPLIT else ()
        for name in (*EXACTLY_BY[vector.operation], *more):
            yield name, True


def _of_vector(vector: Any) -> set[str]:
    if isinstance(vector, CacheVector | MergeVector):
        # Keys that are given by their scores, for head size 1; those that are not there are masked.
        return {"mask"} | _padding(1, vector.value_dim)
    masks: Sequence[Mask] = vector.masks if isinstance(vector, VarlenVector) else ()
    mask = masks[0] if masks else getattr(vector, "mask", Mask("none"))
    window = mask.window
    found = {"full"} if mask.kind == "none" else {"mask"}
    if window is not None:
        found = {EDGES[window.left is not None, window.right is not None]}
    for change in KERNEL_CHANGES:
        # A vector of gradients has one for each head.
        if any(getattr(vector, name, None) is not None for name in (change.feature, change.name)):
            found.add(change.title)
    if getattr(vector, "dropout", None):
        found.add("dropout")
    return found | _padding(vector.head_dim, vector.value_dim)
