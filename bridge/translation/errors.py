"""What the translation cannot do."""

from __future__ import annotations


class UntranslatableError(Exception):
    """A construct of Lean that has no translation; the message names it."""

    def within(self, name: str) -> UntranslatableError:
        """The same, saying in which definition it stands."""
        return UntranslatableError(f"{name} cannot be translated: {self}")
