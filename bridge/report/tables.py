"""The report of `make verify` as tables on the terminal."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from bridge.conformance.planting import FaultResult, shares

Section = dict[str, Any]


def _mark(ok: bool) -> str:
    return "[green]✔[/]" if ok else "[red]✘[/]"


def _ratio(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def theorems(console: Console, audit: Section) -> None:
    table = Table(title="Theorems", title_justify="left")
    for name in ("", "id", "Lean", "axioms"):
        table.add_column(name, no_wrap=name != "axioms")
    for h in audit["headlines"]:
        table.add_row(_mark(True), h["id"], h["name"], ", ".join(h["axioms"]) or "none")
    console.print(table)
    console.print(
        f"{audit['declarations']} declarations, {audit['theorems']} of them theorems; no axiom of "
        f"their own, no sorry, no compiler trust; {audit['replayed']} stored proofs and definitions "
        f"checked again by the kernel; {audit['trusted']}\n",
        highlight=False,
    )


def implementations(console: Console, section: Section) -> None:
    table = Table(title=f"Implementations on {section['device']}", title_justify="left")
    for name in ("", "implementation", "dtype"):
        table.add_column(name, no_wrap=True)
    for name in ("passed", "failed", "not covered", "largest error/allowance"):
        table.add_column(name, justify="right")
    for r in section["results"]:
        states = [v["status"] for v in r["vectors"]]
        counts = [str(states.count(s)) for s in ("passed", "failed", "not covered")]
        table.add_row(_mark(r["ok"]), r["adapter"], r["dtype"], *counts, _ratio(r["ratio"]))
    console.print(table)


def families(console: Console, report: dict[str, Section]) -> None:
    """By family: how many vectors; by dtype, the largest error/allowance of the project's own
    implementations and the share of the planted faults that the family catches."""
    results = report["implementations"]["results"]
    own = [r for r in results if r["adapter"].startswith("pyimpl-")]
    dtypes = list(dict.fromkeys(r["dtype"] for r in own))
    caught = shares(
        FaultResult(**{k: v for k, v in r.items() if k != "caught"})
        for r in report["faults"]["results"]
    )
    table = Table(
        title="Vectors by family: largest error/allowance of pyimpl, and planted faults caught",
        title_justify="left",
    )
    table.add_column("family", no_wrap=True)
    table.add_column("vectors", justify="right")
    for dtype in dtypes:
        table.add_column(dtype, justify="right")
    for family, count in report["vectors"]["families"].items():
        cells = []
        for dtype in dtypes:
            ratios = [
                r["families"][family][part]
                for r in own
                if r["dtype"] == dtype
                for part in ("ratio", "lse_ratio")
            ]
            numbers = [x for x in ratios if isinstance(x, float)]
            hits, tried = caught.get(dtype, {}).get(family, (0, 0))
            cells.append(f"{_ratio(max(numbers, default=None))}  {hits}/{tried}")
        table.add_row(family, str(count), *cells)
    console.print(table)


def faults(console: Console, section: Section) -> None:
    table = Table(title="Planted faults", title_justify="left")
    for name in ("", "fault", "in", "caught by", "theorem", "dtypes"):
        table.add_column(name, no_wrap=name in ("", "fault", "caught by"))
    for r in section["results"]:
        dtypes = [d for d, families in r["families"].items() if any(families.values())]
        table.add_row(
            _mark(r["caught"]),
            r["name"],
            r["file"],
            r["caught_by"] or "nothing",
            r["theorem"] or "",
            ", ".join(dtypes),
        )
    console.print(table)


def show(console: Console, report: dict[str, Section]) -> None:
    """Every table whose section is there."""
    console.print()
    if report.get("audit", {}).get("headlines"):
        theorems(console, report["audit"])
    if report.get("implementations", {}).get("results"):
        implementations(console, report["implementations"])
    if report.get("faults", {}).get("results"):
        faults(console, report["faults"])
        families(console, report)
