"""Errors for terms that the translation cannot write."""

from __future__ import annotations


class UntranslatableError(Exception):
    """A construct of Lean that has no translation; the message names it."""

    def within(self, name: str) -> UntranslatableError:
        """The same, saying in which definition it stands."""
        return type(self)(f"{name} cannot be translated: {self}")


class NotAProgramError(UntranslatableError):
    """A statement about all there is of a kind (∀, ∃): it can be proved, and nothing decides it."""


class NeedsStatements(Exception):
    """There is no expression for a term."""
