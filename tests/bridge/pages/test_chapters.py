"""The chapters: their lines where they say, worked examples right, and no page where a
source is gone."""

from __future__ import annotations

import doctest
import re
import shutil
import textwrap
import tomllib
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from committed import family
from edits import edit

from bridge.pages import chapters
from bridge.pages.worked.row import Worked
from bridge.source.excerpt import SourceError
from bridge.source.sources import Sources
from bridge.vectors.load import load

ROOT = Path(__file__).resolve().parents[3]


def text_of(chapter: str) -> str:
    return (ROOT / chapters.address(chapter)).read_text("utf-8")


TEXT = text_of("backward")
# file:first, and first and last line of the link; then the block that stands below it.
SHOWN = re.compile(
    r"\[([^\]\s]+):(\d+)\]\(\.\./([^)#]+)#L(\d+)-L(\d+)\)[^\n]*\n\n```(lean|python)\n(.*?)\n```",
    re.DOTALL,
)


def test_chapters_are_not_formatted() -> None:
    """Their excerpts stand as they do in their files."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    shown = {chapters.address(chapter) for chapter in chapters.CHAPTERS}
    assert set(project["tool"]["ruff"]["format"]["exclude"]) == shown


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_what_is_shown_stands_where_the_page_says(chapter: str) -> None:
    page = text_of(chapter)
    shown = SHOWN.findall(page)
    assert len(shown) == page.count("\n```lean\n") + page.count("\n```python\n") > 5
    for file, line, linked, first, last, language, text in shown:
        assert (file, line) == (linked, first)
        lines = (ROOT / file).read_text("utf-8").splitlines()[int(first) - 1 : int(last)]
        there = textwrap.dedent("\n".join(lines))
        # A statement ends where its proof begins, in the midst of a line.
        assert there == text or (language == "lean" and there.startswith(f"{text} :="))


@pytest.mark.parametrize("chapter", [c for c in chapters.CHAPTERS if c != "paper"])
def test_a_chapter_has_all_that_a_reader_needs(chapter: str) -> None:
    """The definition beside the code, a theorem, and the unproved parts."""
    page = text_of(chapter)
    assert '<div class="beside">' in page
    assert {language for *_, language, _ in SHOWN.findall(page)} == {"lean", "python"}
    # Layers and bounds have no kernel of their own.
    assert ("\nTriton" in page) == (chapter not in ("transformer", "tolerances", "rounding"))
    assert "Proved as [" in page
    assert page.rpartition("\n## ")[2].startswith("What is not proved\n")


@pytest.mark.parametrize(
    "chapter", [c for c in chapters.CHAPTERS if c not in ("kernel", "paper", "rounding")]
)
def test_a_chapter_about_an_idea_shows_it(chapter: str) -> None:
    """A picture, a formula, vectors, and one worked."""
    page = text_of(chapter)
    (picture,) = re.findall(r"^!\[.+\]\(images/(.+\.svg)\)$", page, re.MULTILINE)
    assert (ROOT / "docs" / "images" / picture).is_file()
    assert "\n\n$$" in page
    assert re.search(r"^## .* in (exact fractions|numbers)$", page, re.MULTILINE)
    assert "\nVectors: [" in page


def columns(page: str) -> list[list[set[str]]]:
    """Of each block of columns, column by column, the folders of the Python that it shows: one to
    learn from, the tile loop of a CPU, or the kernels."""
    blocks = re.findall(r'^<div class="beside">\n(.*?)\n^</div>\n\n</div>$', page, re.M | re.S)
    return [
        [
            {
                next((name for name in ("kernels", "tiled") if name in file), "to learn from")
                for file, *_, language, _ in SHOWN.findall(column)
                if language == "python"
            }
            for column in block.split("\n<div>\n")[1:]
        ]
        for block in blocks
    ]


@pytest.mark.parametrize(
    "chapter", [c for c in chapters.CHAPTERS if c not in ("transformer", "tolerances", "rounding")]
)
def test_code_to_learn_from_stands_beside_that_of_the_kernels(chapter: str) -> None:
    """Each in a column of its own."""
    found = columns(text_of(chapter))
    assert [c for block in found for c in block if len(c) > 1] == []
    assert any({"to learn from"} in block and {"kernels"} in block for block in found)


ANSWER = re.compile(r"<details><summary>Answer</summary>\n(.*?)\n</details>", re.DOTALL)


def count_failures(answer: str) -> int:
    """How many of an answer's lines print something else than it says. It must say something."""
    (code,) = re.findall(r"^```pycon\n(.*?)^```$", answer, re.DOTALL | re.MULTILINE)
    test = doctest.DocTestParser().get_doctest(code, {}, "answer", None, None)
    assert any(example.want for example in test.examples)
    return doctest.DocTestRunner(verbose=False).run(test, out=lambda _: None).failed


