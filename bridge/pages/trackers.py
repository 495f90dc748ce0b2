"""`docs/trackers.toml`: errors that users report, and the vectors and tests that show them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

FILE = "docs/trackers.toml"


class Item(msgspec.Struct, frozen=True):
    """says: the error, in a sentence. issues: as owner/repository#number. shown: pairs of a family
    and the mutant that it catches. tests: as file::function."""

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
    data = (root / FILE).read_bytes()
    return msgspec.toml.decode(data, type=dict[Literal["item"], list[Item]])["item"]
