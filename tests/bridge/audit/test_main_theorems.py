from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from bridge.audit import claims, main_theorems, statements
from bridge.audit.claims import Claim, Manifest
from bridge.cache import Cache
from bridge.toolchain import ToolchainError
from bridge.toolchain.messages import whole_listing

ENTRY = '[[theorem]]\nid = "{id}"\nkind = "corollary"\nlean = "{lean}"\nsentence = "Says."\n'


def declaration(kind: str = "theorem", mentions: tuple[str, ...] = ("Attention.Spec.f",)) -> Any:
    stands = {"module": "A", "file": "A.lean"}
    return {"name": "A.t", "kind": kind, **stands, "mentions": list(mentions)}


def listing(**changes: Any) -> dict[str, Any]:
    """A library with two classes, and a theorem that speaks of one of two definitions."""
    kind = {"kind": "definition", "module": "A"}
    classes = {name: {**kind, "is_class": True} for name in ("A.Ring", "A.Field")}
    definitions = {name: {**kind, "is_class": False} for name in ("Attention.Spec.f", "A.f")}
    return {**classes, **definitions, "A.t": declaration(**changes)}


def problems(folder: Path, toml: str, listing: dict[str, Any]) -> list[str]:
    (folder / "docs").mkdir()
    (folder / "docs" / "theorems.toml").write_text(toml)
    found = main_theorems.main_theorems(folder, listing)[1]
    return [one for one in found if not one.startswith("vectors name")]


def test_a_good_main_theorem_has_no_problem(tmp_path: Path) -> None:
    toml = ENTRY.format(id="a", lean="A.t")
    assert problems(tmp_path, toml, listing()) == []


@pytest.mark.parametrize(
    ("library", "problem"),
    [
        ({"A.f": {"module": "A"}}, "a: A.t is not a theorem of the library"),
        (listing(kind="definition"), "a: A.t is not a theorem of the library"),
        (
            listing(mentions=("A.f",)),
            "a: its statement mentions no definition of the Spec or of a model",
        ),
    ],
)
def test_a_bad_main_theorem_is_a_problem(
    tmp_path: Path, library: dict[str, Any], problem: str
) -> None:
    assert problems(tmp_path, ENTRY.format(id="a", lean="A.t"), library) == [problem]


@pytest.mark.parametrize(
    ("mentions", "over"),
    [(("A.Field", "A.Ring"), "A.Field"), (("A.Ring",), "A.Ring"), ((), None)],
)
def test_a_main_theorem_has_the_last_of_the_classes_that_it_mentions(
    tmp_path: Path, mentions: tuple[str, ...], over: str | None
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "theorems.toml").write_text(ENTRY.format(id="a", lean="A.t"))
    library = listing(mentions=("Attention.Spec.f", *mentions))
    (found,) = main_theorems.main_theorems(tmp_path, library)[0]
    assert found["over"] == over


def answer(found: Any, statement: str, term: str) -> dict[str, Any]:
    return {
        "theorem": "A.t",
        "found": found,
        "supposed": ["A.f"],
        "statement": statement,
        "term": term,
    }


class OneAnswer:
    """A Lean that has one answer to whatever is asked, and counts how often it is."""

    def __init__(self, root: Path, *answers: dict[str, Any]) -> None:
        self.root = root
        self.answers = answers
        self.asked: list[list[str]] = []

    def read_stored(self, script: Path, until: str, wanted: list[str]) -> list[dict[str, Any]]:
        self.asked.append(wanted)
        return [*self.answers]


def check_statements(
    folder: Path, lean: Any, patch: pytest.MonkeyPatch
) -> tuple[dict[str, statements.Statement], list[str]]:
    """The statements that are read, and the report on one listed theorem and on one claim, which
    name the same theorem, and on a claim that names a definition."""
    for part in statements.SOURCES:
        (folder / "bridge" / part).parent.mkdir(parents=True, exist_ok=True)
        (folder / "bridge" / part).write_text("module\n")
    (folder / "A.lean").write_text("namespace A\nopen B\ntheorem t : True := trivial\n")
    claim = Claim("9", "Sum", "", "proved", "", (), ("A.t", "A.f"), ("A.g",), (), ())
    patch.setattr(claims, "read", lambda root: Manifest((), (claim,)))
    cache = Cache(folder / "cache")
    return main_theorems.whole_statements(
        lean, cache, "key", [{"id": "a", "kind": "corollary", "lean": "A.t"}], listing()
    )[:2]


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (
            {"what": "sides", "part": False, "shown": ["e.exp x =\n  e.exp x"]},
            "its conclusion `e.exp x = e.exp x` has the same term on both sides",
        ),
        (
            {"what": "true", "part": True, "shown": ["True"]},
            "the part `True` of its conclusion holds of anything",
        ),
        (
            {"what": "contradiction", "part": False, "shown": ["p", "¬p"]},
            "its hypotheses `p` and `¬p` contradict each other",
        ),
    ],
)
def test_a_statement_that_says_nothing_is_a_problem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, Any], why: str
) -> None:
    lean = OneAnswer(tmp_path, answer(found, "A.t : True", ""))
    for _ in range(2):  # Failures are looked at again.
        assert check_statements(tmp_path, lean, monkeypatch)[1] == [
            f"a: A.t says nothing: {why}",
            f"9, Sum: A.t says nothing: {why}",
        ]
    assert lean.asked == [["A.t A A.B B"]] * 2


def test_statements_that_say_something_are_looked_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lean = OneAnswer(tmp_path, answer(None, "A.t : 1 = 2", "s 0"))
    for _ in range(2):
        said = check_statements(tmp_path, lean, monkeypatch)
        digest = hashlib.sha256(b"s 0").hexdigest()
        assert said == ({"A.t": statements.Statement("A.t : 1 = 2", None, digest, ("A.f",))}, [])
    assert lean.asked == [["A.t A A.B B"]]


def test_a_statement_that_was_not_looked_at_is_missed() -> None:
    with pytest.raises(ToolchainError, match=r"statements\.lean: 0 of 1 answers came"):
        whole_listing([{"looked_at": 1}], "statements.lean", "looked_at")


def test_an_id_is_listed_once(tmp_path: Path) -> None:
    toml = ENTRY.format(id="a", lean="A.t") * 2
    assert problems(tmp_path, toml, listing()) == ["a is listed twice"]


def test_vectors_name_only_listed_theorems(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "theorems.toml").write_text(ENTRY.format(id="a", lean="A.t"))
    found = main_theorems.main_theorems(tmp_path, listing())[1]
    assert "vectors name flash-eq-attention, which is not listed" in found
