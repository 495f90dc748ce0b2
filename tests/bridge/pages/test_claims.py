"""docs/claims.toml and docs/claims.md: complete ones pass, and incomplete ones are refused."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bridge.audit import claims
from bridge.pages import claims_page
from bridge.site import full
from bridge.source.excerpt import SourceError
from bridge.vectors.format.index import entries_of
from bridge.vectors.load import default_directory

ROOT = Path(__file__).resolve().parents[3]
TEXT = "CLAIM {\n  attention is linear\n}\n\n  weights sum to 1\n"
MANIFEST = f"""
[[document]]
id = "9"
title = "Sample"
fingerprint = "{claims.fingerprint(["CLAIM {", "attention is linear", "weights sum to 1"])}"

[[claim]]
document = "9"
heading = "Linearity"
verdict = "corrected and proved"
quote = '''
CLAIM {{
  attention is linear
}}
'''
remark = "In the values alone."
refutes = ["Attention.Claims.linear_refuted"]
proves = ["Attention.Claims.linear"]
defines = ["Attention.Claims.Linear"]
vectors = ["drawn"]

[[claim]]
document = "9"
heading = "Sum"
verdict = "proved"
quote = "weights sum to 1"
remark = ""
proves = ["Attention.Claims.sum"]
python = ["pyimpl.backends.reference.softmax"]
"""
LEAN = """namespace Attention.Claims

/-- The claim. -/
def Linear : Prop :=
  ∀ n : Nat, n = 0

/-- It is
false. -/
theorem linear_refuted : ¬ Linear := by
  intro h
  exact absurd (h 1) (by decide)

variable {n : Nat}
  (m : Nat)

/-- It holds of the values. -/
theorem linear : n + m = n + m := rfl

theorem sum : 1 = 1 := rfl

private theorem hidden : 1 = 1 := rfl

end Attention.Claims
"""
FAMILIES = frozenset({"drawn"})


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    """A small project: one Lean file and the manifest."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "claims.toml").write_text(MANIFEST, "utf-8")
    (tmp_path / "Attention").mkdir()
    (tmp_path / "Attention" / "Sample.lean").write_text(LEAN, "utf-8")
    return tmp_path


def find_problems(root: Path) -> list[str]:
    return claims.problems(claims.read(root), claims.read_declarations(root), FAMILIES)


# --- the project's own ----------------------------------------------------------------------------


def families() -> frozenset[str]:
    return frozenset(entry["family"] for entry in entries_of(default_directory()))


def test_every_claim_has_one_line_with_its_verdict() -> None:
    manifest = claims.read(ROOT)
    lines = (ROOT / claims_page.PAGE).read_text("utf-8").splitlines()
    for claim in manifest.claims:
        anchor = claims_page.anchor(claim)
        (line,) = (one for one in lines if f'<a id="{anchor}"></a>' in one)
        assert line.startswith(f'| <a id="{anchor}"></a>[{claim.heading}](claims.md#{anchor}) | ')
        assert f" | {claim.verdict} | " in line
        assert all(f"[`{name.removeprefix('Attention.')}`](../Att" in line for name in claim.lean)
    sections = [*manifest.documents, *manifest.claims]
    anchors = [claims_page.anchor(one) for one in sections]
    assert len(set(anchors)) == len(anchors)


@pytest.mark.thorough
def test_every_claim_stands_in_full_on_the_site() -> None:
    manifest = claims.read(ROOT)
    made = [one for one in full.pages(ROOT) if one.under == claims_page.PAGE]
    for document in manifest.documents:
        # A long document has several parts, each a page.
        parts = [one for one in made if one.name.startswith(f"docs/claims/{document.id}")]
        assert parts[0].anchors[claims_page.anchor(document)] is None
        for claim in manifest.of(document):
            anchor = claims_page.anchor(claim)
            (page,) = (one for one in parts if one.anchors.get(anchor) == anchor)
            assert f"\n## {claim.document} {claim.heading}\n" in page.text


# Each row once broken, as a careless edit of the manifest could do.
QUOTING = [n for n, claim in enumerate(claims.read(ROOT).claims) if claim.quote]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("place", QUOTING)
def test_no_row_can_be_left_out(place: int) -> None:
    manifest = claims.read(ROOT)
    rows = manifest.claims
    fewer = msgspec.structs.replace(manifest, claims=rows[:place] + rows[place + 1 :])
    document = next(d for d in manifest.documents if d.id == rows[place].document)
    quoted = [line for claim in fewer.of(document) for line in claims.essential(claim.quote)]
    assert claims.fingerprint(quoted) != document.fingerprint


# --- errors of a manifest -------------------------------------------------------------------------


def test_essential_lines() -> None:
    assert claims.essential(TEXT) == ["CLAIM {", "attention is linear", "weights sum to 1"]


def test_a_good_manifest_has_no_problem(sample: Path) -> None:
    assert find_problems(sample) == []


WRONG: list[tuple[str, str, str]] = [
    ("  attention is linear", "  attention is affine", "do not quote every line"),
    ('quote = "weights sum to 1"', 'quote = ""', "do not quote every line"),
    ('verdict = "proved"', 'verdict = "true"', "its verdict is 'true', not one of"),
    ('verdict = "proved"', 'verdict = "refuted"', "refuted, and no theorem refutes it"),
    ('verdict = "proved"', 'verdict = "not a statement"', "and a theorem proves it"),
    (
        'verdict = "corrected and proved"',
        'verdict = "proved"',
        "proved, and a theorem refutes it",
    ),
    ('"Attention.Claims.sum"', '"Attention.Claims.som"', "has no Attention.Claims.som"),
    ('"Attention.Claims.sum"', '"Attention.Claims.hidden"', "has no Attention.Claims.hidden"),
    ('"Attention.Claims.sum"', '"Attention.Claims.Linear"', "Linear is no theorem"),
    (
        'defines = ["Attention.Claims.Linear"]',
        'defines = ["Attention.Claims.sum"]',
        "sum is a theorem, not a definition",
    ),
    (
        'refutes = ["Attention.Claims.linear_refuted"]',
        'refutes = ["Attention.Claims.sum"]',
        "Attention.Claims.sum is no refutation",
    ),
    (
        'refutes = ["Attention.Claims.linear_refuted"]',
        "refutes = []",
        "linear_refuted refutes a claim, and no row names it",
    ),
    (
        "pyimpl.backends.reference.softmax",
        "pyimpl.backends.reference.softmin",
        "there is no pyimpl.backends.reference.soft",
    ),
    ("pyimpl.backends.reference.softmax", "os.path.join", "os.path.join is not of pyimpl"),
    ('vectors = ["drawn"]', 'vectors = ["painted"]', "there is no family painted"),
    ('heading = "Sum"', 'heading = "Linearity"', "two rows are called 'Linearity'"),
    (
        'document = "9"\nheading = "Sum"',
        'document = "8"\nheading = "Sum"',
        "there is no document 8",
    ),
]


@pytest.mark.parametrize(("old", "new", "problem"), WRONG)
def test_a_wrong_row_is_a_problem(sample: Path, old: str, new: str, problem: str) -> None:
    assert old in MANIFEST
    (sample / claims.FILE).write_text(MANIFEST.replace(old, new), "utf-8")
    assert any(problem in one for one in find_problems(sample)), find_problems(sample)
    with pytest.raises(SourceError, match=r"claims\.toml"):
        claims_page.page(sample, FAMILIES)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("heading = ", "header = ", "unknown field `header` - at `$.claim[0]`"),
        ('remark = ""\n', "", "missing required field `remark` - at `$.claim["),
        ('vectors = ["drawn"]', 'vectors = "drawn"', "Expected `array`, got `str` - at `$.claim["),
        ('title = "Sample"\n', "", "missing required field `title` - at `$.document[0]`"),
        ("[[document]]", "[[document", "cannot be read"),
    ],
)
def test_what_is_no_manifest_is_an_error(sample: Path, old: str, new: str, message: str) -> None:
    (sample / claims.FILE).write_text(MANIFEST.replace(old, new), "utf-8")
    with pytest.raises(SourceError, match=re.escape(message)):
        claims.read(sample)


