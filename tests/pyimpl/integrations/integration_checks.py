"""Helpers of the integrations' tests."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

PAGE = Path(__file__).parents[3] / "docs" / "integrations.md"


def examples() -> list[str]:
    """The blocks of Python in the page, each complete in itself."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def imported_anew(module: ModuleType) -> Any:
    """Another import of the module, as there is one after `importlib.reload` or in a process in
    which `sys.modules` was emptied."""
    assert module.__spec__ is not None
    assert module.__spec__.loader is not None
    again = importlib.util.module_from_spec(module.__spec__)
    module.__spec__.loader.exec_module(again)
    return again
