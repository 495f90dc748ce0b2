"""`docs/findings.md`: the results of other attention functions, from docs/findings.json."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from bridge.findings import store, subjects, verdicts
from bridge.pages.render import render
from bridge.proving.published import PUBLISHED

PAGE = "docs/findings.md"


def cell(counts: Mapping[str, int] | None) -> str:
    """A family's counts, in one cell."""
    if counts is None:
        return "not run"
    passed, failed, rest = (counts[name] for name in ("passed", "failed", "unsupported"))
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
    """By dtype, the largest error/tolerance of the elements that pass."""
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
        text += f". They are all supported vectors with {symptom['condition']}, and no others"
    return f"{text}. Families: {', '.join(symptom['families'])}."


_LEVELS = {"fields": "random numbers", "formal": "all inputs", "rational": "whole numbers"}


def verdict_levels(entry: Mapping[str, Any]) -> str:
    """The results of a verdict's levels, in one cell."""
    parts = []
    for name, level in entry["levels"].items():
        kind = _LEVELS[name]
        if level["shapes"]:
            shapes = f"{level['shapes']} shape{'s' * (level['shapes'] != 1)}"
            parts.append(f"{kind}: {level['elements']} elements of {shapes}")
        if level["verdict"] not in ("EQUAL", None, entry["verdict"]):
            parts.append(f"{kind}: {level['verdict']}")
    return "; ".join(parts) or "none is equal"


def verdict_subject(entry: Mapping[str, Any]) -> str:
    """The kernel and the assumptions of a verdict."""
    published = PUBLISHED[entry["name"]]
    more = [", output and gradients"] if entry["backward"] else []
    if entry["backward"] and published.masked_loads is not None:
        more.append(f", a masked load taken to give {published.masked_loads:g} where it says none")
    if entry["alignment"] != "top-left":
        more.append(f", a causal mask taken to be {entry['alignment']}")
    return published.what + "".join(more)


def page(
    document: Mapping[str, Any],
    sentences: Mapping[str, str],
    kept: Sequence[Mapping[str, Any]],
) -> str:
    """The text of the page. sentences: of theorems, by id; kept: the verdicts on kernels."""
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
        verdicts=[
            {
                **one,
                "asked": verdict_subject(one),
                "proved": verdict_levels(one),
                "command": verdicts.command(one),
            }
            for one in kept
        ],
        entries=[{**entry, "called": subjects.find_function(entry["name"])} for entry in entries],
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
