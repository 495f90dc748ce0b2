"""Every option of the scores and weights alone, and many of them together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from attention_checks import score_options
from hypothesis import strategies as st
from torch import Tensor

from pyimpl.internal.dropout import Dropout
from pyimpl.internal.scores import ScoreOptions


class Draw:
    """Random tensors for a query `[batch, heads, q_len, …]` and a key `[…, kv_len, …]`."""

    def __init__(self, query: Tensor, key: Tensor, seed: int) -> None:
        self.sizes = (*query.shape[:3], key.shape[2])
        self.shift = key.shape[2] - query.shape[2]
        self.generator = torch.Generator().manual_seed(seed)

    def bias(self, *sizes: int, masking: bool = False) -> Tensor:
        numbers = torch.randn(sizes, generator=self.generator)
        return torch.where(numbers < -1.0, -torch.inf, numbers) if masking else numbers

    def mask(self, *sizes: int) -> Tensor:
        return torch.rand(sizes, generator=self.generator) < 0.6

    def slopes(self, *sizes: int) -> Tensor:
        return torch.rand(sizes, generator=self.generator)


OPTIONS: dict[str, Callable[[Draw], dict[str, Any]]] = {
    "nothing": lambda d: {},
    "scale": lambda d: {"scale": -1.7},
    "softcap": lambda d: {"softcap": 0.5},
    "alibi": lambda d: {"alibi_slopes": d.slopes(1, d.sizes[1])},
    "alibi of each batch": lambda d: {"alibi_slopes": d.slopes(*d.sizes[:2])},
    "alibi bottom-right": lambda d: {"alibi_slopes": d.slopes(1, d.sizes[1]), "shift": d.shift},
    "bias": lambda d: {"bias": d.bias(*d.sizes)},
    "bias of one row": lambda d: {"bias": d.bias(1, d.sizes[3])},
    "masking bias": lambda d: {"bias": d.bias(d.sizes[1], 1, d.sizes[3], masking=True)},
    "mask": lambda d: {"mask": d.mask(*d.sizes)},
    "mask of all heads": lambda d: {"mask": d.mask(d.sizes[0], 1, *d.sizes[2:])},
    "causal": lambda d: {"right": 0},
    "causal bottom-right": lambda d: {"right": 0, "shift": d.shift},
    "window": lambda d: {"left": 2, "right": 1},
    "window bottom-right": lambda d: {"left": 1, "right": 2, "shift": d.shift},
    "window to the left": lambda d: {"left": 1},
    "keys before the first": lambda d: {"left": 3, "right": 0, "shift": -2},
    "sinks": lambda d: {"sinks": d.bias(d.sizes[1])},
    "sinks and nothing else": lambda d: {
        "sinks": d.bias(d.sizes[1]),
        "mask": torch.zeros(1, dtype=torch.bool),
    },
    "no sink": lambda d: {"sinks": torch.full((d.sizes[1],), -torch.inf), "right": 0},
    "everything": lambda d: {
        "scale": 0.9,
        "softcap": 2.0,
        "alibi_slopes": d.slopes(*d.sizes[:2]),
        "bias": d.bias(*d.sizes[2:], masking=True),
        "mask": d.mask(d.sizes[0], 1, *d.sizes[2:]),
        "left": 4,
        "right": 1,
        "shift": d.shift,
        "sinks": d.bias(d.sizes[1]),
    },
}
DROPOUT = Dropout(0.4, torch.tensor(0x1234567890ABCDEF))
OPTIONS |= {
    "dropout": lambda d: {"dropout": DROPOUT},
    "dropout and everything": lambda d: {**OPTIONS["everything"](d), "dropout": DROPOUT},
}


def options_of(name: str, query: Tensor, key: Tensor, seed: int = 0) -> ScoreOptions:
    """The named options for tensors of these shapes."""
    return score_options(query, **OPTIONS[name](Draw(query, key, seed)))


# Cases for a function that goes over tiles: sizes as of `attention_checks.inputs`, query heads for
# each of keys, options by name, and lengths of tiles.
TILED: dict[str, st.SearchStrategy[Any]] = {
    "shape": st.tuples(
        *[st.integers(0, 3)] * 2, *[st.integers(0, 40)] * 2, *[st.integers(1, 12)] * 2
    ),
    "group": st.integers(1, 3),
    "name": st.sampled_from(sorted(OPTIONS)),
    "block_m": st.integers(1, 50),
    "block_n": st.integers(1, 50),
    "tile_scores": st.integers(1, 5000),
    "seed": st.integers(0, 2**31),
}
