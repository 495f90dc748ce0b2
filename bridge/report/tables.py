"""The report of `make verify` as tables on the terminal."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bridge.conformance.judging.judge import by_size, describe_failure
from bridge.conformance.mutants.planting import SHARES_IN, MutantResult
from bridge.conformance.mutants.planting import shares as shares_of
from bridge.terminal import tell
from bridge.toolchain.audit import STANDARD_AXIOMS

Section = dict[str, Any]


# Failed vectors that the terminal shows of each implementation and dtype.
_MOST_SHOWN = 5
# Characters in a line for Lean's name of a theorem and its border; in fewer, many names would take
# two lines.
_LEAST_FOR_LEAN = 30


def _mark(ok: bool) -> str:
    return "[green]✔[/]" if ok else "[red]✘[/]"


def _ratio(value: Any) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _short(name: str) -> str:
    return name.removeprefix("Attention.")


def theorems(console: Console, audit: Section) -> None:
    """The table of theorems, without Lean's names where the window has no room for them."""
    table = _theorems(audit, lean=True)
    without = _theorems(audit, lean=False)
    room = console.width - console.measure(without).minimum
    console.print(table if room >= _LEAST_FOR_LEAN else without)
    classes = "; ".join(
        f"{_short(name)}: {', '.join(map(_short, instances)) or 'none yet'}"
        for name, instances in audit["classes"].items()
    )
    standard = ", ".join(sorted(STANDARD_AXIOMS))
    tell(
        console,
        f"Over: the class that the theorem asks for. Classes and their instances: {classes}.\n"
        f"Axioms: those that the library's own terms reach; standard are {standard}.\n"
        f"{audit['declarations']} declarations, {audit['theorems']} of them theorems; "
        f"{len(audit['problems'])} findings (own axioms, sorry, compiler trust, unsafe code).\n"
        f"{audit['replayed']} stored proofs and definitions checked again by {audit['kernel']}.\n"
        f"{audit['trusted']}.\n"
        f"Claims of the source documents (docs/claims.md): {_claims(audit['claims'])}.\n",
    )


def _claims(counts: dict[str, dict[str, int]]) -> str:
    """The verdicts of all documents, added up."""
    total = Counter[str]()
    for count in counts.values():
        total.update(count)
    return ", ".join(f"{number} {verdict}" for verdict, number in total.items()) or "none"


def _theorems(audit: Section, *, lean: bool) -> Table:
    table = Table(title="Theorems", title_justify="left")
    for name in ("", "id", *(["Lean"] if lean else []), "over", "axioms"):
        table.add_column(name, no_wrap=name != "Lean", overflow="fold")
    for h in audit["main_theorems"]:
        strange = sorted(set(h["axioms"]) - STANDARD_AXIOMS)
        axioms = ", ".join(strange) or ("standard" if h["axioms"] else "none")
        over = _short(h["over"] or "–")
        names = [_short(h["name"])] if lean else []
        table.add_row(_mark(not strange), h["id"], *names, over, axioms)
    return table


def implementations(console: Console, section: Section) -> None:
    table = Table(title=f"Implementations on {section['device']}", title_justify="left")
    table.add_column("", no_wrap=True)
    # The path of somebody's file may be long; the numbers are not to be cut for it.
    table.add_column("implementation", overflow="fold")
    table.add_column("dtype", no_wrap=True)
    for name in ("passed", "failed", "unsupported", "error/\ntolerance"):
        table.add_column(name, justify="right", no_wrap=True)
    for r in section["results"]:
        states = [v["status"] for v in r["vectors"]]
        counts = [str(states.count(s)) for s in ("passed", "failed", "unsupported")]
        table.add_row(_mark(r["ok"]), r["adapter"], r["dtype"], *counts, _ratio(r["ratio"]))
    for r in section.get("not_judged", ()):
        table.add_row(_mark(False), r["adapter"], "not judged", *"–––", "–")
    console.print(table)
    for r in section["results"]:
        failed = [v for v in r["vectors"] if v["status"] == "failed"]
        failed.sort(key=lambda vector: by_size(vector["size"]))
        lines = [f"  {describe_failure(vector)}" for vector in failed[:_MOST_SHOWN]]
        if lines:
            lines.insert(0, f"{r['adapter']} {r['dtype']} fails, the smallest input first:")
        for name, why in r.get("lacking", {}).items():
            lines.append(f"{r['adapter']} {r['dtype']}: {name} is required but unsupported: {why}")
        if len(failed) > _MOST_SHOWN:
            lines.append(f"  and {len(failed) - _MOST_SHOWN} more")
        if r.get("likely") is not None:
            lines.append("Likely cause:")
            lines += [f"  {sentence}" for sentence in r["likely"]["sentences"]]
        for line in lines:
            tell(console, line)


