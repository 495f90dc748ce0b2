"""Tests that stored bytes are exported, each thing once and before its uses, with constants without
a body; that the second kernel accepts it, and refuses it where it is wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bridge.audit.second_kernel import core_statements, files
from bridge.audit.second_kernel.export import NameUnknownError, bodiless_beside
from bridge.audit.second_kernel.olean import OleanError
from bridge.toolchain import ToolchainError
from bridge.toolchain.embedded import EmbeddedLean

LARGE = 123456789012345678901234567890123456789012345678901234567890
SOURCE = f"""
public section
inductive Tree (α : Type) where
  | leaf
  | node (left : Tree α) (value : α) (right : Tree α)
structure Two where
  first : Nat
  second : Nat
theorem swapped (a b : Nat) : a + b = b + a := Nat.add_comm a b
theorem kept (a b : Nat) : a + b = a + b := rfl
theorem first_of (a b : Nat) : (Two.mk a b).first = a := rfl
def large : Nat := {LARGE}
def text : String := "a\\nβ"
def lifted (n : Nat) : Quot (fun a b : Nat => a = b) := Quot.mk _ n
theorem in_let : let n := 2; n + n = 4 := rfl
unsafe def wild : Nat := 1
"""


@pytest.fixture(scope="module")
def lean(exchange_project: Callable[[dict[str, str]], EmbeddedLean]) -> EmbeddedLean:
    found = exchange_project({"Some": SOURCE})
    result = found.build()
    assert result.ok, result.messages
    return found


@pytest.fixture(scope="module")
def proofs(lean: EmbeddedLean, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("proofs") / "new" / "proofs.ndjson"
    files.write_proofs(lean, path)
    return path


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def shown_names(lines: list[dict[str, Any]]) -> list[str]:
    names = [""]
    for line in lines:
        if "in" in line:
            one = line.get("str") or {"pre": line["num"]["pre"], "str": line["num"]["i"]}
            names.append(f"{names[one['pre']]}.{one['str']}".lstrip("."))
    return names


def declarations(lines: list[dict[str, Any]]) -> dict[str, tuple[int, str, dict[str, Any]]]:
    """The line's number, the kind and the content of each declaration, by its (first) name."""
    names = shown_names(lines)
    found = {}
    for number, line in enumerate(lines):
        for kind in ("axiom", "def", "thm", "opaque", "inductive"):
            if kind in line:
                of = line[kind]
                first = of["types"][0]["name"] if kind == "inductive" else of["name"]
                found[names[first]] = (number, kind, of)
    return found


@pytest.mark.thorough
def test_each_thing_stands_once_and_before_what_uses_it(proofs: Path) -> None:
    lines = read(proofs)
    assert lines[0]["meta"]["format"] == {"version": "3.1.0"}
    for key, first in (("in", 1), ("il", 1), ("ie", 0)):
        numbers = [line[key] for line in lines if key in line]
        assert numbers == list(range(first, first + len(numbers)))
        said = [json.dumps({**line, key: 0}) for line in lines if key in line]
        assert len(set(said)) == len(said)
    made = -1
    for line in lines:
        if "ie" in line:
            for part in ("app", "lam", "forallE", "letE", "proj"):
                of = line.get(part, {})
                for term in ("fn", "arg", "type", "body", "value", "struct"):
                    assert of.get(term, 0) <= made or term not in of
            made = line["ie"]


def test_literals_are_as_written(proofs: Path) -> None:
    lines = read(proofs)
    assert any(line.get("natVal") == str(LARGE) for line in lines)
    assert any(line.get("strVal") == "a\nβ" for line in lines)


def test_what_has_no_body_is_listed_by_what_it_is(proofs: Path) -> None:
    axioms = {name for name, (_, kind, _) in declarations(read(proofs)).items() if kind == "axiom"}
    listed = json.loads(bodiless_beside(proofs).read_text("utf-8"))["bodiless"]
    assert axioms == {name for names in listed.values() for name in names}
    assert "Nat.add_comm" in listed["theorem"]
    assert not any("swapped" in name for name in axioms)


def test_each_constant_is_listed_with_how_many_it_rests_on_that_have_no_body(
    proofs: Path, lean: EmbeddedLean, tmp_path: Path
) -> None:
    rests_on = json.loads(bodiless_beside(proofs).read_text("utf-8"))["rests_on"]
    assert rests_on["kept"] == {}
    # As many as there are in an export of this one alone.
    alone = files.write_proofs(lean, tmp_path / "one.ndjson", ["swapped"])
    numbers = {what: len(names) for what, names in alone.bodiless.items()}
    assert numbers["theorem"] >= 1
    assert rests_on["swapped"] == numbers == alone.rests_on["swapped"]


def test_what_leans_own_constants_state_is_held_against_a_table(
    proofs: Path, tmp_path: Path
) -> None:
    listed = json.loads(bodiless_beside(proofs).read_text("utf-8"))["bodiless"]
    table = core_statements.of_export(proofs)
    assert {name: one.kind for name, one in table.items()} == {
        name: kind for kind, names in listed.items() for name in names
    }
    # As an export of a native Lean has it, where nothing is listed; of theorems the bodies alone
    # are other there. A theorem with another statement:
    lines = read(proofs)
    known = declarations(lines)
    theorems = [name for name, one in table.items() if one.kind == "theorem"]
    for name in theorems:
        number, _, of = known[name]
        of = {key: value for key, value in of.items() if key != "isUnsafe"}
        lines[number] = {"thm": {**of, "value": of["type"], "all": [of["name"]]}}
    native = tmp_path / "native.ndjson"
    compared = {name: table[name] for name in theorems}
    for changed in (False, True):
        if changed:
            lines[known["Nat.add_comm"][0]]["thm"]["type"] = known["kept"][2]["type"]
        native.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
        found = list(
            core_statements.problems(compared, core_statements.of_export(native, compared))
        )
        sentence = "Nat.add_comm (theorem) states something else than docs/core-statements.json has"
        assert found == ([sentence] if changed else [])


def test_constants_by_name_come_with_what_they_need(lean: EmbeddedLean, tmp_path: Path) -> None:
    path = tmp_path / "one.ndjson"
    files.write_proofs(lean, path, ["swapped"])
    found = declarations(read(path))
    assert {"swapped", "Nat", "Eq", "HAdd", "Nat.add_comm"} <= set(found)
    assert not {"kept", "Tree", "large"} & set(found)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [("nothing", "'nothing' is no constant of the library"), ("wild", "wild is unsafe")],
)
def test_a_name_that_no_kernel_checks_is_refused(
    lean: EmbeddedLean, tmp_path: Path, name: str, sentence: str
) -> None:
    path = tmp_path / "one.ndjson"
    with pytest.raises(NameUnknownError, match=sentence):
        files.write_proofs(lean, path, [name])
    assert list(tmp_path.iterdir()) == []


def test_stored_bytes_of_something_else_are_refused(
    lean: EmbeddedLean, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "Some.olean"
    wrong.write_bytes(b"olean\x01" + bytes(100))
    monkeypatch.setattr(lean, "stored_parts", lambda: {"Some": [wrong]})
    with pytest.raises(OleanError, match=r"Some.olean is no \.olean of format 2"):
        files.write_proofs(lean, tmp_path / "one.ndjson")
    monkeypatch.setattr(lean, "kind", "native")
    with pytest.raises(ToolchainError, match="use lean4export"):
        files.write_proofs(lean, tmp_path / "one.ndjson")
