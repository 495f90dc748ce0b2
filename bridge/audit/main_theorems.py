"""The audit's report on the theorems that docs/theorems.toml and docs/claims.toml list."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bridge.audit import claims, restated, statements
from bridge.audit.theorems import listed_theorems
from bridge.cache import Cache, digest
from bridge.toolchain import Lean
from bridge.vectors.format.index import entries_of
from bridge.vectors.load import default_directory


def main_theorems(root: Path, listing: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """The theorems of docs/theorems.toml with the audit's report on them; and their errors.

    listing: the audit's report on each declaration, by name.
    """
    entries = listed_theorems(root / "docs" / "theorems.toml")
    found, problems = [], []
    for entry in entries:
        declaration = listing.get(entry["lean"])
        if declaration is None or declaration["kind"] != "theorem":
            problems.append(f"{entry['id']}: {entry['lean']} is not a theorem of the library")
            continue
        # In the order of the library, whatever order the names came in.
        mentions = [name for name in listing if name in declaration["mentions"]]
        if not any(name.startswith(("Attention.Spec.", "Attention.Model.")) for name in mentions):
            problems.append(
                f"{entry['id']}: its statement mentions no definition of the Spec or of a model"
            )
        # Classes are declared before those that ask for more.
        classes = [name for name in mentions if listing[name]["is_class"]]
        over = classes[-1] if classes else None
        found.append({**entry, **declaration, "mentions": mentions, "over": over})
    ids = [entry["id"] for entry in entries]
    problems += restated.problems_of_kinds(entries, listing)
    problems += [f"{id} is listed twice" for id in sorted({i for i in ids if ids.count(i) > 1})]
    tested = {id for entry in entries_of(default_directory()) for id in entry["theorems"]}
    problems += [f"vectors name {id}, which is not listed" for id in sorted(tested - set(ids))]
    return found, problems


def count_verdicts(
    root: Path, listing: dict[str, Any]
) -> tuple[dict[str, dict[str, int]], list[str]]:
    """How many rows of docs/claims.toml each document has of each verdict; and the errors of the
    rows, or of the theorems and definitions that they name. That none of these rests on
    another axiom than Lean's, the audit has seen."""
    manifest = claims.read(root)
    families = frozenset(entry["family"] for entry in entries_of(default_directory()))
    problems = claims.problems(manifest, claims.read_declarations(root), families)
    for claim in manifest.claims:
        for name in claim.lean:
            stored = listing.get(name, {"kind": "nothing"})["kind"]
            if stored == "nothing" or (stored == "theorem") != (name not in claim.defines):
                problems.append(f"{claim.document}, {claim.heading}: Lean has {name} as {stored}")
    counts = {d.id: Counter(c.verdict for c in manifest.of(d)) for d in manifest.documents}
    return {id: dict(count) for id, count in counts.items()}, problems


def whole_statements(
    lean: Lean,
    cache: Cache,
    key: str,
    main_theorems: list[dict[str, Any]],
    listing: dict[str, Any],
) -> tuple[dict[str, statements.Statement], list[str], bool]:
    """The whole statement of each theorem of docs/theorems.toml and docs/claims.toml and of each
    that restates a main result, by its Lean name; a sentence on each that says nothing, or supposes
    its own conclusion about a definition; and whether that is kept.

    key: the digest of the library and of Lean.
    """
    named = [(main_theorem["id"], main_theorem["lean"]) for main_theorem in main_theorems]
    named += [
        (one["id"], restated.restatement(one["id"]))
        for one in main_theorems
        if one["kind"] == "main"
    ]
    for claim in claims.read(lean.root).claims:
        label = f"{claim.document}, {claim.heading}"
        named += [(label, name) for name in (*claim.refutes, *claim.proves)]
    # Names that Lean does not have, or has as something else, are reported elsewhere.
    proved = {name for name, d in listing.items() if d["kind"] == "theorem"}
    wanted = {name: listing[name]["file"] for name in sorted({n for _, n in named} & proved)}
    found, kept = cache.get(
        "statements",
        digest(lean.root, [f"bridge/{part}" for part in statements.SOURCES], key, *wanted),
        lambda: {name: asdict(one) for name, one in statements.read(lean, wanted).items()},
        lambda found: all(one["empty"] is None for one in found.values()),
    )
    sentences = [
        f"{label}: {name} says nothing: {found[name]['empty']}"
        for label, name in named
        if name in found and found[name]["empty"]
    ]
    # Results are kept as JSON, without tuples.
    said = {
        name: statements.Statement(**one | {"supposed": tuple(one["supposed"])})
        for name, one in found.items()
    }
    return said, [*sentences, *restated.problems_of_hypotheses(main_theorems, listing, said)], kept