LESSON = """
[[lesson]]
title = "Not linear"
document = "9"
heading = "Linearity"
says = "It moves."
wrong = ["Attention.Claims.Linear", "Attention.Claims.linear_refuted"]
right = ["Attention.Claims.linear"]
"""


def in_full(root: Path) -> dict[str, str]:
    """The pages of the site, by the last part of their names."""
    made = full._of_claims(root, FAMILIES)
    return {one.name.rpartition("/")[2].removesuffix(".md"): one.text for one in made}


def test_a_lesson_stands_before_the_rows(sample: Path) -> None:
    assert "## What can be learnt" not in claims_page.page(sample, FAMILIES)
    assert set(in_full(sample)) == {"9"}
    (sample / claims.FILE).write_text(MANIFEST + LESSON, "utf-8")
    text = claims_page.page(sample, FAMILIES)
    lesson, _, _ = text.partition("\n## 9 Sample\n")
    assert "[Not linear](claims.md#not-linear): It moves. The row: [9 Linearity](claims" in lesson
    pages = in_full(sample)
    told = pages["lessons"].partition("\n## Not linear\n")[2]
    assert "It moves. The row: [9 Linearity](claims.md#9-linearity)." in told
    wrong, right = told.split("\n<div>\n")[1:]
    assert "def Linear : Prop" in wrong
    assert "theorem linear_refuted : ¬ Linear\n" in wrong
    # With the variables that a command before it binds.
    assert "theorem linear\n    {n : Nat} (m : Nat) :\n    n + m = n + m\n" in right
    assert "theorem linear_refuted : ¬ Linear\n" in pages["9"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('heading = "Linearity"\nsays', 'heading = "Lines"\nsays', "there is no row 9 Lines"),
        ('", "Attention.Claims.linear_refuted"]', '"]', "it shows no refutation of its row"),
        ('right = ["Attention.Claims.linear"]', 'right = ["x"]', "the library has no x"),
        ('says = "It moves."\n', "", "missing required field `says` - at `$.lesson[0]`"),
    ],
)
def test_a_wrong_lesson_is_a_problem(sample: Path, old: str, new: str, problem: str) -> None:
    assert old in LESSON
    (sample / claims.FILE).write_text(MANIFEST + LESSON.replace(old, new), "utf-8")
    with pytest.raises(SourceError, match=re.escape(problem)):
        claims_page.page(sample, FAMILIES)


