"""The vectors that `pyimpl.dropout` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import torch
from generated_checks import vector_of, vectors

from pyimpl.dropout import philox4x32


def check(vector_id: str) -> None:
    vector = vector_of(vector_id)
    counters = torch.tensor(vector.counters).unbind(1)
    key = tuple(torch.tensor(vector.key).unbind())
    words = torch.stack(philox4x32(counters, key), dim=1)
    assert words.tolist() == [list(words) for words in vector.expected], vector.reason


@vectors("philox", 10)
def test_philox(vector_id: str) -> None:
    """For each key and any number of rounds, Philox4x32 gives different words for different
    counters: it is a permutation of the 2¹²⁸ counters.

    Theorem philox-injective, `Spec.philox`. Random words from counter and key: words in another
    order, a key that is not moved on from round to round, or moved once too often, and products cut
    off at 32 bits show.
    """
    check(vector_id)
