"""The second kernel accepts the proofs, and a wrong export is seen: each kind of mistake by the
check that is meant for it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from stored_modules import store_another

from bridge.audit import library as audited
from bridge.audit import main_theorems, statements
from bridge.audit.second_kernel import check, core_statements, files
from bridge.audit.second_kernel.check import SecondKernelError
from bridge.audit.second_kernel.export import Exported
from bridge.cache import Cache
from bridge.limits import Limit
from bridge.toolchain.embedded import EmbeddedLean

pytestmark = pytest.mark.skipif(
    not check.is_installed(), reason=f"{check.PACKAGE} is not installed"
)

SOURCE = """
public section
inductive Tree where
  | leaf
  | node (left right : Tree) (value : Nat)
theorem swapped (a b : Nat) : a + b = b + a := Nat.add_comm a b
theorem turned (a b : Nat) : a * b = b * a := Nat.mul_comm a b
theorem after {α : Type u} (x y : α) (h : x = y) (p : α → Prop) (hx : p x) : p y :=
  have k := h
  k ▸ hx
theorem text : "β" = "β" := rfl
theorem number : 12345678901234567890 + 1 = 12345678901234567891 := rfl
def lifted (n : Nat) : Quot (fun a b : Nat => a = b) := Quot.mk _ n
"""
THEOREMS = ("swapped", "turned", "after", "text", "number")
Line = dict[str, Any]


class Proofs:
    """The export of a small library, and the second kernel's answers when lines are changed."""

    def __init__(self, lean: EmbeddedLean, folder: Path) -> None:
        self.lean, self.path = lean, folder / "proofs.ndjson"
        self.exported: Exported = files.write_proofs(lean, self.path)
        self.lines: list[Line] = [
            json.loads(line) for line in self.path.read_text("utf-8").splitlines()
        ]
        places = dict.fromkeys(THEOREMS, "Small/Some.lean")
        self.terms = {name: one.term for name, one in statements.read(lean, places).items()}
        self.names = [""]
        for line in self.lines:
            if "in" in line:
                one = line.get("str") or {"pre": line["num"]["pre"], "str": line["num"]["i"]}
                self.names.append(f"{self.names[one['pre']]}.{one['str']}".lstrip("."))

    def place(self, name: str, kind: str = "thm") -> int:
        """The line that declares a constant."""
        for number, line in enumerate(self.lines):
            of = line.get(kind)
            if of is not None:
                one = of["types"][0] if kind == "inductive" else of
                if self.names[one["name"]] == name:
                    return number
        raise AssertionError(name)

    def sentences(self, lines: list[Line], path: Path) -> list[str]:
        path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
        return self.problems(path)

    def problems(self, path: Path) -> list[str]:
        answer = check.check_file(check.kernel_library(), path, THEOREMS)
        return check.problems(answer, self.exported, self.terms, self.exported.bodiless)


@pytest.fixture(scope="module")
def proofs(
    exchange_project: Callable[[dict[str, str]], EmbeddedLean],
    tmp_path_factory: pytest.TempPathFactory,
) -> Proofs:
    lean = exchange_project({"Some": SOURCE})
    result = lean.build()
    assert result.ok, result.messages
    return Proofs(lean, tmp_path_factory.mktemp("proofs"))


@pytest.mark.thorough
def test_what_is_proved_is_accepted_with_the_statements_of_the_page(proofs: Proofs) -> None:
    assert proofs.problems(proofs.path) == []
    answer = check.check_file(check.kernel_library(), proofs.path, THEOREMS)
    assert answer["statements"] == proofs.terms
    # The same digest, of Lean's terms, of the other kernel's and of the lines of the export.
    read = core_statements.of_export(proofs.path, THEOREMS)
    assert {name: read[name].digest for name in THEOREMS} == proofs.terms
    assert len(set(proofs.terms.values())) == len(THEOREMS)
    assert answer["declarations"] == proofs.exported.declarations
    assert {"quot", "inductive", "thm", "def", "axiom"} <= set(answer["declarations"])


