"""The command `try`: a few families of vectors on functions that are right and on one that is not.

Run by `make try`: a first result without Lean, and the way to judge a function of one's own.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from rich import box
from rich.console import Console
from rich.table import Table

from bridge.conformance.adapters import builtin as adapters
from bridge.conformance.judging.judge import VectorResult, describe_failure, plain
from bridge.conformance.judging.run import Result, run
from bridge.conformance.outcomes.outcome import Conditions, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.source.sources import Sources
from bridge.terminal import tell
from bridge.vectors.load import default_directory, load_file
from bridge.vectors.model.attention import Family

# The first is the one that is made for the mistake of the example.
FAMILIES = ("maximum-moves", "small-random", "causal", "fully-masked")
# Each with the heading of its column.
RIGHT = {
    "sdpa-math": "PyTorch\nSDPA",
    "pyimpl-reference": "pyimpl\nreference",
    "pyimpl-tiled": "pyimpl\ntiled",
    "pyimpl-triton": "pyimpl\nTriton",
}
WRONG = "examples/tile_loop.py:attention"
DTYPE = "float32"


@dataclass(frozen=True)
class Trial:
    """The results on the vectors: of the functions that are right, and of the one that is not."""

    families: tuple[Family, ...]
    right: tuple[Result, ...]
    wrong: Result

    @property
    def ok(self) -> bool:
        """The right ones pass every vector, and the mistake is caught."""
        passed = (v.status == "passed" for result in self.right for v in result.vectors)
        return all(passed) and bool(self.wrong.failures)


def read_families(names: Sequence[str] = FAMILIES) -> tuple[Family, ...]:
    """These families alone. Raises VectorError for a file that is damaged or not there."""
    return tuple(load_file(default_directory() / f"{name}.json") for name in names)


def trial(root: Path, families: tuple[Family, ...], console: Console) -> Trial:
    """Run everything. Raises CallableError where the example cannot be called."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    right = []
    for name in RIGHT:
        with console.status(f"{name} …"):
            right.append(run(adapters.builtin(name), families, DTYPE, device))
    with console.status(f"{WRONG} …"):
        (wrong,) = outcomes(Subject(f"{root}/{WRONG}"), families, (DTYPE,), Conditions())
    return Trial(families, tuple(right), wrong.result)


def show(console: Console, found: Trial, root: Path) -> None:
    """The results, the vectors that the mistake breaks, and where to go on."""
    number = sum(len(family.vectors) for family in found.families)
    _lines(
        console,
        f"{number} test vectors for attention on {len(RIGHT) + 1} functions, in {DTYPE}. The "
        "expected outputs come from the Lean definitions that the theorems are about; an output "
        "may differ from them by its tolerance, and no more.",
    )
    console.print(_table(found))
    notes = [] if torch.cuda.is_available() else ["Triton interprets its kernel on the CPU"]
    if any(vector.status == "unsupported" for vector in found.wrong.vectors):
        notes.append("–: the function takes no such option")
    if notes:
        _lines(console, f"{'; '.join(notes)}.")
    wrong = [(r, v) for r in found.right for v in r.vectors if v.status != "passed"]
    for result, vector in wrong[:3]:
        said = vector.reason if vector.status == "unsupported" else _failure(vector)
        _lines(console, f"{result.adapter}: {said}", style="red")
    if found.wrong.failures:
        _finding(console, found, Sources(root, found.families))
    else:
        _lines(console, f"{WRONG}: no vector finds anything wrong.", style="red")
    verdict = (
        "[green]✔ The right ones pass, and the mistake is found.[/]"
        if found.ok
        else "[red]✘ Not as it should be; see above.[/]"
    )
    console.print(f"\n{verdict}")
    _next(console)


def _table(found: Trial) -> Table:
    """The families against the functions: how many vectors pass, of how many."""
    table = Table(box=box.SIMPLE, pad_edge=False)
    table.add_column("family\n[dim]theorem[/]", no_wrap=True)
    results = (*found.right, found.wrong)
    for result in results:
        heading = RIGHT.get(result.adapter, WRONG.partition(":")[0].replace("/", "/\n"))
        table.add_column(heading, justify="right", no_wrap=True)
    for family in found.families:
        cells = []
        for result in results:
            summary, total = result.families()[family.name], len(family.vectors)
            if summary.unsupported == total:
                cells.append("–")
            else:
                colour = "green" if summary.passed == total else "red"
                cells.append(f"[{colour}]{summary.passed} of {total}[/]")
        theorems = sorted({vector.theorem for vector in family.vectors})
        table.add_row(f"{family.name}\n[dim]{', '.join(theorems)}[/]", *cells)
    return table


def _finding(console: Console, found: Trial, sources: Sources) -> None:
    """The first failure of the example, and the theorem that says why it is one."""
    failures = found.wrong.failures
    theorem = sources.theorem(failures[0].theorem)
    statement = theorem.statement
    _lines(console, f"{WRONG} fails {len(failures)} vectors. The first:", style="bold")
    _lines(console, _failure(failures[0]), indent="  ")
    _lines(console, f"It contradicts a theorem, {theorem.id}:", style="bold")
    _lines(console, str(theorem.sentence), indent="  ")
    _lines(console, f"Lean, {statement.file}:{statement.first_line}:", style="bold")
    for line in statement.text.splitlines():
        tell(console, f"  {line}")


def _next(console: Console) -> None:
    _lines(console, "Your kernel: a function of (query, key, value), its options named as SDPA's:")
    for command in (
        "  .venv/bin/python -m bridge conform FILE.py:NAME --dtype float32 --family small-random",
        "  .venv/bin/python -m bridge conform FILE.py:NAME --html report.html   # all vectors",
    ):
        tell(console, command)
    _lines(
        console,
        "docs/check-your-kernel.md goes through it step by step; `make verify` checks the proofs.",
    )


def _failure(vector: VectorResult) -> str:
    return describe_failure(plain(asdict(vector)))


def _lines(console: Console, text: str, *, style: str = "", indent: str = "") -> None:
    """Text in lines of the console's width, broken at blanks alone."""
    width = min(console.width, 100)
    for line in textwrap.wrap(
        text, width, initial_indent=indent, subsequent_indent=indent,
        break_long_words=False, break_on_hyphens=False,
    ):  # fmt: skip
        tell(console, line, style)
