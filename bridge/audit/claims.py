"""`docs/claims.toml`: the claims of the source documents, and the verdict on each.

The documents lie outside of the repository. So that no line of them is left out, each row quotes
the lines that it speaks of, in the order of the document, and each document has a fingerprint: the
hash of its lines. `problems` compares the quotes, put together, with it. Blank lines and lines
without a letter or digit, such as closing brackets, do not count.
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
import textwrap
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bridge.source import binders
from bridge.source.excerpt import SourceError
from bridge.source.lean import Written, declarations

FILE = "docs/claims.toml"
LIBRARY = "Attention"
CLAIMS = "Attention.Claims."

# For each verdict, whether there are Lean theorems that refute the claim as it stands, and theorems
# that prove it or a true claim in its place: must be (True), cannot be (False), or may be (None).
VERDICTS: dict[str, tuple[bool | None, bool | None]] = {
    "proved": (False, True),
    "proved stronger": (False, True),
    "corrected and proved": (None, True),
    "weaker": (None, True),
    "refuted": (True, False),
    "not a statement": (None, False),
    "open": (None, None),
}


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row as the manifest has it."""


class Document(Row, frozen=True):
    """id: as in the source documents' names; fingerprint: of its lines (`fingerprint`)."""

    id: str
    title: str
    fingerprint: str


class Claim(Row, frozen=True):
    """One row. quote: the lines that it speaks of; empty where the claim is implied by others.
    remark: a comment. refutes, proves, defines: full Lean names of theorems that refute it
    as it stands, that prove it or a true claim in its place, and of definitions that render it.
    python: dotted names; vectors: families."""

    document: str
    heading: str
    quote: str
    verdict: str
    remark: str
    refutes: tuple[str, ...] = ()
    proves: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("quote", "remark"):
            msgspec.structs.force_setattr(self, name, getattr(self, name).strip("\n"))

    @property
    def lean(self) -> tuple[str, ...]:
        return (*self.refutes, *self.proves, *self.defines)


class Lesson(Row, frozen=True):
    """A row that the page begins with, told in short. document, heading: of the row; says: in
    words; wrong, right: full Lean names of the false claim, its refutation included, and of the
    true one in its place."""

    title: str
    document: str
    heading: str
    says: str
    wrong: tuple[str, ...]
    right: tuple[str, ...]


class Manifest(Row, frozen=True):
    """The whole file."""

    documents: tuple[Document, ...] = msgspec.field(default=(), name="document")
    claims: tuple[Claim, ...] = msgspec.field(default=(), name="claim")
    lessons: tuple[Lesson, ...] = msgspec.field(default=(), name="lesson")

    def of(self, document: Document) -> list[Claim]:
        """The rows of a document, in its order."""
        return [claim for claim in self.claims if claim.document == document.id]


@dataclass(frozen=True)
class Declared:
    """A declaration as it stands in its file. code: a theorem's statement, or a whole definition.
    shown: that with the declarations of commands before it: a theorem's binders in it, the
    `variable` commands before a definition. Lines are 1-based, both included."""

    name: str
    keyword: str
    doc: str
    code: str
    shown: str
    file: str
    first_line: int
    last_line: int

    @property
    def link(self) -> str:
        """From `docs/`, with the lines as GitHub understands them."""
        return f"../{self.file}#L{self.first_line}-L{self.last_line}"


