"""The texts: links lead somewhere, and the project's statements about itself are true."""

from __future__ import annotations

import functools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import pyimpl

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])


@functools.cache
def anchors(page: Path) -> set[str]:
    text = page.read_text("utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    made = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
    return made | set(re.findall(r'<a id="([^"]+)">', text))


@functools.cache
def count_lines(file: Path) -> int:
    return len(file.read_text("utf-8").splitlines())


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    # A piece of code that looks like a link is none.
    text = re.sub(r"^(`{3,}).*?^\1$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    links = re.findall(r"\]\(([^)\s]+)\)|href=\"([^\"]+)\"", text)
    for link in (a or b for a, b in links):
        if link.startswith(("http://", "https://")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} in {page.name}"
        if anchor.startswith("L"):
            first, _, last = anchor.replace("L", "").partition("-")
            end = int(last or first)
            assert 1 <= int(first) <= end <= count_lines(target), f"{link} in {page.name}"
        elif anchor:
            assert anchor in anchors(target), f"{link} in {page.name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_commands_name_the_python_of_the_environment(page: Path) -> None:
    """Another Python has not the packages."""
    # Line by line: with .* around it the expression is tried again from each letter of a line.
    other = re.compile(r"(?<!/)\bpython3? (?:-m|bench)")
    lines = page.read_text("utf-8").splitlines()
    assert [line for line in lines if other.search(line)] == []


# Files that are written by a command, and those about other temperatures: the one that tokens are
# drawn with, and that of attention over a net.
_NO_HAND = re.compile(
    r"Attention\.lean|Attention/Vectors/All\.lean|Attention/Claims/|Attention/.*/Generated/|bench/|bridge/spec/|docs/(maps|theorem(s\.md|-)|vector|mutants|"
    r"coverage|kernel-coverage|tolerances|backward|distributed|index|approximation|claims|modules|paper|timings|add-a-feature)|"
    r"pyimpl/modules/(internal/|transformer)|tests/(generated|vectors|test_docs|pyimpl/modules)|"
    r"bridge/vectors/schema|bridge/bridge_maps|.*\.svg"
)


def test_the_files_of_a_change_of_the_scores_are_listed() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs the list of tracked files")
    page = (ROOT / "docs" / "add-a-feature.md").read_text("utf-8")
    section = page.partition("## A change of the scores")[2].partition("\n## ")[0]
    needed, *more = (
        set(re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| .*$", part, re.M))))
        for part in section.split("\n### ")
    )
    found = subprocess.run(
        ["git", "grep", "--ignore-case", "--name-only", "temperature"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip
    listed = [*needed, *(path for part in more for path in part)]
    assert sorted(listed) == sorted(path for path in found if not _NO_HAND.match(path))
    assert f"stands in these {len(needed)} files" in section
    for part in more:
        assert f"in these {len(part)} files more" in section
    # More are a reason to mend the way of adding one.
    assert len(needed) <= 20


def test_the_architecture_names_every_folder() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("needs the list of tracked files")
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    table = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    for folder in {name.partition("/")[0] for name in tracked if "/" in name}:
        assert re.search(rf"^\|.*`{re.escape(folder)}/", table, re.MULTILINE), folder


@pytest.mark.parametrize("page", ["README.md", "docs/use.md"])
def test_the_example_runs(page: str) -> None:
    """The page's blocks of Python, one after another."""
    text = (ROOT / page).read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert blocks
    exec(compile("\n".join(blocks), page, "exec"), {})


def requirements_of(*tiers: str) -> set[str]:
    """The lines of `requirements/TIER.in` that name a package."""
    texts = [(ROOT / "requirements" / f"{tier}.in").read_text("utf-8") for tier in tiers]
    lines = "\n".join(texts).splitlines()
    return {line for line in lines if line and not line.startswith(("#", "-r"))}


def test_the_packages_of_the_wheel_are_those_of_the_lock_inputs() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    needed, extras = set(project["dependencies"]), project["optional-dependencies"]
    check, docs, dev = (
        {d for d in extras[name] if not d.startswith("attention-spec[")}
        for name in ("check", "docs", "dev")
    )
    chosen = {d for d in needed if d.startswith(("torch", "triton"))}
    assert needed | check | docs | dev == chosen | requirements_of("try", "verify", "test")
    # The command line's packages are installed before the tests' tools are.
    assert needed | check <= chosen | requirements_of("try")
    assert docs <= requirements_of("verify")
    assert {re.split(r"[<>=;]", d)[0] for d in needed} == {"torch", "triton", "numpy"}


def test_the_citation_is_of_this_version() -> None:
    """And a citation file as others read it."""
    text = (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"^version: (.+)$", text, re.MULTILINE)[1] == pyimpl.__version__
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema"]
    command += ["vendor.citation-file-format", "CITATION.cff"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_symbols_of_the_tolerances_have_the_names_of_the_code() -> None:
    text = (ROOT / "docs" / "tolerances.md").read_text("utf-8")
    table = text.partition("| symbol |")[2].partition("\n\n")[0]
    folder = ROOT / "bridge" / "conformance" / "tolerances"
    modules = ("rounding_model", "tolerance", "row_weights", "row_average")
    code = "".join((folder / f"{name}.py").read_text("utf-8") for name in modules)
    rows = table.splitlines()[2:]
    assert len(rows) > 15
    for row in rows:
        names = re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", row.rsplit(" | ", 1)[1])))
        assert names, row
        for name in names:
            assert re.search(rf"\b{name}\b", code), f"{name} in {row}"


def test_every_dependency_is_justified() -> None:
    reasons = (ROOT / "docs" / "dependencies.md").read_text("utf-8")
    for line in requirements_of("try", "verify", "test"):
        name = re.split(r"[<>=;]", line)[0]
        assert re.search(rf"\b{re.escape(name)}\b", reasons), f"{name} has no line"


def test_lean_lines_are_at_most_100_columns() -> None:
    for path in [ROOT / "Attention.lean", *ROOT.glob("Attention/**/*.lean")]:
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            assert len(line) <= 100, f"{path.relative_to(ROOT)}:{number}"


def test_every_lean_module_is_part_of_the_library() -> None:
    """Of the part that `make verify` builds, or of the wrong variants, for `make test-all`."""
    named = {"Attention.WrongVariants"}
    for root in ("Attention.lean", "Attention/WrongVariants.lean"):
        text = (ROOT / root).read_text("utf-8")
        named |= set(re.findall(r"^public import (\S+)$", text, re.MULTILINE))
    imported = {
        name
        for path in ROOT.glob("Attention/**/*.lean")
        for name in re.findall(r"^public import (\S+)$", path.read_text("utf-8"), re.MULTILINE)
    }
    for path in ROOT.glob("Attention/**/*.lean"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        assert name in named | imported
