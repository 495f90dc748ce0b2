"""The report on the terminal."""

from __future__ import annotations

import io
import re
from typing import Any

import committed
from rich.console import Console

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


def text_of(show: Any) -> str:
    console = Console(file=io.StringIO(), width=80)
    show(console, report())
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_table_of_families_fits_into_80_columns() -> None:
    text = text_of(tables.families)
    assert "…" not in text
    for name, count in FAMILIES.items():
        assert re.search(rf" {name} .* {count} ", text)


def test_the_summary_counts_what_the_report_has() -> None:
    assert text_of(tables.summary).splitlines() == [
        "3 theorems, each checked by Lean down to its axioms",
        f"{sum(FAMILIES.values())} vectors in {len(FAMILIES)} families; 2 of them "
        "on 4 pairs of implementation and dtype: 1 failures",
        "2 mutants: 1 caught",
    ]


def test_the_summary_is_silent_about_what_was_not_run() -> None:
    console = Console(file=io.StringIO(), width=80)
    tables.summary(console, {"toolchain": {"ok": False}})
    assert console.file.getvalue() == ""  # type: ignore[attr-defined]