@pytest.mark.parametrize("chapter", chapters.CHAPTERS)
def test_a_chapter_has_two_exercises_whose_answers_are_right(chapter: str) -> None:
    section = text_of(chapter).partition("\n## Exercises\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\*\*(\d)\.\*\* .+\?", section, re.MULTILINE) == ["1", "2"]
    answers = ANSWER.findall(section)
    assert len(answers) == 2
    assert [count_failures(answer) for answer in answers] == [0, 0]


def test_a_wrong_answer_is_found() -> None:
    right = ANSWER.findall(text_of("softmax"))[0]
    assert count_failures(right.replace("'1/3'", "'1/4'")) == 2


def test_worked_examples_are_recomputed_by_hand() -> None:
    """Scores 0, 0, −1, 1, 0, −, 1; the states by the definition of each, not by updates."""
    one = Worked(family("tile-loop"), "tile-loop-000", 3)
    assert one.scores == [0, 0, -1, 1, 0, None, 1]
    values = [Fraction(v[0]) for v in one.vector.v]
    rows = one.online(3)
    for n, row in enumerate(rows[1:], 1):
        pairs = list(zip(one.scores, values, strict=True))[: 3 * n]
        seen = [(s, v) for s, v in pairs if s is not None]
        m = max(s for s, _ in seen)
        l = sum(Fraction(2) ** (s - m) for s, _ in seen)
        o = sum(Fraction(2) ** (s - m) * v for s, v in seen)
        found = [text.replace("−", "-") for text in row]
        assert (int(found[2]), Fraction(found[4])) == (m, l)
        assert Fraction(found[5][1:].split(",")[0]) == o
    assert [row[3] for row in rows] == ["", "0", "1/2", "1"]
    a, b, both = one.merge(3)
    assert (a[2:4], b[2:4], both[2:4]) == (["0", "5/2"], ["1", "5/2"], ["1", "15/4"])
    found = Worked(family("softmax-weights"), "softmax-weights-001", 0).softmax()
    # Scores 0, 0, 6, −4, −1: 2 to the power of them are 1, 1, 64, 1/16, 1/2, together 1065/16.
    shares = ["16/1065", "16/1065", "1024/1065", "1/1065", "8/1065"]
    assert [row[4] for row in found] == shares
    splits = Worked(family("log-sum-exp"), "log-sum-exp-003", 0).splits(4)
    assert [row[1:3] for row in splits] == [["3", "1/4"]] * 4


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Worked(family("merge"), "merge-000", 0), "merge-000 is no vector of attention"),
        (lambda: Worked(family("causal"), "causal-999", 0), "causal-999 is no vector of causal"),
        (lambda: Worked(family("causal"), "causal-000", 1), "causal-000 has no query 1"),
        (
            lambda: Worked(family("tile-loop"), "tile-loop-000", 2).splits(3),
            "the log-sum-exp of .* is no whole number",
        ),
    ],
)
def test_what_cannot_be_worked_is_said(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        make()


def test_an_example_whose_output_is_not_leans_makes_no_page() -> None:
    one = Worked(family("tile-loop"), "tile-loop-000", 2)
    rows = list(one.vector.expected)
    rows[2] = replace(rows[2], numerators=tuple(x + 1 for x in rows[2].numerators))
    one.vector = replace(one.vector, expected=tuple(rows))
    for work in (lambda: one.online(3), lambda: one.merge(3)):
        with pytest.raises(SourceError, match=r"tile-loop-000: the .* not end in its output"):
            work()


def test_every_step_shows_the_reference_the_tile_loop_and_the_kernels() -> None:
    files = {file for file, *_ in SHOWN.findall(TEXT)}
    assert files >= {
        "pyimpl/backends/reference_backward.py", "pyimpl/backends/tiled_backward.py",
        "pyimpl/internal/gradients.py",
        *(f"pyimpl/backends/kernels/{name}.py" for name in
          ("backward", "backward_keys", "backward_queries", "backward_bias", "parts/gradient")),
    }  # fmt: skip
    sections = TEXT.split("\n## ")[1:]
    headings = [section.partition("\n")[0] for section in sections]
    for heading in ("dV", "dP", "D", "dS", "Softcap", "dQ and dK", "What is masked"):
        section = sections[headings.index(heading)]
        for of in ("backends/reference_backward.py", "backends/tiled_backward.py", "kernels/"):
            assert of in section or (heading == "D" and "internal/gradients.py" in section), heading
    links = re.findall(r"\]\(#([^)]+)\)", TEXT)
    made = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
    assert set(links) <= made
    assert {heading for heading in made if heading not in links} == set()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The sources that the page is made from, to be changed."""
    for name in ("Attention/Spec", "Attention/Proof", "Attention/Claims", "pyimpl"):
        shutil.copytree(ROOT / name, tmp_path / name)
    (tmp_path / "docs").mkdir()
    shutil.copy(ROOT / "docs" / "theorems.toml", tmp_path / "docs")
    return tmp_path


def complaint_after_change(root: Path, file: str, old: str, new: str) -> str:
    """The error where the page is made after this change."""
    edit(root / file, old, new)
    with pytest.raises(SourceError) as refusal:
        chapters.page(root, load(), "backward")
    return str(refusal.value)


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "pyimpl/backends/kernels/parts/gradient.py", "grad_s = of.p *", "d_s = of.p *",
            "pyimpl/backends/kernels/parts/gradient.py, raw_gradient: no line with "
            "'grad_s = of.p *', where the page shows one",
        ),
        (
            "pyimpl/backends/tiled_backward.py", "        tanh = None",
            "        tanh = grad_p = None",
            "pyimpl/backends/tiled_backward.py, _HeadsBackward.key_tile: 2 lines with 'grad_p = '",
        ),
        (
            "pyimpl/backends/reference_backward.py", "def weights(", "def p_again(",
            "pyimpl/backends/reference_backward.py: no definition of weights, where one is shown",
        ),
        (
            "Attention/Spec/Backward.lean", "def rowDelta", "def rowD",
            "Attention.Spec.rowDelta is not declared below Attention/",
        ),
        (
            "Attention/Proof/Derivative/Tangent.lean", "theorem softmax_dual",
            "theorem softmax_tangent",
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
    sentence = complaint_after_change(root, file, old, new)
    assert sentence.startswith("docs/backward.md: ")
    assert said in sentence
    assert sentence.endswith("; mend bridge/pages/templates/backward.md.jinja")


def test_lines_that_move_are_followed(root: Path) -> None:
    path = root / "pyimpl" / "internal" / "gradients.py"
    path.write_text("# One more line.\n" + path.read_text("utf-8"), "utf-8")
    moved = chapters.page(root, load(), "backward")
    assert moved != TEXT
    line = re.search(r"pyimpl/internal/gradients\.py:(\d+)", TEXT)
    assert f"pyimpl/internal/gradients.py:{int(line[1]) + 1}]" in moved


def test_other_things_that_are_not_there(root: Path) -> None:
    sources = Sources(root, load())
    for find, said in (
        (lambda: sources.family("gradients"), "there is no family 'gradients' of vectors"),
        (lambda: sources.code("pyimpl/none.py", "x"), "there is no file pyimpl/none.py"),
        (
            lambda: sources.code("pyimpl/internal/gradients.py", "delta = (", "no such line"),
            "no line with 'no such line' after that with 'delta = \\('",
        ),
        (
            lambda: sources.theorem("Attention.Spec.rowDelta"),
            "Attention.Spec.rowDelta is no theorem but def, Attention/Spec/Backward.lean:",
        ),
    ):
        with pytest.raises(SourceError, match=said):
            find()
