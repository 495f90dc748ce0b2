"""`docs/findings.md`: what other attention functions do on the vectors, from docs/findings.json."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from bridge.findings import store, subjects
from bridge.pages.render import render

PAGE = "docs/findings.md"


def cell(counts: Mapping[str, int] | None) -> str:
    """What became of a family, in one cell."""
    if counts is None:
        return "not run"
    passed, failed, rest = (counts[name] for name in ("passed", "failed", "not_covered"))
    if not passed and not failed:
        return "–"
    text = f"✘ **{failed}**" if failed else "✔"
    return (
        text if passed + failed + rest in (passed, failed) else f"{text} {passed}/{failed}/{rest}"
    )


def total(entry: Mapping[str, Any], state: str) -> int:
    """How many vectors of an entry are in this state."""
    return sum(counts[state] for counts in entry["families"].values())


def versions(entry: Mapping[str, Any]) -> str:
    """The packages with their versions."""
    return ", ".join(f"{name} {version}" for name, version in entry["versions"].items())


def ratios(entry: Mapping[str, Any]) -> str:
    """By dtype, the largest error/allowance of what passes."""
    found = {d: r for d, r in entry["largest_ratio_passed"].items() if r is not None}
    return ", ".join(f"{dtype} {ratio:g}" for dtype, ratio in found.items())


def extent(symptom: Mapping[str, Any]) -> str:
    """Which vectors show a symptom."""
    count, counts = len(symptom["vectors"]), symptom["failing"]
    each = "each of " if len(counts) > 1 else ""
    if set(counts.values()) == {count}:
        where = f"in {each}{', '.join(counts)}"
    else:
        where = "by dtype " + ", ".join(f"{dtype} {n}" for dtype, n in counts.items())
    text = f"{count} vector{'s' * (count != 1)}, {where}"
    if symptom["numbers"]:
        text += f"; {symptom['numbers']} numbers"
    if symptom["condition"] is not None:
        text += f". They are all covered vectors with {symptom['condition']}, and no others"
    return f"{text}. Families: {', '.join(symptom['families'])}."


def page(document: Mapping[str, Any], sentences: Mapping[str, str]) -> str:
    """The text of the page. sentences: of theorems, by id."""
    entries = document["functions"]
    names = sorted({name for entry in entries for name in entry["families"]})
    taken = {
        name
        for entry in entries
        for name, counts in entry["families"].items()
        if counts["passed"] or counts["failed"]
    }
    return render(
        "findings.md.jinja",
        command=store.COMMAND,
        entries=[{**entry, "called": subjects.called(entry["name"])} for entry in entries],
        families=names,
        untaken=[name for name in names if name not in taken],
        cell=cell,
        total=total,
        sentences=sentences,
        sizes={n: max(sum(e["families"].get(n, {}).values()) for e in entries) for n in names},
        versions=versions,
        ratios=ratios,
        extent=extent,
        wrapped=lambda text: textwrap.fill(
            text, 138, break_long_words=False, break_on_hyphens=False
        ),
    )
