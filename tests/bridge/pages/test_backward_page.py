"""`docs/backward.md`: current, its lines where it says, and no page where a source is gone."""

from __future__ import annotations

import re
import shutil
import textwrap
from pathlib import Path

import pytest

from bridge.pages import chapters
from bridge.pages.sources import Sources
from bridge.report.theorems import SourceError
from bridge.vectors.load import load

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / chapters.address("backward")).read_text("utf-8")
# file:first, and first and last line of the link; then the block that stands below it.
SHOWN = re.compile(
    r"\[([^\]\s]+):(\d+)\]\(\.\./([^)#]+)#L(\d+)-L(\d+)\)[^\n]*\n\n```(lean|python)\n(.*?)\n```",
    re.DOTALL,
)


def test_the_page_is_current() -> None:
    page = chapters.page(ROOT, load(), "backward")
    assert page == TEXT, "run .venv/bin/python -m bridge pages"


def test_what_is_shown_stands_where_the_page_says() -> None:
    shown = SHOWN.findall(TEXT)
    assert len(shown) == TEXT.count("\n```lean\n") + TEXT.count("\n```python\n") > 50
    for file, line, linked, first, last, language, text in shown:
        assert (file, line) == (linked, first)
        lines = (ROOT / file).read_text("utf-8").splitlines()[int(first) - 1 : int(last)]
        there = textwrap.dedent("\n".join(lines))
        # A statement ends where its proof begins, in the midst of a line.
        assert there == text or (language == "lean" and there.startswith(f"{text} :="))


def test_every_step_shows_the_reference_the_tile_loop_and_the_kernels() -> None:
    files = {file for file, *_ in SHOWN.findall(TEXT)}
    assert files >= {
        "pyimpl/reference_backward.py", "pyimpl/tiled_backward.py", "pyimpl/_gradients.py",
        *(f"pyimpl/kernels/{name}.py" for name in
          ("backward", "backward_keys", "backward_queries", "backward_bias", "_gradient")),
    }  # fmt: skip
    sections = TEXT.split("\n## ")[1:]
    headings = [section.partition("\n")[0] for section in sections]
    for heading in ("dV", "dP", "D", "dS", "Softcap", "dQ and dK", "What is masked"):
        section = sections[headings.index(heading)]
        for of in ("reference_backward.py", "tiled_backward.py", "kernels/"):
            assert of in section or (heading == "D" and "_gradients.py" in section), heading
    links = re.findall(r"\]\(#([^)]+)\)", TEXT)
    made = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    assert set(links) <= made
    assert {heading for heading in made if heading not in links} == set()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sources that the page is made from, to be changed."""
    for name in ("Attention/Spec", "Attention/Proof", "pyimpl"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "theorems.toml", tmp_path / "docs")
    return tmp_path


def changed(root: Path, file: str, old: str, new: str) -> str:
    """What is said where the page is made after this change."""
    path = root / file
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")
    with pytest.raises(SourceError) as refusal:
        chapters.page(root, load(), "backward")
    return str(refusal.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "pyimpl/kernels/_gradient.py", "grad_s = p *", "d_s = p *",
            "pyimpl/kernels/_gradient.py, tile_gradient: no line with 'grad_s = p *', "
            "where the page shows one",
        ),
        (
            "pyimpl/tiled_backward.py", "        tanh = None", "        tanh = grad_p = None",
            "pyimpl/tiled_backward.py, _HeadsBackward.key_tile: 2 lines with 'grad_p = '",
        ),
        (
            "pyimpl/reference_backward.py", "def weights(", "def p_again(",
            "pyimpl/reference_backward.py: no definition of weights, where one is shown",
        ),
        (
            "Attention/Spec/Backward.lean", "def rowDelta", "def rowD",
            "Attention.Spec.rowDelta is not declared below Attention/",
        ),
        (
            "Attention/Proof/Tangent.lean", "theorem softmax_dual", "theorem softmax_tangent",
            "Attention.Proof.softmax_dual is not declared below Attention/",
        ),
        (
            "docs/theorems.toml", 'id = "gqa-backward"', 'id = "grouped-backward"',
            "gqa-backward is not declared below Attention/",
        ),
    ],
)  # fmt: skip
def test_what_is_no_longer_there_is_named(
    root: Path, file: str, old: str, new: str, said: str
) -> None:
    sentence = changed(root, file, old, new)
    assert sentence.startswith("docs/backward.md: ")
    assert said in sentence
    assert sentence.endswith("; mend bridge/pages/templates/backward.md.jinja")


def test_lines_that_move_are_followed(root: Path) -> None:
    path = root / "pyimpl" / "_gradients.py"
    path.write_text("# One more line.\n" + path.read_text("utf-8"), "utf-8")
    moved = chapters.page(root, load(), "backward")
    assert moved != TEXT
    line = re.search(r"pyimpl/_gradients\.py:(\d+)", TEXT)
    assert line is not None
    assert f"pyimpl/_gradients.py:{int(line[1]) + 1}]" in moved


def test_other_things_that_are_not_there(root: Path) -> None:
    sources = Sources(root, load())
    for find, said in (
        (lambda: sources.family("gradients"), "there is no family 'gradients' of vectors"),
        (lambda: sources.code("pyimpl/none.py", "x"), "there is no file pyimpl/none.py"),
        (
            lambda: sources.code("pyimpl/_gradients.py", "delta = (", "no such line"),
            "no line with 'no such line' after that with 'delta = \\('",
        ),
        (
            lambda: sources.theorem("Attention.Spec.rowDelta"),
            "Attention.Spec.rowDelta is no theorem but def, Attention/Spec/Backward.lean:",
        ),
    ):
        with pytest.raises(SourceError, match=said):
            find()
