"""The one exception of this package."""

from __future__ import annotations


class ToolchainError(Exception):
    """Lean cannot be found, prepared or run. The message is one sentence that says why."""
