"""The proofs of the library as a file, and beside it the list of constants without a body."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path

from bridge.audit.second_kernel.export import Exported, bodiless_beside, export
from bridge.files import write_whole
from bridge.toolchain import Lean, ToolchainError


def stored_modules(lean: Lean) -> tuple[dict[str, list[Path]], Path]:
    """The parts that Lean has stored of each module of the library, by its name, and the folder of
    Lean's own modules. Raises ToolchainError."""
    if lean.kind != "embedded":
        raise ToolchainError(
            "a native Lean stores 64-bit words, which are not read here: use lean4export, "
            "or set ATTENTION_LEAN=embedded"
        )
    return lean.stored_parts(), lean.prepared.shipped


def write_proofs(lean: Lean, path: Path, names: Sequence[str] = ()) -> Exported:
    """Write the export of constants (none: of the whole library) and the list beside it, whole or
    not at all. The library has to be built.

    Raises ToolchainError, OleanError and NameUnknownError, and OSError where a file cannot be
    written."""
    stored, shipped = stored_modules(lean)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with partial.open("w", encoding="utf-8") as file:
            found = export(stored, shipped, file.writelines, names)
        partial.rename(path)
    finally:
        partial.unlink(missing_ok=True)
    listed = {"bodiless": found.bodiless, "rests_on": found.rests_on}
    write_whole(bodiless_beside(path), json.dumps(listed, ensure_ascii=False, indent=1))
    return found
