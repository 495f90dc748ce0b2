"""Right functions whose results are changed afterwards, for tests of the sentences about that."""

from __future__ import annotations

from collections.abc import Callable

from bridge.conformance.adapters.own import PyimplTiled
from bridge.conformance.tensors.batch import Batch, Outputs


class Spoiled(PyimplTiled):
    """The tile loop with something done to its result."""

    name = "spoiled"

    def __init__(self, spoil: Callable[[Batch, Outputs], Outputs]) -> None:
        super().__init__()
        self.spoil = spoil

    def run(self, batch: Batch) -> Outputs:
        return self.spoil(batch, super().run(batch))
