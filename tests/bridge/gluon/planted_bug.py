"""A bug that is planted in a Gluon kernel, and how it has to be seen in the simulator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from bridge.gluon.faults import Fault, Kind
from bridge.gluon.load import Change, Loader
from bridge.gluon.vectors import differences
from bridge.vectors.model.attention import Vector

IN_USE: Kind = "overwritten while in use"
EARLY: Kind = "read before it has landed"


@dataclass(frozen=True)
class Planted:
    """kernel: the file that is changed; changes: of its text. of: makes the case that shows it.
    said: of which kinds the faults are, in some schedule each; empty: numbers are wrong. chosen:
    launch options with which it shows; items: for how many tiles a program has buffers of keys;
    head_dim: the size of heads."""

    kernel: Path
    changes: tuple[Change, ...]
    of: Callable[[], Vector]
    said: frozenset[Kind] = frozenset()
    chosen: tuple[tuple[str, int], ...] = ()
    items: int = 1
    head_dim: int = 64

    @cached_property
    def module(self) -> ModuleType:
        """The kernel's module with the bug in it."""
        return Loader(self.changes).module(self.kernel)

    def check(self, seeds: int, **how: Any) -> None:
        """It is seen: by numbers, or in each of so many schedules, not in those alone in which
        numbers become wrong. how: as `differences` takes it."""
        if not self.said:
            assert list(differences(self.of(), **how)) != []
            return
        for seed in range(seeds):
            with pytest.raises(Fault) as raised:
                list(differences(self.of(), seed=seed, **how))
            assert raised.value.kind in self.said
