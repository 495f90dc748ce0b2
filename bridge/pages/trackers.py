"""`docs/trackers.toml`: what users trip over, and the vectors and tests that show it."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FILE = "docs/trackers.toml"


@dataclass(frozen=True)
class Item:
    """says: what goes wrong. issues: as owner/repository#number. shown: pairs of a family and the
    mutant that it catches. tests: as file::function."""

    says: str
    issues: tuple[str, ...]
    shown: tuple[tuple[str, str], ...]
    tests: tuple[str, ...]

    @property
    def links(self) -> str:
        """The issues as links of Markdown."""
        made = []
        for issue in self.issues:
            repository, _, number = issue.partition("#")
            made.append(f"[{issue}](https://github.com/{repository}/issues/{number})")
        return ", ".join(made)


def items(root: Path) -> list[Item]:
    """The items, in the order of the file."""
    data = tomllib.loads((root / FILE).read_text("utf-8"))
    return [
        Item(
            item["says"],
            tuple(item["issues"]),
            tuple((family, mutant) for family, mutant in item["shown"]),
            tuple(item["tests"]),
        )
        for item in data["item"]
    ]
