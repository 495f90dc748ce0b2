"""The report on the terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import committed
import pytest
from rich.console import Console

from bridge.conformance.mutants import attention
from bridge.report import tables

DTYPES = ("float64", "float32", "float16", "bfloat16")
FAMILIES = {entry["family"]: entry["vectors"] for entry in committed.ENTRIES}


def outcomes(second: str = "passed") -> list[dict[str, str]]:
    return [
        {"id": "a", "status": "passed"},
        {"id": "b", "status": second},
        {"id": "c", "status": "unsupported"},
    ]


def report() -> dict[str, Any]:
    """One implementation in four dtypes, of whose vectors one fails, and two mutants, one
    caught."""
    parts = {"ratio": 0.123, "lse_ratio": None}
    result = {"adapter": "pyimpl-tiled", "families": dict.fromkeys(FAMILIES, parts)}
    results = [{**result, "dtype": dtype, "vectors": outcomes()} for dtype in DTYPES]
    results[2]["vectors"] = outcomes(second="failed")
    mutant = {
        "name": "a", "description": "", "file": "backends/tiled.py", "adapter": "pyimpl-tiled",
        "caught_by": None, "theorem": None, "dtype": None, "worst": None,
        "families": {"float32": dict.fromkeys(FAMILIES, True)},
    }  # fmt: skip
    return {
        "audit": {"main_theorems": [{}, {}, {}]},
        "vectors": {"families": FAMILIES},
        "implementations": {"results": results},
        "mutants": {"results": [{**mutant, "caught": True}, {**mutant, "caught": False}]},
    }


def text_of(show: Any, shown: dict[str, Any] | None = None, width: int = 80) -> str:
    """The text that a function of `tables` prints of a section, or of the whole report."""
    file = io.StringIO()
    show(Console(file=file, width=width), report() if shown is None else shown)
    return file.getvalue()


def test_the_table_of_families_fits_into_80_columns() -> None:
    text = text_of(tables.families)
    assert "…" not in text
    for name, count in FAMILIES.items():
        assert re.search(rf" {name} .* {count} ", text)


def audit_of(theorem: str, name: str) -> dict[str, Any]:
    row = {"id": theorem, "name": name, "over": "Attention.OrderedField", "axioms": ["propext"]}
    return {
        "main_theorems": [row], "classes": {}, "declarations": 1, "theorems": 1, "problems": [],
        "replayed": 1, "kernel": "a kernel", "trusted": "Nothing", "claims": {},
    }  # fmt: skip


# As long as the longest that are listed.
LONG = ("id-" + 37 * "x", "Proof." + 37 * "y")


@pytest.mark.parametrize("width", [80, 103, 104, 160])
def test_a_theorem_takes_a_line_and_its_name_in_lean_two_at_most(width: int) -> None:
    text = text_of(tables.theorems, audit_of(*LONG), width)
    lines = text.split("Over:")[0].splitlines()
    assert len(lines) == (7 if width == 104 else 6)
    assert f"│ ✔ │ {LONG[0]} │" in lines[4]
    assert " OrderedField │ standard │" in lines[4]
    assert (LONG[1] in lines[4]) == (width == 160)
    assert ("Lean" in lines[2]) == (width >= 104)


def test_in_80_columns_each_mutant_has_its_mark_and_its_whole_name() -> None:
    names = [mutant.name for mutant in attention.MUTANTS]
    row = {"caught_by": "gradient-past-tiles-masks-000", "file": "x/backward_queries.py"}
    results = [
        {**row, "name": name, "caught": True, "families": {"float32": {"drawn": True}}}
        for name in names
    ]
    text = text_of(tables.mutants, {"results": results})
    assert text.count("│ ✔ │") == text.count("│ 1/1 ") == len(names)
    # A name may go on in the next line of its column.
    column = "".join(line.split("│")[2].strip() for line in text.splitlines() if "│" in line)
    assert column == "".join(names)


def test_the_summary_counts_what_the_report_has() -> None:
    assert text_of(tables.summary).splitlines() == [
        "3 theorems, each checked by Lean down to its axioms",
        f"{sum(FAMILIES.values())} vectors in {len(FAMILIES)} families; 2 of them "
        "on 4 pairs of implementation and dtype: 1 failures",
        "2 mutants: 1 caught",
    ]


def test_the_summary_is_silent_about_what_was_not_run() -> None:
    assert text_of(tables.summary, {"toolchain": {"ok": False}}) == ""
