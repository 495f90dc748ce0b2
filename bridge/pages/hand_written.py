"""Numbers and tables in pages that are otherwise written by hand.

A number stands in a sentence of `SAID`, wherever a page has that sentence; a table stands between
two comments, `<!-- NAME: written by bridge pages -->` and `<!-- end of NAME -->`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from bridge.audit.second_kernel import core_statements
from bridge.audit.theorems import count_kinds, listed_theorems
from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.judging import answers
from bridge.conformance.mutants.attention import MUTANTS
from bridge.pages import adapters_table, reached, sizes
from bridge.report import timings
from bridge.source.excerpt import SourceError
from bridge.vectors.model.attention import AttentionVector, Family

# Sentences with the numbers in them, each of which some page has.
SAID = (
    "{theorems} theorems are listed",
    "{main} of them main results",
    "{beyond} results about definitions beyond the Spec",
    "{corollary} corollaries and steps",
    "{sanity} sanity lemmas",
    "{theorems} theorems, each checked by Lean",
    "… ({theorems} theorems)",
    "{vectors} vectors in {families} families",
    "… ({families} families)",
    "{judged} of them on {pairs} pairs of implementation and dtype",
    "… ({pairs} pairs of implementation and dtype)",
    "{bodiless} constants have no body: {bodiless_theorems} theorems, {bodiless_definitions} "
    "definitions and {bodiless_opaque} opaque constants of Lean's own modules, and "
    "{bodiless_axioms} axioms",
    "export these {bodiless} constants",
    "{mutants} mutants: {mutants} caught",
    "… ({mutants} mutants)",
    "Of the {of_attention} vectors of `attention`, {halves} have lengths that two divides, "
    "{quarters} such that four does, {eighths} such that eight does",
    "took {verify_minutes} minutes on",
    "`make verify` | {verify_minutes} minutes",
    "`make test` | about {test_minutes} minutes after",
)
_BLOCK = re.compile(
    r"(?P<begin><!-- (?P<name>[\w-]+): written by bridge pages -->\n).*?"
    r"(?P<end><!-- end of (?P=name) -->)",
    re.DOTALL,
)


def texts(root: Path, families: Sequence[Family], generated: Collection[str]) -> dict[str, str]:
    """By path from the root, each page written by hand with its numbers and tables as they are now.
    generated: the pages that are made from templates. Decisions, which tell of their time, are left
    out. Raises SourceError where no page has a sentence or a table any more, and for a table that
    is unknown."""
    pages = {
        name: (root / name).read_text("utf-8")
        for path in sorted((*root.glob("*.md"), *root.glob("docs/*.md")))
        if (name := path.relative_to(root).as_posix()) not in generated
    }
    tables = {
        "adapters": adapters_table.table(),
        "sizes": sizes.table(families),
        "past-tiles": reached.table(families),
        "stages-of-verify": timings.table(timings.read(root, "verify")),
        "checks-of-test": timings.table(timings.read(root, "test")),
    }
    return renew(pages, SAID, numbers(root, families), tables)


def renew(
    pages: Mapping[str, str],
    said: Sequence[str],
    known: Mapping[str, int],
    tables: Mapping[str, str],
) -> dict[str, str]:
    """The pages with these numbers in these sentences, and these tables. Raises SourceError as
    `texts` does."""
    for sentence in said:
        pages = _renew_sentence(pages, sentence, known)
    return _renew_tables(pages, tables)


def numbers(root: Path, families: Sequence[Family]) -> dict[str, int]:
    """The counts, by the names that sentences have for them."""
    pairs = [(name, dtype) for name in adapters.BUILTIN for dtype in adapters.builtin(name).dtypes]
    vectors = [vector for family in families for vector in family.vectors]
    listed = listed_theorems(root / "docs" / "theorems.toml")
    left = vectors
    for name, dtype in pairs:
        skipped = answers.why_unsupported(adapters.builtin(name), left, dtype, "cpu")
        left = [vector for vector in left if vector.id in skipped]
    lengths = [(v.q_len, v.kv_len) for v in vectors if isinstance(v, AttentionVector)]
    return {
        "theorems": len(listed),
        **count_kinds(listed),
        "vectors": len(vectors),
        "families": len(families),
        "judged": len(vectors) - len(left),
        "pairs": len(pairs),
        "mutants": len(MUTANTS),
        "of_attention": len(lengths),
        **{
            name: sum(q_len % parts == 0 == kv_len % parts for q_len, kv_len in lengths)
            for name, parts in (("halves", 2), ("quarters", 4), ("eighths", 8))
        },
        **_count_bodiless(root),
        **{f"{command}_minutes": taken for command, taken in timings.minutes(root).items()},
    }


def _count_bodiless(root: Path) -> dict[str, int]:
    """How many constants of Lean's own modules the committed table of statements has, of each
    kind and in all. Raises FormatError."""
    kinds = [one.kind for one in core_statements.table(root).values()]
    return {
        "bodiless": len(kinds),
        "bodiless_theorems": kinds.count("theorem"),
        "bodiless_definitions": kinds.count("definition"),
        "bodiless_opaque": kinds.count("opaque constant"),
        "bodiless_axioms": kinds.count("axiom"),
    }


def _renew_sentence(
    pages: Mapping[str, str], sentence: str, known: Mapping[str, int]
) -> dict[str, str]:
    """The pages with the numbers of a sentence, wherever it stands; a line may break in it."""
    parts = re.split(r"(\{\w+\})", sentence)
    pattern = "".join(
        r"(?<![\d,])\d+" if part.startswith("{") else re.sub(r"(\\ )+", r"\\s+", re.escape(part))
        for part in parts
    )
    values = [str(known[part[1:-1]]) for part in parts if part.startswith("{")]

    def renew(found: re.Match[str]) -> str:
        left = iter(values)
        return re.sub(r"\d+", lambda _: next(left), found[0])

    made = {name: re.subn(pattern, renew, text) for name, text in pages.items()}
    if not any(count for _, count in made.values()):
        raise SourceError(
            f"no page says {sentence!r} any more; take it out of bridge/pages/hand_written.py"
        )
    return {name: text for name, (text, _) in made.items()}


def _renew_tables(pages: Mapping[str, str], tables: Mapping[str, str]) -> dict[str, str]:
    """The pages with the tables between their comments."""
    left = set(tables)

    def renew(found: re.Match[str]) -> str:
        name = found["name"]
        if name not in tables:
            raise SourceError(f"there is no table {name!r}; there are {', '.join(tables)}")
        left.discard(name)
        return f"{found['begin']}\n{tables[name]}\n{found['end']}"

    made = {name: _BLOCK.sub(renew, text) for name, text in pages.items()}
    if left:
        raise SourceError(
            f"no page has a place for the table {min(left)!r} any more, "
            f"<!-- {min(left)}: written by bridge pages -->"
        )
    return made