def test_the_project_has_lessons() -> None:
    manifest = claims.read(ROOT)
    text = claims_page.page(ROOT, families())
    assert len(manifest.lessons) >= 5
    assert all(f"[{lesson.title}](claims.md#" in text for lesson in manifest.lessons)


# --- the page -------------------------------------------------------------------------------------


def test_a_line_names_the_verdict_and_the_lean(sample: Path) -> None:
    text = claims_page.page(sample, FAMILIES)
    lean = ", ".join(
        f"[`Claims.{name}`](../Attention/Sample.lean#L{line})"
        for name, line in (("linear_refuted", "9-L9"), ("linear", "17-L17"), ("Linear", "4-L5"))
    )
    anchor = '<a id="9-linearity"></a>[Linearity](claims.md#9-linearity)'
    assert f"\n| {anchor} | corrected and proved | {lean} |\n" in text
    assert "attention is linear" not in text


def test_statements_come_from_the_files(sample: Path) -> None:
    text = in_full(sample)["9"]
    assert "Attention/Sample.lean#L9-L9): It is false." in text
    assert "theorem linear_refuted : ¬ Linear\n" in text
    assert "intro h" not in text
    assert "```lean\ntheorem linear\n    {n : Nat} (m : Nat) :\n    n + m = n + m\n```" in text
    assert "def Linear : Prop :=\n  ∀ n : Nat, n = 0\n" in text
    assert "CLAIM {\n  attention is linear\n}" in text
    assert "`pyimpl.backends.reference.softmax`" in text
    file = sample / "Attention" / "Sample.lean"
    file.write_text(LEAN.replace("n + m = n", "n + 0 + m = n"), "utf-8")
    assert "n + 0 + m = n + m" in in_full(sample)["9"]


def test_a_fence_is_longer_than_what_it_holds() -> None:
    assert claims_page.fence_code("a ``` b").startswith("````\n")


# --- the audit ------------------------------------------------------------------------------------


def test_the_audit_compares_with_what_lean_stores(sample: Path, monkeypatch: Any) -> None:
    from bridge.audit import main_theorems

    monkeypatch.setattr(main_theorems, "entries_of", lambda _: [{"family": "drawn"}])
    names = ("linear_refuted", "linear", "sum")
    listing: dict[str, Any] = {f"Attention.Claims.{n}": {"kind": "theorem"} for n in names}
    listing["Attention.Claims.Linear"] = {"kind": "definition"}
    counts = {"9": {"corrected and proved": 1, "proved": 1}}
    assert main_theorems.count_verdicts(sample, listing) == (counts, [])
    del listing["Attention.Claims.sum"]
    listing["Attention.Claims.linear"] = {"kind": "axiom"}
    assert main_theorems.count_verdicts(sample, listing)[1] == [
        "9, Linearity: Lean has Attention.Claims.linear as axiom",
        "9, Sum: Lean has Attention.Claims.sum as nothing",
    ]
