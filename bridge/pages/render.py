"""The templates of this package, and the files that are written from them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jinja2

from bridge.files import write_changed


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("bridge.pages"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )


def render(template: str, **values: Any) -> str:
    """The text that a template of this package makes."""
    text: str = _environment().get_template(template).render(**values)
    return text


def write(root: Path, texts: Mapping[str, str]) -> list[str]:
    """Write the files, by their paths from the root, that are not as they should be; the paths of
    those that changed."""
    return [name for name, text in texts.items() if write_changed(root / name, text)]
