"""The files that import the whole Lean library: written from its folders."""

from __future__ import annotations

from pathlib import Path

from bridge.source import lean_imports

ROOT = Path(__file__).resolve().parents[3]
FILES = {
    "Attention.lean": "module\n\npublic import Attention.Gone\npublic import Attention.Proof.B\n\n"
    "/-! # The library -/\n",
    "Attention/WrongVariants.lean": "module\n\npublic import Attention.WrongVariants.Named\n",
    "Attention/Proof/B.lean": "module\n",
    "Attention/Proof/A/New.lean": "module\n",
    "Attention/Proof/.#B.lean": "module\n",
    "Attention/WrongVariants/Named.lean": "theorem named_refuted : True := trivial\n",
    "Attention/WrongVariants/Other.lean": "theorem other_refuted : True := trivial\n",
    "Attention/Vectors/B.lean": "def two : Family Case where\n\ndef one : Family BCase where\n",
    "Attention/Vectors/A.lean": "def three : Family Case where\n  name := 3\n",
    "Attention/Vectors/None.lean": "def Family.draw (family : Family Case) : List Case :=\n",
    "docs/theorems.toml": 'lean = "Attention.WrongVariants.named_refuted"\n',
    "docs/claims.toml": "",
}


def test_what_is_new_is_imported_and_what_is_gone_is_not(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, "utf-8")
    files = ["Attention.lean", "Attention/WrongVariants.lean", "Attention/Vectors/All.lean"]
    assert lean_imports.write(tmp_path) == files
    assert (tmp_path / "Attention.lean").read_text() == (
        "module\n\npublic import Attention.Proof.A.New\npublic import Attention.Proof.B\n"
        "public import Attention.Vectors.A\npublic import Attention.Vectors.All\n"
        "public import Attention.Vectors.B\npublic import Attention.Vectors.None\n"
        "public import Attention.WrongVariants.Named\n\n/-! # The library -/\n"
    )
    assert (tmp_path / "Attention/WrongVariants.lean").read_text() == (
        "module\n\npublic import Attention.WrongVariants.Named\n"
        "public import Attention.WrongVariants.Other\n"
    )
    families = (tmp_path / "Attention/Vectors/All.lean").read_text()
    assert "import Attention.Vectors.A\npublic import Attention.Vectors.B\n\n" in families
    assert "def caseFamilies : List (Family Case) :=\n  [three, two]\n" in families
    assert "def bCaseFamilies : List (Family BCase) :=\n  [one]\n" in families
    assert lean_imports.write(tmp_path) == []


def test_other_projects_are_left_alone(tmp_path: Path) -> None:
    assert lean_imports.write(tmp_path) == []
