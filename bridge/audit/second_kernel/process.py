"""The process of the second kernel: `python -m bridge.audit.second_kernel.process < GIVEN`.

GIVEN: a JSON object with `library`, the path of the kernel's library; `names`, the theorems whose
statements are asked for; and `export`, the path of an export, or `own` and `shipped`, the stored
modules of the library and of Lean's own, which are exported straight into the kernel. Prints JSON
objects, a line each: `checked` and `of`, how many constants of the library the kernel has so far;
and at the end its report (`native.check`) with `exported`, or `error`, a sentence.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bridge.audit.second_kernel import native
from bridge.audit.second_kernel.export import export
from bridge.errors import MendableError

# Seconds between two lines on how far it is.
_PACE = 1.0


def _tell(said: dict[str, Any]) -> None:
    print(json.dumps(said), flush=True)


def _report(given: dict[str, Any]) -> dict[str, Any]:
    exported: dict[str, Any] | None = None
    told = 0.0

    def on_written(done: int, of: int) -> None:
        nonlocal told
        if (now := time.monotonic()) - told > _PACE:
            told = now
            _tell({"checked": done, "of": of})

    def give(read: native.Read) -> None:
        nonlocal exported
        if "export" in given:
            with open(given["export"], encoding="utf-8") as lines:
                read(lines)
        else:
            own = {name: [Path(part) for part in parts] for name, parts in given["own"].items()}
            exported = asdict(export(own, Path(given["shipped"]), read, on_written=on_written))

    try:
        report = native.check(given["library"], given["names"], give)
    except MendableError as error:
        return {"error": str(error)}
    return {**report, "exported": exported}


if __name__ == "__main__":
    # Millions of objects stay, none of them in a circle: to look for one takes a tenth of the time.
    gc.disable()
    _tell(_report(json.load(sys.stdin)))
    # The library's own threads and finalizers have nothing to do any more.
    os._exit(0)
