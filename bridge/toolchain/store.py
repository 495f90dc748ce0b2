"""The built modules of the embedded Lean, and the record of those that are up to date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bridge.files import write_whole
from bridge.toolchain import modules
from bridge.toolchain.packages import Packages

# Lean writes these three for a module: its interface, the data for editors, and everything.
_PARTS = ("", ".server", ".private")


class Store:
    """The folder `build/lean`.

    `stock/`: Lean's own output, for the audit; `runnable/`: the modules to import and to run;
    `state.json`: for each module that is up to date its build key, interface, messages and
    declarations.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = folder / "state.json"

    def stock(self, name: str) -> Path:
        return modules.file_of(self.folder / "stock", name).with_suffix(".olean")

    def runnable(self, name: str) -> Path:
        return modules.file_of(self.folder / "runnable", name).with_suffix(".olean")

    def parts(self, name: str) -> list[Path]:
        """The files that Lean writes for a module."""
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

    def remove(self, name: str) -> None:
        """Remove a module's outputs, so that none outlives the source that it was made from."""
        for path in self.outputs(name):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)


class Stores:
    """The stores of packages as one: the outputs of a module lie with its package."""

    def __init__(self, packages: Packages) -> None:
        self.packages = packages
        self._stores = {one.root: Store(one.root / "build" / "lean") for one in packages.all}

    def of(self, name: str) -> Store:
        """The store of a module."""
        return self._stores[self.packages.of(name).root]

    def folders(self) -> list[Path]:
        """The folder of each store, that of the package itself first."""
        return [store.folder for store in self._stores.values()]

    def load(self) -> dict[str, Any]:
        """The records of all, each of the modules of its own package."""
        return {
            name: kept
            for store in self._stores.values()
            for name, kept in store.load().items()
            if self.of(name) is store
        }

    def save(self, name: str, state: dict[str, Any]) -> None:
        """Write the record of the package that a module belongs to."""
        store = self.of(name)
        store.save({one: kept for one, kept in state.items() if self.of(one) is store})

    def forget(self, name: str, state: dict[str, Any]) -> None:
        """Take a module out of the record and remove its outputs."""
        if state.pop(name, None) is not None:
            self.save(name, state)
        self.of(name).remove(name)
