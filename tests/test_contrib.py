"""contrib/mathlib, as far as it can be looked at without Mathlib: the library's names in it are
declared, and its Lean is the library's. Whether it builds is for CI to say."""

from __future__ import annotations

import re

from checkout_copy import ROOT

from bridge.source.lean import blank_comments, declarations
from bridge.toolchain.modules import header_imports

FOLDER = ROOT / "contrib" / "mathlib"
SOURCES = sorted(FOLDER.rglob("*.lean"))
LEAN = [path for path in SOURCES if path.name != "lakefile.lean" and ".lake" not in path.parts]
_NAME = re.compile(r"\bAttention(?:\.[A-Za-z_][A-Za-z0-9_']*)+")


def declared_names() -> set[str]:
    """The names that the library declares."""
    texts = (path.read_text("utf-8") for path in ROOT.glob("Attention/**/*.lean"))
    return {one.name for text in texts for one in declarations(text) if one.name}


def unknown_names(text: str, names: set[str]) -> list[str]:
    """The names of a text that the library does not have: modules, declarations."""
    modules = header_imports(text)
    absent = [
        name
        for name in modules
        if name.split(".")[0] in ("Attention", "AttentionMathlib")
        and not any((root / f"{name.replace('.', '/')}.lean").exists() for root in (ROOT, FOLDER))
    ]
    used = [name for name in _NAME.findall(blank_comments(text)) if name not in modules]
    return absent + [name for name in used if name not in names]


def test_what_it_names_of_the_library_is_there() -> None:
    names = declared_names()
    assert len(LEAN) == 5
    used = 0
    for path in LEAN:
        text = path.read_text("utf-8")
        assert unknown_names(text, names) == [], path.name
        used += len(_NAME.findall(blank_comments(text)))
    assert used > 20
    wrong = (
        "import Attention.Nowhere\n\n#check Attention.Spec.attention\n#check Attention.Spec.gone"
    )
    assert unknown_names(wrong, names) == ["Attention.Nowhere", "Attention.Spec.gone"]


def test_no_proof_is_left_out() -> None:
    for path in LEAN:
        text = path.read_text("utf-8")
        assert not re.search(r"\b(sorry|admit|axiom|native_decide)\b", blank_comments(text)), path
        assert all(len(line) <= 100 for line in text.splitlines()), path


def test_versions() -> None:
    """One Lean, and one commit of Mathlib: a tag can be moved."""
    toolchain = (ROOT / "lean-toolchain").read_text("utf-8")
    assert (FOLDER / "lean-toolchain").read_text("utf-8") == toolchain
    lakefile = (FOLDER / "lakefile.lean").read_text("utf-8")
    assert re.search(r'mathlib4" @ "[0-9a-f]{40}"$', lakefile, re.MULTILINE)
    # Its comment says which tag that is.
    assert f"-- {toolchain.strip().split(':')[1]}, " in lakefile
    assert (FOLDER / re.findall(r'require attention from "([^"]+)"', lakefile)[0]).resolve() == ROOT


def test_ci_builds_it_and_asks_for_its_axioms() -> None:
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text("utf-8")
    job = workflow.partition("\n  mathlib:\n")[2].partition("\n  # What the lock files")[0]
    assert job.count("working-directory: contrib/mathlib") == 2
    for command in ("lake exe cache get", "lake build", "lake env lean Axioms.lean"):
        assert command in job
        assert command in (FOLDER / "README.md").read_text("utf-8")
    theorems = {one.name for p in LEAN for one in declarations(p.read_text("utf-8"))}
    asked = re.findall(r"#print axioms (\S+)", (FOLDER / "Axioms.lean").read_text("utf-8"))
    assert len(asked) == 2
    assert set(asked) <= theorems
