"""The table of coverage: each operation's own, and the nearest operations with the rest."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

from small_maps import SMALL, SPEC, definition

from bridge.index.gaps import WITHOUT_PYTHON
from bridge.pages import coverage_page, map_data
from bridge.pages.coverage_page import rows
from bridge.source.excerpt import Excerpt
from bridge.vectors.load import load

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / coverage_page.PAGE).read_text("utf-8")


def code(file: str, name: str) -> Excerpt:
    return Excerpt(name, file, 1, 2, "def …")


MAPS = replace(
    SMALL,
    vectors={f"{SPEC}softmax": {"small": 3, "large": 2}},
    python={
        f"{SPEC}flash": [
            code("pyimpl/backends/tiled.py", "pyimpl.backends.tiled.flash"),
            code("pyimpl/backends/kernels/forward.py", "pyimpl.backends.kernels.forward._kernel"),
        ],
        f"{SPEC}Row": [code("pyimpl/a/b.py", "pyimpl.a.b.Row.make")],
    },
)


def test_a_row_has_its_own_or_says_which_operation_has_it() -> None:
    found = {row.operation.label: row for row in rows(MAPS)}
    # Row is no operation, and implemented.
    assert list(found) == ["Row", "weight", "softmax", "flash"]
    weight = found["weight"]
    assert (weight.theorems, weight.vectors) == (("sum",), {})
    assert weight.through_theorems == ()
    assert weight.through_vectors == (f"{SPEC}softmax",)
    # Softmax has no Python: functions that use softmax have.
    assert weight.through_python == (f"{SPEC}flash",)
    assert found["softmax"].vectors == {"small": 3, "large": 2}
    # Nothing that uses it has vectors.
    assert found["flash"].through_vectors == ()
    assert [one.name for one in found["flash"].python] == ["pyimpl.backends.tiled.flash"]
    assert [one.name for one in found["flash"].triton] == [
        "pyimpl.backends.kernels.forward._kernel"
    ]


def line(text: str, label: str) -> list[str]:
    (found,) = [row for row in text.splitlines() if row.startswith(f'| <a id="op-{label}">')]
    return [cell.strip() for cell in found.split("|")[1:-1]]


def test_every_cell_is_a_link() -> None:
    text = coverage_page.page(MAPS)
    assert line(text, "flash") == [
        '<a id="op-flash"></a>[<code>flash</code>](../Attention/Spec/A.lean#L3-L5)',
        "[loop](theorems.md#loop)",
        "run while vectors are made",
        "[<code>tiled.<wbr>flash</code>](../pyimpl/backends/tiled.py#L1-L2)",
        "[<code>forward.<wbr>_kernel</code>](../pyimpl/backends/kernels/forward.py#L1-L2)",
    ]
    assert line(text, "softmax")[2:] == [
        "[small](vectors.md#family-small) (3), [large](vectors.md#family-large) (2)",
        "in [flash](#op-flash)",
        "–",
    ]
    assert line(text, "Row")[3] == "[<code>b.<wbr>Row.<wbr>make</code>](../pyimpl/a/b.py#L1-L2)"


def test_what_has_nothing_has_a_dash() -> None:
    alone = replace(definition("alone"), run=False)
    text = coverage_page.page(replace(MAPS, definitions={**MAPS.definitions, alone.name: alone}))
    assert line(text, "alone")[1:] == ["–", "–", "–", "–"]


def test_many_links_are_folded() -> None:
    many = {f"family{n}": 2 for n in range(7)}
    text = coverage_page.page(replace(MAPS, vectors={f"{SPEC}softmax": many}))
    cell = line(text, "softmax")[2]
    assert cell.startswith("<details><summary>7 families, 14 vectors</summary>[family0](")
    assert cell.endswith("(2)</details>")


def test_the_page_has_every_operation_and_every_vector() -> None:
    families = load()
    maps = map_data.read(ROOT, families)
    found = {row.operation.name: row for row in rows(maps)}
    assert [n for n, one in maps.definitions.items() if one.operation and n not in found] == []
    total = sum(n for row in found.values() for n in row.vectors.values())
    assert total == sum(len(family.vectors) for family in families)
    named = Counter(re.findall(r'<a id="op-([^"]+)">', TEXT))
    assert named == Counter(row.operation.label for row in found.values())
    implemented = {p.name for some in maps.python.values() for p in some}
    shown = {p.name for row in found.values() for p in (*row.python, *row.triton)}
    assert shown == implemented
    # No operation is covered by nothing.
    for name, row in found.items():
        if maps.definitions[name].operation:
            assert row.theorems or row.through_theorems, name
            known = row.python or row.triton or row.through_python
            assert known or row.operation.module in WITHOUT_PYTHON, name
