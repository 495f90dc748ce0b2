"""The table of statements of Lean's own constants: digests of an export, and differences."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bridge.audit.second_kernel import core_statements
from bridge.audit.second_kernel.core_statements import FormatError, Statement
from bridge.audit.second_kernel.export import bodiless_beside

ROOT = Path(__file__).parents[4]
# As lean4export writes it: keys in their order, theorems with their proofs.
# theorem A.t.{u} (α : Sort (max u 1)) : α → α, by a note, whose proof is no term of it; opaque A.o;
# def A.d, whose statement is the same up to the names of bound variables; axiom A.a.
LINES: list[dict[str, Any]] = [
    {"meta": {"exporter": {"name": "lean4export"}, "format": {"version": "3.1.0"}}},
    {"in": 1, "str": {"pre": 0, "str": "A"}},
    {"in": 2, "str": {"pre": 1, "str": "t"}},
    {"in": 3, "str": {"pre": 0, "str": 'u"ie":'}},
    {"il": 1, "param": 3},
    {"il": 2, "succ": 0},
    {"il": 3, "max": [1, 2]},
    {"in": 4, "num": {"i": 7, "pre": 1}},
    {"ie": 0, "sort": 3},
    {"bvar": 0, "ie": 1},
    {"bvar": 1, "ie": 2},
    {"forallE": {"binderInfo": "default", "body": 2, "name": 4, "type": 1}, "ie": 3},
    {"ie": 4, "mdata": {"data": {}, "expr": 3}},
    {"forallE": {"binderInfo": "default", "body": 4, "name": 2, "type": 0}, "ie": 5},
    {"thm": {"all": [2], "levelParams": [3], "name": 2, "type": 5, "value": 0}},
    {"in": 5, "str": {"pre": 1, "str": "d"}},
    {"forallE": {"binderInfo": "implicit", "body": 3, "name": 5, "type": 0}, "ie": 6},
    {
        "def": {"hints": "abbrev", "levelParams": [3], "name": 5, "safety": "safe", "type": 6}
        | {"value": 0, "all": [5]}
    },
    {"in": 6, "str": {"pre": 1, "str": "o"}},
    {"const": {"name": 4, "us": [3, 0]}, "ie": 7},
    {"ie": 8, "natVal": "12345678901234567890"},
    {"ie": 9, "strVal": 'β "ie":'},
    {"app": {"arg": 8, "fn": 7}, "ie": 10},
    {"ie": 11, "letE": {"body": 10, "name": 5, "nondep": False, "type": 7, "value": 9}},
    {"ie": 12, "proj": {"idx": 1, "struct": 11, "typeName": 1}},
    {"opaque": {"all": [6], "isUnsafe": False, "levelParams": [], "name": 6, "type": 12}},
    {"in": 7, "str": {"pre": 1, "str": "a"}},
    {"axiom": {"isUnsafe": False, "levelParams": [], "name": 7, "type": 7}},
]
NAMES = ("A.t", "A.d", "A.o", "A.a")


def text(lines: list[dict[str, Any]]) -> list[str]:
    return [json.dumps(line, separators=(",", ":"), ensure_ascii=False) for line in lines]


def change(number: int, **parts: Any) -> list[dict[str, Any]]:
    """The lines with another one; parts of its statement, by its kind."""
    lines = list(LINES)
    (kind,) = parts
    old = lines[number][kind]
    new = {**old, **parts[kind]} if isinstance(old, dict) else parts[kind]
    lines[number] = {**lines[number], kind: new}
    assert lines != LINES
    return lines


def digest(*lines: str) -> str:
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def test_a_digest_is_of_level_parameters_and_each_part_of_the_type_once() -> None:
    found = core_statements.read(text(LINES), NAMES)
    # A variable of the universe, a part's letter, and the numbers of its parts.
    of_t = digest('u"ie":', 's max(u"ie":,succ(0))', "b 0", "b 1", "p 1 2", "p 0 3")
    assert found["A.t"] == Statement("theorem", of_t)
    assert found["A.d"] == Statement("definition", of_t)
    levels = 'max(u"ie":,succ(0)) 0'
    of_o = digest(
        f"c A.7 {levels}", 'x β "ie":', "n 12345678901234567890", "a 0 2", "t 0 1 3", "j A 1 4"
    )
    assert found["A.o"] == Statement("opaque constant", of_o)
    assert found["A.a"] == Statement("axiom", digest(f"c A.7 {levels}"))
    assert set(core_statements.read(text(LINES), ["A.a", "B"])) == {"A.a"}


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        (change(14, thm={"type": 3}), {"A.t"}),
        (change(14, thm={"levelParams": []}), {"A.t"}),
        (change(6, max=[2, 1]), {"A.t", "A.d", "A.o", "A.a"}),
        (change(9, bvar=3), {"A.t", "A.d"}),
        (change(19, const={"us": [0, 3]}), {"A.o", "A.a"}),
        (change(20, natVal="12345678901234567891"), {"A.o"}),
        (change(21, strVal="b"), {"A.o"}),
        (change(22, app={"fn": 8, "arg": 7}), {"A.o"}),
        (change(23, letE={"type": 9, "value": 7}), {"A.o"}),
        (change(24, proj={"idx": 0}), {"A.o"}),
        (change(24, proj={"typeName": 4}), {"A.o"}),
    ],
)
def test_another_statement_has_another_digest(lines: list[dict[str, Any]], names: set[str]) -> None:
    was, found = (core_statements.read(text(one), NAMES) for one in (LINES, lines))
    assert {name for name in NAMES if found[name] != was[name]} == names
    assert len(list(core_statements.problems(was, found))) == len(names)


@pytest.mark.parametrize(
    "lines",
    [
        change(14, thm={"value": 7}),
        change(11, forallE={"name": 1, "binderInfo": "instImplicit"}),
        change(12, mdata={"data": {"note": "1"}}),
    ],
)
def test_proofs_names_of_bound_variables_and_notes_are_no_part_of_a_statement(
    lines: list[dict[str, Any]],
) -> None:
    assert core_statements.read(text(lines), NAMES) == core_statements.read(text(LINES), NAMES)


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        ([], "the export is empty"),
        (["{"], "line 1 of the export is none of its format"),
        (text([{"meta": {"format": {"version": "2.0.0"}}}]), "not one export of the format 3.1"),
        (text([*LINES, LINES[0]]), "not one export of the format 3.1"),
        (text([*LINES, LINES[14]]), "A.t a second time"),
        (text([*LINES, {"in": 9, "str": {"pre": 0, "str": "x"}}]), "number 9 where 8 comes next"),
        (text(LINES[:8] + LINES[9:]), "line 14 of the export is none of its format"),
        (text(LINES[:9] + LINES[8:]), "number 4 where 5 comes next"),
        (text(change(13, forallE={"body": 5})), "the expression 5 is made of a later one"),
        (text([*LINES[:8], {"ie": 0, "other": 1}, *LINES[9:]]), "an expression other"),
        (text(change(4, il=2)), "number 2 where 1 comes next"),
    ],
)
def test_what_is_no_export_is_one_sentence(lines: list[str], sentence: str) -> None:
    with pytest.raises(FormatError, match=sentence):
        core_statements.read(lines, NAMES)


def test_each_difference_is_a_sentence() -> None:
    one, other = Statement("theorem", "1"), Statement("definition", "1")
    said = list(
        core_statements.problems(
            {"a": one, "b": one, "c": one, "same": one},
            {"a": other, "b": Statement("theorem", "2"), "d": one, "same": one},
        )
    )
    table = core_statements.TABLE
    assert said[0] == f"c, of {table}, is not in the export"
    assert said[1].startswith(f"d (theorem) has no body and is not in {table}, which")
    # The audit asks for these alone.
    assert said[2:] == [
        f"a is of the kind definition, and in {table} of the kind theorem",
        f"b (theorem) states something else than {table} has",
    ]


def run(*arguments: str | Path, root: Path) -> subprocess.CompletedProcess[str]:
    """The command with nothing but the standard library, as where nothing is installed."""
    command = [sys.executable, "-S", "-m", "bridge.audit.second_kernel.core_statements"]
    return subprocess.run(
        [*command, *map(str, arguments)],
        cwd=root,
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_writes_a_table_and_holds_a_native_export_against_it(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    # Constants stored without bodies, with the list beside.
    own = tmp_path / "own.ndjson"
    lines = list(LINES)
    lines[14] = {"axiom": {"name": 2, "levelParams": [3], "type": 5, "isUnsafe": False}}
    own.write_text("\n".join(text(lines)), "utf-8")
    refused = run(own, "--write", root=tmp_path)
    assert refused.returncode == 2
    assert "own.ndjson.bodiless.json lists no constant" in refused.stderr
    listed = {"bodiless": {"theorem": ["A.t"], "axiom": ["A.a"]}}
    bodiless_beside(own).write_text(json.dumps(listed), "utf-8")
    written = run(own, "--write", root=tmp_path)
    assert (written.returncode, written.stderr) == (0, "")
    assert run(own, root=tmp_path).returncode == 0
    assert set(core_statements.table(tmp_path)) == {"A.t", "A.a"}

    # The same with bodies; then the theorem states something else, is an axiom, is not there.
    native = tmp_path / "native.ndjson"
    table = core_statements.TABLE
    axiom = [*LINES[:14], lines[14], *LINES[15:]]
    for made, status, sentence in (
        (LINES, 0, f"2 statements of Lean's own constants are as in {table}\n"),
        (
            change(14, thm={"type": 3}),
            1,
            f"A.t (theorem) states something else than {table} has\n",
        ),
        (axiom, 1, f"A.t is of the kind axiom, and in {table} of the kind theorem\n"),
        (LINES[:14], 1, f"A.a, of {table}, is not in the export\n"),
    ):
        native.write_text("\n".join(text(made)), "utf-8")
        found = run(native, root=tmp_path)
        assert (found.returncode, found.stderr) == (status, "")
        assert sentence in found.stdout
    native.write_text("no export", "utf-8")
    for given in (native, tmp_path / "none.ndjson"):
        found = run(given, root=tmp_path)
        assert found.returncode == 2
        assert found.stderr.startswith("Error: ")
        assert found.stderr.count("\n") == 1


def test_a_table_that_is_none_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"docs/core-statements\.json cannot be read"):
        core_statements.table(tmp_path)
    (tmp_path / "docs").mkdir()
    (tmp_path / core_statements.TABLE).write_text("[]", "utf-8")
    with pytest.raises(FormatError, match="is no table of statements"):
        core_statements.table(tmp_path)


def test_the_committed_table_is_as_it_is_written_and_has_leans_axioms() -> None:
    committed = core_statements.table(ROOT)
    assert core_statements.text(committed) == (ROOT / core_statements.TABLE).read_text("utf-8")
    axioms = {name for name, one in committed.items() if one.kind == "axiom"}
    assert axioms <= {"propext", "Classical.choice", "Quot.sound"}
    assert committed["Nat.add_comm"].kind == "theorem"
