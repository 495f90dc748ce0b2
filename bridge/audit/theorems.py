"""The list of main theorems, docs/theorems.toml."""

from __future__ import annotations

import tomllib
from pathlib import Path

from bridge.source.excerpt import SourceError


def theorem_list() -> Path:
    """The list of main theorems: package data in an installed wheel, else docs/theorems.toml of
    the checkout."""
    packaged = Path(__file__).parent / "theorems.toml"
    checkout = Path(__file__).resolve().parents[2] / "docs" / "theorems.toml"
    return packaged if packaged.exists() else checkout


def listed_theorems(path: Path) -> list[dict[str, str]]:
    """The entries of docs/theorems.toml. Raises SourceError for what is no list of theorems."""
    try:
        entries = tomllib.loads(path.read_text("utf-8"))["theorem"]
        for entry in entries:
            if set(entry) != {"id", "lean", "sentence"}:
                raise SourceError(
                    f"{path.name}: a theorem has id, lean and sentence, not {', '.join(entry)}"
                )
    except (tomllib.TOMLDecodeError, KeyError, TypeError) as error:
        raise SourceError(f"{path.name}: is no list of theorems: {error}") from error
    return list(entries)
