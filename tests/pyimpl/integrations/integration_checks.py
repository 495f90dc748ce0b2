"""What the tests of the integrations share."""

from __future__ import annotations

import re
from pathlib import Path

PAGE = Path(__file__).parents[3] / "docs" / "integrations.md"


def examples() -> list[str]:
    """The blocks of Python in the page, each complete in itself."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
