"""The one exception of this package."""

from __future__ import annotations

from bridge.errors import MendableError


class ToolchainError(MendableError):
    """Lean cannot be found, prepared or run. The message is one sentence that says why."""
