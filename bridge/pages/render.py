"""The templates of this package."""

from __future__ import annotations

from typing import Any

from bridge.templates import template


def render(name: str, **values: Any) -> str:
    """The text that a template of this package makes."""
    return template("bridge.pages", name).render(**values)