def test_the_kernel_tells_the_statements_of_core_constants(proofs: Proofs) -> None:
    section = check.check_library(proofs.lean, proofs.terms, proofs.exported.bodiless)
    assert section["problems"] == []
    found = core_statements.of_export(proofs.path)
    assert section["core_statements"] == {name: asdict(one) for name, one in found.items()}


def exchange(part: str) -> Callable[[Proofs], list[Line]]:
    """`swapped` with the type or the proof of `turned`."""

    def change(proofs: Proofs) -> list[Line]:
        lines, place = list(proofs.lines), proofs.place("swapped")
        other = proofs.lines[proofs.place("turned")]["thm"][part]
        lines[place] = {"thm": {**lines[place]["thm"], part: other}}
        return lines

    return change


def both_exchanged(proofs: Proofs) -> list[Line]:
    lines, place = list(proofs.lines), proofs.place("swapped")
    other = proofs.lines[proofs.place("turned")]["thm"]
    changed = {part: other[part] for part in ("type", "value")}
    lines[place] = {"thm": {**lines[place]["thm"], **changed}}
    return lines


def deep_argument(proofs: Proofs) -> list[Line]:
    """In the proof of `swapped` another argument of another type."""
    lines = list(proofs.lines)
    term = lines[proofs.place("swapped")]["thm"]["value"]
    places = {line["ie"]: number for number, line in enumerate(lines) if "ie" in line}
    while "lam" in lines[places[term]]:
        term = lines[places[term]]["lam"]["body"]
    application = lines[places[term]]
    function = application["app"]["fn"]
    # Nat.add_comm itself, where a number is expected.
    head = lines[places[function]]["app"]["fn"]
    lines[places[term]] = {**application, "app": {"fn": function, "arg": head}}
    return lines


def as_axiom(proofs: Proofs) -> list[Line]:
    lines, place = list(proofs.lines), proofs.place("swapped")
    of = lines[place]["thm"]
    kept = {part: of[part] for part in ("name", "levelParams", "type")}
    lines[place] = {"axiom": {**kept, "isUnsafe": False}}
    return lines


def as_definition(proofs: Proofs) -> list[Line]:
    lines, place = list(proofs.lines), proofs.place("swapped")
    lines[place] = {"def": {**lines[place]["thm"], "hints": "abbrev", "safety": "safe"}}
    return lines


def without(name: str, kind: str) -> Callable[[Proofs], list[Line]]:
    def change(proofs: Proofs) -> list[Line]:
        lines = list(proofs.lines)
        del lines[proofs.place(name, kind)]
        return lines

    return change


def twice(proofs: Proofs) -> list[Line]:
    return [*proofs.lines, proofs.lines[proofs.place("swapped")]]


def other_recursor(proofs: Proofs) -> list[Line]:
    lines, place = list(proofs.lines), proofs.place("Tree", "inductive")
    changed = json.loads(json.dumps(lines[place]))
    first, second = changed["inductive"]["recs"][0]["rules"]
    first["rhs"], second["rhs"] = second["rhs"], first["rhs"]
    lines[place] = changed
    return lines


def other_constructor(proofs: Proofs) -> list[Line]:
    """A constructor of another type than the one that it is to make."""
    lines, place = list(proofs.lines), proofs.place("Tree", "inductive")
    changed = json.loads(json.dumps(lines[place]))
    numbers = lines[proofs.place("Nat", "inductive")]["inductive"]
    changed["inductive"]["ctors"][0]["type"] = numbers["ctors"][0]["type"]
    lines[place] = changed
    return lines


def other_number(proofs: Proofs) -> list[Line]:
    lines = list(proofs.lines)
    place = next(number for number, line in enumerate(lines) if "ie" in line)
    lines[place] = {**lines[place], "ie": lines[place]["ie"] + 7}
    return lines


