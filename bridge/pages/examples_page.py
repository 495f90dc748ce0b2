"""`docs/examples.md`, a list, and a page for each example of the folder: its own text gives a
description, the commands that run it, and its output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.pages.render import render
from bridge.source.excerpt import SourceError

PAGE = "docs/examples.md"
PAGES = "docs/examples"
FOLDER = "examples"
# In the order in which they are read: the file that has the text first, then those beside it.
EXAMPLES = (
    ("llama_generate.py",),
    ("train_copy.py",),
    ("train_parallel.py",),
    ("long_context.py",),
    ("paged_batching.py",),
    ("packed_documents.py",),
    ("pictures.py",),
    ("kernel_in_ci/attention.yml", "kernel_in_ci/my_kernel.py"),
    ("ring_in_shards.py",),
    ("vectors_cpp/check.cpp", "vectors_cpp/header.py"),
    ("vectors_jax.py",),
)
# Markdown's name of a language, and how each line of a file's text begins; none: it stands in
# quotes.
_LANGUAGES: Mapping[str, tuple[str, str | None]] = {
    ".py": ("python", None), ".yml": ("yaml", "#"), ".cpp": ("cpp", "//"),
}  # fmt: skip
_PARTS = re.compile(
    r"(?P<title>[^\n]+)\n\n(?P<text>.+?)\n\n(?:Run:\n\n(?P<commands>.+?)\n\n)?"
    r"It prints(?P<among>, among others)?:\n\n(?P<printed>.+)",
    re.DOTALL,
)


@dataclass(frozen=True)
class Shown:
    """A file as the page shows it: its path from the root, its language, its code."""

    path: str
    language: str
    code: str


@dataclass(frozen=True)
class Example:
    """One example. page: its name in `PAGES`; printed: the lines that it prints; whole: whether
    these are all."""

    page: str
    title: str
    text: str
    commands: tuple[str, ...]
    printed: tuple[str, ...]
    whole: bool
    files: tuple[Shown, ...]


def texts(root: Path) -> dict[str, str]:
    """The texts of the pages by their paths from the root. Raises SourceError for an example whose
    text lacks something."""
    examples = [example(root, *files) for files in EXAMPLES]
    made = {PAGE: render("examples.md.jinja", examples=examples)}
    for one in examples:
        made[f"{PAGES}/{one.page}"] = render("example.md.jinja", example=one)
    return made


def example(root: Path, first: str, *beside: str) -> Example:
    """The example whose text stands in the first of these files of the folder. Raises SourceError
    where it lacks a title, a text, or its output."""
    path = f"{FOLDER}/{first}"
    text, code = _split(root, path)
    parts = _PARTS.fullmatch(text)
    if parts is None:
        raise SourceError(
            f"{path}: its text is to be a title, a text, perhaps 'Run:' with commands, and "
            "'It prints:' or 'It prints, among others:' with lines"
        )
    commands = _lines(parts["commands"]) if parts["commands"] else (f".venv/bin/python {path}",)
    others = [(f"{FOLDER}/{name}", (root / FOLDER / name).read_text("utf-8")) for name in beside]
    files = tuple(
        Shown(path, _language(path)[0], shown.strip("\n"))
        for path, shown in [(path, code), *others]
    )
    return Example(
        _page(first), parts["title"], _from_a_folder(parts["text"]), commands,
        _lines(parts["printed"]), parts["among"] is None, files,
    )  # fmt: skip


def _page(first: str) -> str:
    """The name of the page of an example: of its folder, or of its file."""
    name = Path(first)
    return (name.stem if name.parent == Path() else name.parent.name).replace("_", "-") + ".md"


def _from_a_folder(text: str) -> str:
    """A text whose links go out from `docs`, for a page in a folder there."""
    return re.sub(r"\]\((?!https?:)", "](../", text)


def _language(path: str) -> tuple[str, str | None]:
    return _LANGUAGES[Path(path).suffix]


def _split(root: Path, path: str) -> tuple[str, str]:
    """The text at the beginning of a file, without its marks, and the rest."""
    whole = (root / path).read_text("utf-8")
    mark = _language(path)[1]
    if mark is None:
        found = re.match(r'"""(.+?)\n"""\n', whole, re.DOTALL)
        text = found[1] if found else ""
    else:
        found = re.match(rf"(?:{mark}[^\n]*\n)+", whole)
        lines = found[0].splitlines() if found else []
        text = "\n".join(line.removeprefix(mark).removeprefix(" ") for line in lines)
    return text, whole[found.end() :] if found else whole


def _lines(block: str) -> tuple[str, ...]:
    """The lines of an indented block."""
    return tuple(line.removeprefix("    ") for line in block.splitlines())