def by_family(console: Console, results: list[Section]) -> None:
    """One implementation: the results of each family's vectors, and its unsupported features.
    The counts are over all dtypes that it was run in."""
    dtypes = [r["dtype"] for r in results]
    name, rounding_model = results[0]["adapter"], results[0]["rounding_model"]
    table = Table(title=f"{name} by family, over {', '.join(dtypes)}", title_justify="left")
    table.add_column("", no_wrap=True, min_width=1)
    table.add_column("family", no_wrap=True)
    for heading in ("passed", "failed", "unsupported"):
        table.add_column(heading, justify="right")
    for dtype in dtypes:
        table.add_column(f"error/ tolerance {dtype}", justify="right")
    for family in results[0]["families"]:
        summaries = [r["families"][family] for r in results]
        counts = [sum(s[key] for s in summaries) for key in ("passed", "failed", "unsupported")]
        ratios = [_largest(s["ratio"], s["lse_ratio"]) for s in summaries]
        mark = _mark(not counts[1]) if counts[0] or counts[1] else "–"
        table.add_row(mark, family, *map(str, counts), *map(_ratio, ratios))
    console.print(table)
    lines = [f"Rounding model: {rounding_model}."]
    features = results[0].get("features")
    if features is not None:
        lines.append(
            f"Supports: {', '.join(features['supported']) or 'query, key and value alone'}."
        )
        if features["presumed"]:
            lines.append(f"Not tried, by its signature alone: {features['presumed']}.")
        if features["borrows"]:
            lines.append(f"Calls attention of others: {', '.join(features['borrows'])}.")
        if "is-causal" in features["supported"]:
            lines.append(
                alignment_of_is_causal(features["alignment"], features["judged_alignment"])
            )
        if features["padded_to"]:
            lines.append(f"Head sizes padded to multiples of {features['padded_to']}.")
        if features["lengths_divided_by"] > 1:
            lines.append(f"Lengths that {features['lengths_divided_by']} divides alone.")
    reasons = Counter(
        v["reason"] for r in results for v in r["vectors"] if v["status"] == "unsupported"
    )
    lines += [f"Unsupported, {count}: {reason}" for reason, count in reasons.most_common()]
    if not any(v["status"] != "unsupported" for r in results for v in r["vectors"]):
        lines.append("No vector is supported: nothing was checked.")
    for line in lines:
        tell(console, line)


def no_sandbox(why: str) -> str:
    """A sentence on the consequence of a function's process without walls."""
    return (
        f"NO SANDBOX: {why}. The function could read the vectors and reach the judge; a pass is "
        "worth no more than it is trusted."
    )


def alignment_of_is_causal(found: str, judged: str) -> str:
    """A sentence on the alignment that small calls showed, and that of the vectors."""
    match found:
        case "square":
            return "is_causal: only where there are as many queries as keys."
        case "not-found":
            return (
                "is_causal: matches neither top-left nor bottom-right causal masking on small "
                f"calls; judged as {judged}."
            )
    if found == judged:
        return f"is_causal: {found}."
    return (
        f"is_causal: {found} on small calls; judged as {judged}, so that vectors with another "
        f"number of keys than of queries fail. If {found} is meant: --alignment {found}."
    )


