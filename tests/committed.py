"""The committed vectors, for the tests: by their names from the index while tests are collected,
which every worker does, and read where a test needs them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from bridge.vectors.format import index
from bridge.vectors.load import default_directory, load
from bridge.vectors.model.attention import Family

ENTRIES = index.entries_of(default_directory())


def names(operation: str | None = None, model: str | None = None) -> list[str]:
    """The families of this operation and this model, default all."""
    return [
        entry["family"]
        for entry in ENTRIES
        if operation in (None, entry["operation"]) and model in (None, entry["model"])
    ]


def ids(operation: str) -> list[str]:
    """The ids of all vectors of this operation."""
    return [id for e in ENTRIES if e["operation"] == operation for id in index.ids(e)]


@cache
def family(name: str) -> Family:
    """The family of this name."""
    (found,) = load(names=[name])
    return found


def families(*names: str) -> list[Family]:
    """Those of these names."""
    return [family(name) for name in names]


def some(name: str, count: int) -> list[Family]:
    """The family of this name with its first vectors alone, so many."""
    return [replace(family(name), vectors=family(name).vectors[:count])]


@cache
def everything() -> list[Family]:
    """All families."""
    return load()


def vectors(operation: str | None = None) -> list[Any]:
    """All vectors of this operation, default of all."""
    return [v for name in names(operation) for v in family(name).vectors]


def vector(id: str) -> Any:
    """The vector with this id."""
    return next(v for v in family(id.rpartition("-")[0]).vectors if v.id == id)