def read(root: Path) -> Manifest:
    """The manifest. Raises SourceError if it is not valid."""
    try:
        return msgspec.toml.decode((root / FILE).read_bytes(), type=Manifest)
    except (OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
        raise SourceError(f"{FILE}: cannot be read: {error}") from error


def essential(text: str) -> list[str]:
    """The lines of a text that count, without the blanks around them."""
    return [line.strip() for line in text.splitlines() if any(map(str.isalnum, line))]


def fingerprint(lines: list[str]) -> str:
    """SHA-256 of the lines, as hex."""
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def read_declarations(root: Path) -> dict[str, Declared]:
    """By full name, the declarations in the files of the library that have a name and are not
    private."""
    found = {}
    for path in sorted((root / LIBRARY).rglob("*.lean")):
        source = path.read_text("utf-8")
        lines = source.splitlines()
        file = path.relative_to(root).as_posix()
        for one in declarations(source):
            if one.name is None or one.private or one.keyword_at is None or one.value_at is None:
                continue
            theorem = one.keyword in ("theorem", "lemma")
            last, column = one.value_at if theorem else one.last
            first = one.keyword_at[0]
            kept = [*lines[first - 1 : last - 1], lines[last - 1][:column]]
            code = "\n".join(kept).rstrip()
            doc = " ".join((one.doc or "").split())
            shown = binders.whole(one, code) if theorem else _after_variables(one, code)
            last = first + code.count("\n")
            found[one.name] = Declared(one.name, one.keyword, doc, code, shown, file, first, last)
    return found


def _after_variables(definition: Written, code: str) -> str:
    commands = (
        textwrap.fill(" ".join(part.split()), 100, subsequent_indent="  ")
        for part in re.split(r"\b(?=variable\b)", definition.variables)
        if part.strip()
    )
    return "\n".join((*commands, code))


def problems(
    manifest: Manifest, lean: Mapping[str, Declared], families: frozenset[str]
) -> list[str]:
    """The errors of the manifest, a sentence each. families: the names of all there are."""
    found = []
    ids = [document.id for document in manifest.documents]
    found += [
        f"document {id} is listed twice" for id in sorted({i for i in ids if ids.count(i) > 1})
    ]
    for document in manifest.documents:
        quoted = [line for claim in manifest.of(document) for line in essential(claim.quote)]
        if fingerprint(quoted) != document.fingerprint:
            found.append(
                f"document {document.id}: its rows do not quote every line of it, in its order"
            )
        headings = [claim.heading for claim in manifest.of(document)]
        found += [
            f"document {document.id}: two rows are called {heading!r}"
            for heading in sorted({h for h in headings if headings.count(h) > 1})
        ]
    for claim in manifest.claims:
        label = f"{claim.document}, {claim.heading}"
        found += [f"{label}: {text}" for text in _of_row(claim, ids, lean, families)]
    for lesson in manifest.lessons:
        found += [f"lesson {lesson.title!r}: {text}" for text in _of_lesson(lesson, manifest, lean)]
    named = {name for claim in manifest.claims for name in claim.lean}
    found += [
        f"{name} refutes a claim, and no row names it"
        for name in lean
        if name.startswith(CLAIMS) and name.endswith("_refuted") and name not in named
    ]
    return found


def _of_lesson(lesson: Lesson, manifest: Manifest, lean: Mapping[str, Declared]) -> Iterator[str]:
    place = (lesson.document, lesson.heading)
    row = next((c for c in manifest.claims if (c.document, c.heading) == place), None)
    if row is None:
        yield f"there is no row {lesson.document} {lesson.heading}"
    elif not set(lesson.wrong) & set(row.refutes):
        yield "it shows no refutation of its row"
    for name in (*lesson.wrong, *lesson.right):
        if name not in lean:
            yield f"the library has no {name}"


def _of_row(
    claim: Claim, ids: list[str], lean: Mapping[str, Declared], families: frozenset[str]
) -> Iterator[str]:
    if claim.document not in ids:
        yield f"there is no document {claim.document}"
    if claim.verdict not in VERDICTS:
        yield f"its verdict is {claim.verdict!r}, not one of {', '.join(VERDICTS)}"
        return
    for wanted, names, what in zip(
        VERDICTS[claim.verdict],
        (claim.refutes, claim.proves),
        ("refutes it", "proves it"),
        strict=True,
    ):
        if wanted is True and not names:
            yield f"{claim.verdict}, and no theorem {what}"
        if wanted is False and names:
            yield f"{claim.verdict}, and a theorem {what}"
    if not claim.quote and not claim.remark:
        yield "neither quotes nor says anything"
    for name in claim.lean:
        if name not in lean:
            yield f"the library has no {name}"
    for name in claim.refutes:
        if name in lean and not (name.endswith("_refuted") and "¬" in lean[name].code):
            yield f"{name} is no refutation: its name ends in _refuted, and it denies something"
    for name in (*claim.refutes, *claim.proves):
        if name in lean and lean[name].keyword != "theorem":
            yield f"{name} is no theorem"
    for name in claim.defines:
        if name in lean and lean[name].keyword == "theorem":
            yield f"{name} is a theorem, not a definition"
    for name in claim.python:
        if not name.startswith("pyimpl."):
            yield f"{name} is not of pyimpl"
            continue
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            yield f"there is no {name}"
    for name in claim.vectors:
        if name not in families:
            yield f"there is no family {name} of vectors"
