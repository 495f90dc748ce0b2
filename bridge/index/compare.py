"""Compare the constants that Lean stored, those that the audit saw, and the text of the files.

Three readers that share no code: `listing.lean` reads stored modules, the audit an environment that
Lean elaborated, and `bridge.source.lean` text. Where two of them differ, one is wrong, and nothing
that the index says of that declaration is to be relied on.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bridge.index.extract import Stored, uses
from bridge.source.lean import NAME, Written, declarations

_KINDS = {
    "theorem": ("theorem",),
    "lemma": ("theorem",),
    "def": ("definition",),
    "abbrev": ("definition",),
    # An instance of a class of propositions is stored as a theorem.
    "instance": ("definition", "theorem"),
    "opaque": ("opaque",),
    "axiom": ("axiom",),
    "structure": ("inductive",),
    "class": ("inductive",),
    "inductive": ("inductive",),
    "class inductive": ("inductive",),
    "field": ("definition", "theorem"),
    "constructor": ("constructor",),
}
_TYPES = ("structure", "class", "inductive", "class inductive")
_BINDERS = re.compile(
    r"[(\[{⦃]\s*((?:[^\W\d][\w'!?]*\s+)+):|\b(?:fun|let|have)\s+([^\W\d][^:=↦|]*?)(?::|=|↦)"
    r"|[∀∃Σ∑∏λ]\s*([^,:]*)[,:]|[{⦃]((?:\s*[^\W\d][\w'!?]*)+)\s*[}⦄]"
)


def against_audit(constants: Mapping[str, Stored], audited: Mapping[str, Any]) -> list[str]:
    """audited: the declarations of the audit, by name, as JSON."""
    found = []
    listed = {n: c for n, c in constants.items() if c.range is not None and not internal(c.shown)}
    for name in sorted(listed.keys() | audited.keys()):
        if name not in audited:
            found.append(f"{name} is stored, and the audit does not list it")
            continue
        if name not in listed:
            found.append(f"{name} is listed by the audit, and not stored")
            continue
        one, other = listed[name], audited[name]
        assert one.range is not None
        mentions = {used for used in one.uses_of_type if used in constants}
        pairs = [
            ("module", one.module, other["module"]),
            ("kind", one.kind, other["kind"]),
            ("first line", one.range[0], other["first_line"]),
            ("last line", one.range[2], other["last_line"]),
            ("mentions", sorted(mentions), sorted(other["mentions"])),
        ]
        for what, ours, theirs in pairs:
            if ours != theirs:
                found.append(f"{name}: {what} is {ours} as stored and {theirs} in the audit")
    return found


def against_source(
    constants: Mapping[str, Stored], texts: Mapping[str, str], instances: Iterable[str]
) -> list[str]:
    """texts: the text of each module; instances: the names of those that are instances."""
    by_module: dict[str, list[Stored]] = defaultdict(list)
    shown: dict[str, set[str]] = defaultdict(set)
    for constant in constants.values():
        if constant.range is not None:
            by_module[constant.module].append(constant)
            shown[constant.shown].add(constant.name)
    # Names that a statement mentions without writing them: instances and projections to parents.
    silent = set(instances) | {
        c.name for c in constants.values() if re.search(r"\.to[A-Z][\w']*$", c.shown)
    }
    found: list[str] = []
    pairs: list[tuple[Stored, Written]] = []
    for module, text in texts.items():
        written = declarations(text)
        fields = {w.name for w in written if w.keyword == "field"}
        silent |= {name for field in fields for name in shown.get(field or "", ())}
        matched, lone = _match(by_module.pop(module, []), written)
        found += lone
        pairs += matched
    found += [f"{module} is stored, and its file is not read" for module in by_module]
    for one, other in pairs:
        found += _place_differences(one, other)
        found += _compare_mentions(one, other, constants, shown, silent)
    return found


def internal(shown: str) -> bool:
    """Whether a name is one that Lean made up: a part of it begins with an underscore."""
    return any(part.startswith("_") for part in shown.replace("«", "").split("."))


def _match(
    stored: Iterable[Stored], written: Iterable[Written]
) -> tuple[list[tuple[Stored, Written]], list[str]]:
    """The pairs that are one declaration, and a sentence for each that has no partner."""
    waiting: dict[str | None, list[Written]] = defaultdict(list)
    types = []
    for other in written:
        waiting[other.name].append(other)
        if other.keyword in _TYPES:
            types.append(other)
    pairs, found = [], []
    for one in stored:
        assert one.range is not None
        candidates = waiting[one.shown] or [
            w for w in waiting[None] if w.first == (one.range[0], one.range[1])
        ]
        if candidates:
            other = candidates[0]
            waiting[other.name].remove(other)
            pairs.append((one, other))
        elif not (
            internal(one.shown) or _is_syntax(one) or any(_comes_with(one, t) for t in types)
        ):
            found.append(
                f"{one.name} is stored for line {one.range[0]} of {one.module}, where no "
                "declaration of that name is read from the text"
            )
    for left in waiting.values():
        for other in left:
            name = other.name or f"an {other.keyword}"
            found.append(f"{name} stands in line {other.first[0]}, and Lean stored no such thing")
    return pairs, found


def _is_syntax(one: Stored) -> bool:
    """Whether it is the parser of a `syntax` or a `macro`, which Lean names."""
    return list(one.uses_of_type) == ["Lean.ParserDescr"]


def _comes_with(one: Stored, of: Written) -> bool:
    """Whether it comes with a type that is written: its constructor where none is named, the
    projection to a parent structure, or an instance that is derived."""
    assert one.range is not None
    if not (of.first <= one.range[:2] and one.range[2:] <= of.last):
        return False
    if one.shown == f"{of.name}.mk":
        return one.kind == "constructor"
    if one.shown.startswith(f"{of.name}.to"):
        return of.keyword in ("structure", "class")
    # `instDecidableEqInterval.decEq`, in the namespace of the type.
    space = (of.name or "").rpartition(".")[0]
    return one.shown.removeprefix(f"{space}.").startswith("inst")


def _place_differences(one: Stored, other: Written) -> Iterator[str]:
    """Differences in kind, place and documentation."""
    assert one.range is not None
    assert one.name_range is not None
    if one.kind not in _KINDS[other.keyword]:
        yield f"{one.name} is stored as a {one.kind} and written as a {other.keyword}"
    if one.private != other.private:
        yield f"{one.name} is private either as stored or as written, not in both"
    places = [
        ("begins", one.range[:2], other.first),
        ("ends", one.range[2:], other.last),
        ("has its name", one.name_range[:2], other.named_at or one.name_range[:2]),
    ]
    for what, ours, theirs in places:
        if ours != theirs:
            yield (
                f"{one.name} {what} at {ours[0]}:{ours[1]} as stored and at "
                f"{theirs[0]}:{theirs[1]} as written"
            )
    if (one.doc or "").split() != (other.doc or "").split():
        yield f"{one.name}: its documentation is not stored as it is written"


def _compare_mentions(
    one: Stored,
    other: Written,
    constants: Mapping[str, Stored],
    shown: Mapping[str, set[str]],
    silent: set[str],
) -> Iterator[str]:
    """Differences between the names in a written statement and the constants in the stored one."""
    if other.statement is None:
        return
    names = one.uses_of_type
    if other.keyword in _TYPES:
        # The parents and indices are in the types of its constructors.
        parts = [constants[n] for n in one.uses_of_value if n in constants]
        names = (*names, *(n for part in parts for n in part.uses_of_type))
    used = set(uses(constants, names)[0])
    # An ascribed type leaves no trace of its own, a default value none in the text.
    near = used | {n for name in used for n in uses(constants, constants[name].uses_of_type)[0]}
    # A name behind a dot is looked up in a type, not in a namespace.
    words = set(re.findall(rf"(?<![.\w]){NAME.pattern}", other.statement))
    bound = {
        word
        for text in (other.statement, other.variables)
        for groups in _BINDERS.findall(text)
        for group in groups
        for word in NAME.findall(group)
    }
    for word in sorted(words - bound):
        for space in (*other.opened, ""):
            meant = shown.get(f"{space}.{word}" if space else word, set()) - {one.name}
            if meant:
                if not meant & near:
                    yield f"{one.name}: {word} is written in its statement and not stored in it"
                break
    text = f"{other.statement} {other.variables}"
    parts_of_words = {part for word in NAME.findall(text) for part in word.split(".")}
    for name in sorted(set(uses(constants, one.uses_of_type)[0]) - silent):
        constant = constants[name]
        if constant.kind != "definition" or _is_type(constant) or internal(constant.shown):
            continue
        in_others = any(
            name in constants[n].uses_of_type or name in constants[n].uses_of_value
            for n in used
            if n != name
        )
        if constant.shown.rpartition(".")[2] not in parts_of_words and not in_others:
            yield f"{one.name}: {constant.shown} is stored in its statement and not written in it"


def _is_type(constant: Stored) -> bool:
    """Whether it is a type or makes one: such are often left for Lean to infer."""
    return re.search(r":\s*(Type|Sort)\b[^:]*$", constant.statement or "") is not None
