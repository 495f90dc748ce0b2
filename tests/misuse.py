"""A command's messages about words that it does not accept, for the tests of all commands."""

from __future__ import annotations

from typing import Any

from click.testing import CliRunner


def misuse(command: Any, *words: str) -> str:
    """A sentence on standard error, with status 2."""
    result = CliRunner().invoke(command, words)
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    return result.stderr
