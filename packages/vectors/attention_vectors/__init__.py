"""Test vectors for attention: JSON files, and where they are. Standard library only.

A family is a file; `index.json` lists them with their sizes and hashes. `schema.json` and
`index_schema.json` beside the folder are their JSON Schemas.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent / "data"


def families() -> list[str]:
    """The names of the families, sorted."""
    return sorted(entry["family"] for entry in _entries())


def family(name: str) -> dict[str, Any]:
    """The content of the file of a family.

    Raises:
        ValueError: there is no such family, or its file is not the one that the index lists.
    """
    file = next((entry for entry in _entries() if entry["family"] == name), None)
    if file is None:
        raise ValueError(f"there is no family {name!r}; there are {', '.join(families())}")
    content = (FOLDER / file["file"]).read_bytes()
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        raise ValueError(f"{FOLDER / file['file']} is not the file that index.json lists")
    found: dict[str, Any] = json.loads(content)
    return found


def _entries() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((FOLDER / "index.json").read_bytes())["families"]
    return found
