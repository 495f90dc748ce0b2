"""What the embedded Lean has built: outputs of modules, and the record of what is up to date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bridge.files import write_whole
from bridge.toolchain import modules

# Lean writes these three for a module: what others see, what editors need, and all of it.
_PARTS = ("", ".server", ".private")


class Store:
    """The folder `build/lean`.

    `stock/`: what Lean writes, for the audit; `runnable/`: what is imported and run; `state.json`:
    for each module that is up to date its build key, interface, messages and declarations.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = folder / "state.json"

    def stock(self, name: str) -> Path:
        return modules.file_of(self.folder / "stock", name).with_suffix(".olean")

    def runnable(self, name: str) -> Path:
        return modules.file_of(self.folder / "runnable", name).with_suffix(".olean")

    def parts(self, name: str) -> list[Path]:
        """What Lean writes for a module."""
        stock = self.stock(name)
        return [stock.with_name(stock.name + part) for part in _PARTS]

    def outputs(self, name: str) -> list[Path]:
        return [*self.parts(name), self.runnable(name)]

    def load(self) -> dict[str, Any]:
        """The record, without modules whose outputs are gone; empty if it is lost or damaged."""
        try:
            state = json.loads(self.record.read_text("utf-8"))
            return {
                name: {key: kept[key] for key in ("key", "interface", "messages", "declarations")}
                for name, kept in state.items()
                if all(path.exists() for path in self.outputs(name))
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def save(self, state: dict[str, Any]) -> None:
        write_whole(self.record, json.dumps(state))

    def forget(self, name: str, state: dict[str, Any]) -> None:
        """Remove a module's outputs, so that none outlives the source that it was made from."""
        if state.pop(name, None) is not None:
            self.save(state)
        for path in self.outputs(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
