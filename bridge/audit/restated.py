"""Whether the main results are restated over the Spec alone, in `Attention/Statements`.

A statement there may speak of the numbers, the Spec and its models, and of nothing that is defined
to prove it; and its hypotheses may not suppose its own conclusion about a definition.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bridge.audit.statements import Statement

NAMESPACE = "Attention.Statements."
# Where the definitions stand that a statement may speak of.
SPOKEN_OF = ("Attention.Algebra.", "Attention.Model.", "Attention.Spec.")
_SPEC = "Attention.Spec."
# Parts of a statement that Lean makes itself: that an index is in range, and matchers of patterns.
_MADE = re.compile(rf"{re.escape(NAMESPACE)}\w+\.(?:_proof|match)_\d+")
# By main result, the definitions of the Spec that its hypotheses and its conclusion may both speak
# of, with the reason.
SHARED = {
    # That no other number is the log-sum-exp.
    "lse-exists": {"IsLogSumExp"},
    # Whether a key that is left is unmasked.
    "kv-edits": {"Online.Edit.keys"},
    # A hypothesis on each split is concluded of all keys together.
    "split-kv": {"attend", "IsLogSumExp"},
    # The log-sum-exp that is given is that of the scores under the mask, which the gradients are
    # of, too.
    "flash-backward-dropout": {"Mask.toScoreMod", "ScoreMod.andThen"},
    "flash-backward-one-loop": {"Mask.toScoreMod", "ScoreMod.andThen"},
}


def restatement(id: str) -> str:
    """The Lean name of the statement of a main result."""
    return NAMESPACE + id.replace("-", "_")


def problems_of_kinds(
    entries: Iterable[Mapping[str, str]], listing: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The errors of the listed theorems' kinds and of the main results' statements, as far as the
    names in them tell; a sentence each.

    listing: the audit's report on each declaration, by name.
    """
    problems = []
    wanted = {}
    for entry in entries:
        if entry["kind"] == "main":
            wanted[restatement(entry["id"])] = entry["id"]
        mentions = listing.get(entry["lean"], {}).get("mentions", ())
        of_model = any(name.startswith("Attention.Model.") for name in mentions)
        if entry["kind"] == "beyond" and not of_model and not _elsewhere(mentions, listing):
            problems.append(
                f"{entry['id']}: its statement speaks of the Spec alone, so it is not 'beyond' it"
            )
    for name, id in wanted.items():
        stated = listing.get(name)
        if stated is None or stated["kind"] != "theorem":
            problems.append(f"{id}: a main result, and there is no theorem {name}")
            continue
        for mention, place in _elsewhere(stated["mentions"], listing).items():
            problems.append(
                f"{id}: {name} speaks of {mention}, of {place}; a main result is stated with "
                "definitions of Attention.Algebra, Attention.Model and Attention.Spec alone"
            )
    for name, one in listing.items():
        if one["module"].startswith(NAMESPACE) and name not in wanted:
            problems.append(f"{name} states no main result of docs/theorems.toml")
    return problems


def problems_of_hypotheses(
    entries: Iterable[Mapping[str, str]],
    listing: Mapping[str, Mapping[str, Any]],
    said: Mapping[str, Statement],
) -> list[str]:
    """A sentence for each definition of the Spec that a main result's statement has both among its
    hypotheses and in its conclusion, `SHARED` apart."""
    problems = []
    for entry in entries:
        name = restatement(entry["id"])
        if entry["kind"] != "main" or name not in said:
            continue
        shared = {
            one.removeprefix(_SPEC)
            for one in said[name].supposed
            if one.startswith(_SPEC) and listing.get(one, {}).get("instance_of") is None
        }
        problems += [
            f"{entry['id']}: a hypothesis of {name} speaks of {one}, and so does its conclusion"
            for one in sorted(shared - SHARED.get(entry["id"], set()))
        ]
    return problems


def _elsewhere(mentions: Sequence[str], listing: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Of the constants of the library in a statement, those of none of the modules `SPOKEN_OF`,
    each with its module."""
    found = {}
    for mention in mentions:
        if _MADE.fullmatch(mention):
            continue
        owner = mention
        # A constructor, or a field, stands in no place of its own.
        while owner not in listing and "." in owner:
            owner = owner.rpartition(".")[0]
        module = listing[owner]["module"] if owner in listing else "no module that is listed"
        if not module.startswith(SPOKEN_OF):
            found[mention] = module
    return found
