"""Lean's terms of the definitions: `terms.lean`, run on the library as it is built."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.toolchain import Lean, ToolchainError

SCRIPT = Path(__file__).with_name("terms.lean")


def terms_of(lean: Lean, wanted: Sequence[str]) -> list[dict[str, Any]]:
    """The answers of `terms.lean`, one for each name. The library has to be built.

    Raises ToolchainError if the listing breaks off.
    """
    *answers, last = lean.read_stored(SCRIPT, "translated", [*wanted])
    if last["translated"] != len(answers):
        raise ToolchainError(f"{len(answers)} of {last['translated']} terms were listed")
    return answers