CHANGES: Mapping[str, tuple[Callable[[Proofs], list[Line]], str]] = {
    "another proof": (exchange("value"), "refuses swapped (thm): declared type mismatch"),
    "another statement": (exchange("type"), "refuses swapped (thm): declared type mismatch"),
    "a wrong argument": (deep_argument, "refuses swapped (thm): application type mismatch"),
    "another theorem of the same name": (
        both_exchanged,
        "the second kernel has another statement of swapped than the page",
    ),
    "an axiom": (as_axiom, "swapped is an axiom of the export, and not of the library"),
    "a definition": (as_definition, "the second kernel has no theorem swapped"),
    "left out": (without("swapped", "thm"), "the second kernel has no theorem swapped"),
    "what it needs left out": (without("Nat.add_comm", "axiom"), "unknown constant"),
    "twice": (twice, "refuses swapped (thm): already declared"),
    "another recursor": (other_recursor, "Tree.rec is other than the one that the kernel makes"),
    "another constructor": (other_constructor, "refuses Tree (inductive)"),
    "another number": (other_number, "is none of its format (ValueError: number 7 where 0 comes"),
}


# Each starts the kernel.
@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", CHANGES)
def test_a_wrong_export_is_seen(proofs: Proofs, tmp_path: Path, name: str) -> None:
    change, sentence = CHANGES[name]
    lines = change(proofs)
    assert lines != proofs.lines
    found = proofs.sentences(lines, tmp_path / "wrong.ndjson")
    assert any(sentence in one for one in found), found


def test_a_file_that_breaks_off_is_refused(proofs: Proofs, tmp_path: Path) -> None:
    path = tmp_path / "cut.ndjson"
    path.write_bytes(proofs.path.read_bytes()[:-20])
    (problem,) = proofs.problems(path)
    last = len(proofs.lines)
    assert f"line {last} of the export is none of its format (DecodeError: " in problem


def test_a_kernel_that_does_not_answer_is_ended(proofs: Proofs) -> None:
    with pytest.raises(SecondKernelError, match=r"of processor time, of 0\.01 s allowed"):
        check.check_file(check.kernel_library(), proofs.path, (), Limit(0.01))


def test_another_library_is_refused(proofs: Proofs, tmp_path: Path) -> None:
    with pytest.raises(
        SecondKernelError, match=r"the second kernel ended with status 1: .*none\.so"
    ):
        check.check_file(tmp_path / "none.so", proofs.path)


@pytest.mark.thorough
def test_a_stored_proof_that_does_not_fit_fails_the_audit(
    exchange_project: Callable[[dict[str, str]], EmbeddedLean],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stored `x` is another than the one that the stored proof of `x = 1` was made for: only a
    kernel that checks it again sees that."""
    lean = exchange_project(
        {
            "X": "public section\n@[expose] def x : Nat := 1\n",
            "Proof": "public import Small.X\npublic section\ntheorem one_is : x = 1 := rfl\n",
        }
    )
    assert lean.build().ok
    files.write_proofs(lean, tmp_path / "proofs.ndjson")
    table = lean.root / core_statements.TABLE
    table.parent.mkdir(exist_ok=True)
    table.write_text(
        core_statements.text(core_statements.of_export(tmp_path / "proofs.ndjson")), "utf-8"
    )
    monkeypatch.setattr(main_theorems, "main_theorems", lambda *_: ([], []))
    monkeypatch.setattr(main_theorems, "count_verdicts", lambda *_: ({}, []))
    monkeypatch.setattr(main_theorems, "whole_statements", lambda *_: ({}, [], True))
    monkeypatch.setattr(audited, "implemented_names", dict)
    monkeypatch.setattr(audited.statements, "keep", lambda *_: None)
    monkeypatch.setattr(audited.Library, "key", lambda _: "key")
    monkeypatch.setattr(audited, "digest", lambda *_: "key")

    def audit(name: str) -> dict[str, Any]:
        cache = Cache(tmp_path / name)
        library = audited.Library(lean.root, cache, print, lambda *_: None, _lean=lean)
        return library.audit()

    right = audit("right")
    assert right["problems"] == []
    assert right["ok"]
    assert right["kernel"].startswith("the kernel of Lean 4.35")
    assert right["replayed"] == 2

    store_another(lean, "Small.X", "1", "2")
    wrong = audit("wrong")
    lean.stock("Small.X").unlink()
    assert not wrong["ok"]
    (problem,) = wrong["problems"]
    assert problem.startswith("the second kernel does not accept the library: the kernel refuses")
    assert "one_is (thm): declared type mismatch" in problem
