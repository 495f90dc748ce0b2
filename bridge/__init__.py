"""From the Lean definitions of attention to checked kernels.

`check` judges an attention function: `from bridge import check; verdict = check(function)`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bridge import working_folder

if TYPE_CHECKING:
    from bridge.verdict import check

__all__ = ["check"]

# As Python has it while it looks for the module that it is to run.
if sys.argv[:1] == ["-m"]:
    working_folder.leave()


def __getattr__(name: str) -> Any:
    # It imports PyTorch, which many parts of the project do without.
    if name == "check":
        try:
            from bridge.verdict import check
        except ModuleNotFoundError as error:
            from bridge.scripts import remedy

            raise ImportError(remedy(error), name=error.name) from error
        return check
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
