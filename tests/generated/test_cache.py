"""The vectors that `pyimpl.cache` runs.

Written by `.venv/bin/python -m bridge pages` from tests/vectors, docs/theorems.toml and
bridge/pages/templates; edit those. Each test names the theorem of docs/theorems.md that its vectors
rest on, the definition in Attention/Spec that made them, and the mistakes of a kernel that show on
them.
"""

from __future__ import annotations

import math

import torch
from generated_checks import dtypes, judge_states, tensor, vector_of, vectors
from torch import Tensor

from bridge.vectors.model.operations import Edit, Key
from pyimpl import cache, state


def check(vector_id: str, dtype: torch.dtype) -> None:
    """The state at the beginning and after each change, as `pyimpl.cache` keeps it."""
    vector = vector_of(vector_id)
    start = state.empty((1,), vector.value_dim, dtype=dtype, device=torch.device("cpu"))
    kept = cache.Cache(
        torch.empty(1, 0, dtype=dtype), torch.empty(0, vector.value_dim, dtype=dtype), start
    )
    for key in vector.keys:
        kept = kept.append(*tensors(key, dtype))
    states = [kept.state]
    for edit in vector.edits:
        kept = changed(kept, edit, dtype)
        states.append(kept.state)
    judge_states(vector, dtype, states)


def changed(kept: cache.Cache, edit: Edit, dtype: torch.dtype) -> cache.Cache:
    if edit.key is None:
        return kept.delete(edit.index)
    key = tensors(edit.key, dtype)
    if edit.kind == "replace":
        return kept.replace(edit.index, *key)
    return kept.slide(edit.window, *key) if edit.kind == "slide" else kept.append(*key)


def tensors(key: Key, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Score `[1]` and value `[value_dim]`; scores are in base 2."""
    score = -math.inf if key.score is None else float(key.score)
    return math.log(2.0) * torch.tensor([score], dtype=dtype), tensor((key.value,), dtype)[0]


@vectors("cache-edits", 15)
@dtypes
def test_cache_edits(vector_id: str, dtype: torch.dtype) -> None:
    """After any sequence of appended, deleted and replaced keys, the kept keys are those that are
    there, and the kept state gives their attention if one of them is unmasked; otherwise l and o
    are 0.

    Theorem kv-edits, `Spec.Online.edit`. A state that follows its keys as they are appended,
    deleted and replaced: the stored maximum stays when its key goes, and only refers.
    """
    check(vector_id, dtype)


@vectors("cache-window", 10)
@dtypes
def test_cache_window(vector_id: str, dtype: torch.dtype) -> None:
    """A cache kept for a sliding window, each new key appended and the oldest deleted when there
    are more than w, holds the last w keys, and its state gives their attention if one of them is
    unmasked; otherwise l and o are 0.

    Theorem kv-window, `Spec.Online.slide`. A window of the latest keys: each new key is appended
    and the oldest deleted, from the state alone.
    """
    check(vector_id, dtype)