def _largest(*ratios: Any) -> Any:
    """Of ratios as JSON has them: numbers, "inf" or None."""
    known = [r for r in ratios if r is not None]
    return max(known, key=float, default=None)


def families(console: Console, report: dict[str, Section]) -> None:
    """By family: the largest error/tolerance of the project's own implementations in each dtype."""
    results = report["implementations"]["results"]
    own = [r for r in results if r["adapter"].startswith("pyimpl-")]
    dtypes = list(dict.fromkeys(r["dtype"] for r in own))
    table = Table(title="Largest error/tolerance of pyimpl", title_justify="left")
    table.add_column("family", no_wrap=True)
    table.add_column("vectors", justify="right", no_wrap=True)
    for dtype in dtypes:
        # In two lines, so that nothing is cut in a window of 80 columns.
        table.add_column(f"{dtype[:-2]}\n{dtype[-2:]}", justify="right", no_wrap=True)
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
            cells.append(f"{max(numbers):.2f}" if numbers else "–")
        table.add_row(family, str(count), *cells)
    console.print(table)


def shares(console: Console, results: list[Section]) -> None:
    """By family: how many of the mutants that were tried in every family it catches."""
    names = [field.name for field in fields(MutantResult)]
    found = shares_of((MutantResult(**{n: r[n] for n in names}) for r in results), SHARES_IN)
    table = Table(title=f"Mutants by family, {SHARES_IN}", title_justify="left")
    table.add_column("family", no_wrap=True)
    for heading in ("caught", "of", "share"):
        table.add_column(heading, justify="right", no_wrap=True)
    for family, (hits, tried) in found.items():
        table.add_row(family, str(hits), str(tried), f"{hits / tried:.0%}")
    console.print(table)


def mutants(console: Console, section: Section) -> None:
    table = Table(title="Mutants", title_justify="left")
    # Where the window is narrow, names take two lines, and no mark is cut.
    for name in ("", "mutant", "in", "caught by", "dtypes"):
        table.add_column(name, no_wrap=name in ("", "dtypes"), overflow="fold")
    for r in section["results"]:
        hits = [any(families.values()) for families in r["families"].values()]
        table.add_row(
            _mark(r["caught"]),
            r["name"],
            Path(r["file"]).stem,
            r["caught_by"] or "nothing",
            f"{sum(hits)}/{len(hits)}",
        )
    console.print(table)


def show(console: Console, report: dict[str, Section]) -> None:
    """Every table whose section is there."""
    console.print()
    if report.get("audit", {}).get("main_theorems"):
        theorems(console, report["audit"])
    if report.get("implementations", {}).get("results"):
        implementations(console, report["implementations"])
    if report.get("mutants", {}).get("results"):
        mutants(console, report["mutants"])
    if report.get("implementations", {}).get("results") and "families" in report.get("vectors", {}):
        families(console, report)


def summary(console: Console, report: dict[str, Section]) -> None:
    """The counts that the whole comes to, a line for each part that was run."""
    lines = []
    if main_theorems := report.get("audit", {}).get("main_theorems"):
        lines.append(f"{len(main_theorems)} theorems, each checked by Lean down to its axioms")
    if kernels := report.get("kernels", {}).get("said"):
        lines.append(f"Kernels in Lean: {kernels}")
    if results := report.get("implementations", {}).get("results"):
        families = report.get("vectors", {}).get("families", {})
        states = [(v["id"], v["status"]) for r in results for v in r["vectors"]]
        judged = {name for name, status in states if status != "unsupported"}
        failed = sum(status == "failed" for _, status in states)
        counted = f"{sum(families.values())} vectors in {len(families)} families; "
        lines.append(
            f"{counted if families else ''}{len(judged)} {'of them' if families else 'vectors'} "
            f"on {len(results)} pairs of implementation and dtype: {failed} failures"
        )
    if planted := report.get("mutants", {}).get("results"):
        caught = sum(bool(r["caught"]) for r in planted)
        lines.append(f"{len(planted)} mutants: {caught} caught")
    for line in lines:
        tell(console, line)
