"""`docs/verdicts.json`: the verdicts of `bridge prove NAME --keep` on kernels of published
packages, for `docs/findings.md`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from bridge.files import write_changed
from bridge.proving.published import PUBLISHED, Published
from bridge.proving.verdict import Verdict, shape_text

FILE = "docs/verdicts.json"
FORMAT = "attention-verdicts-1"

Entry = dict[str, Any]


def read(root: Path) -> list[Entry]:
    """The stored verdicts; none where there is no such file, or one of another format."""
    try:
        document = json.loads((root / FILE).read_text("utf-8"))
    except FileNotFoundError:
        return []
    return list(document["verdicts"]) if document.get("format") == FORMAT else []


def keep(
    root: Path, published: Published, verdict: Verdict, alignment: str, *, backward: bool
) -> None:
    """Store a verdict in the place of that which was kept of the same question. alignment: as
    `--alignment`."""
    entry = {
        "name": published.name,
        "alignment": alignment,
        "backward": backward,
        "versions": {
            package: metadata.version(package)
            for package in (published.packages[0], "triton")
        },
        "verdict": verdict.word,
        "finding": None,
        "levels": {
            level.level: {"verdict": level.word, "shapes": len(level.equal),
                          "elements": level.elements, "assumed": sorted(level.assumed)}
            for level in verdict.levels
        },
        "roundings": sorted(verdict.roundings),
    }  # fmt: skip
    if verdict.finding is not None and verdict.word != "EQUAL":
        finding = verdict.finding
        entry["finding"] = {
            "shape": shape_text(finding.shape), "what": finding.what,
            "operation": Path(finding.operation).name if finding.operation else "",
        }  # fmt: skip
    kept = {_question(one): one for one in read(root)}
    kept[_question(entry)] = entry
    order = {name: i for i, name in enumerate(PUBLISHED)}
    found = sorted(
        (one for one in kept.values() if one["name"] in order),
        key=lambda one: (order[one["name"]], one["backward"], one["alignment"] != "top-left"),
    )
    document = {"format": FORMAT, "verdicts": found}
    write_changed(root / FILE, json.dumps(document, ensure_ascii=False, indent=1) + "\n")


def _question(entry: Entry) -> tuple[str, str, bool]:
    return entry["name"], entry["alignment"], entry["backward"]


def command(entry: Mapping[str, Any]) -> str:
    """The command that was run."""
    options = ""
    if entry["alignment"] != "top-left":
        options += f" --alignment {entry['alignment']}"
    if entry["backward"]:
        options += " --backward"
    return f".venv/bin/python -m bridge prove {entry['name']}{options} --keep"
