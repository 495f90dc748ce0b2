"""Tiles that are left out or unmasked, columns that are left out, inputs that are rounded."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch.nn.functional import pad

from bridge.conformance.mutants.hypotheses.call import Call, Hypothesis
from pyimpl.internal.arguments import mask_as_4d

TILES = (16, 32, 64, 128)


def _cut(keys: int, call: Call) -> Call:
    """The first so many keys alone."""
    o = call.options
    bias, mask = (
        None if x is None else mask_as_4d(x, *call.lengths)[..., :keys] for x in (o.bias, o.mask)
    )
    changed = replace(call, key=call.key[:, :, :keys], value=call.value[:, :, :keys])
    return changed.with_options(bias=bias, mask=mask)


def _last_tile_dropped(tile: int) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        keys = call.lengths[1]
        return _cut(keys - keys % tile, call) if keys % tile and keys > tile else None

    return change


def _more_keys_than_queries(call: Call) -> Call | None:
    q_len, kv_len = call.lengths
    return _cut(q_len, call) if kv_len > q_len else None


def _ragged_unmasked(tile: int) -> Callable[[Call], Call | None]:
    """Keys of zeros up to the end of the last tile, which masks but windows do not hide."""

    def change(call: Call) -> Call | None:
        more = -call.lengths[1] % tile
        if not more:
            return None
        o = call.options
        bias, mask = (
            None if x is None else pad(mask_as_4d(x, *call.lengths), (0, more), value=value)
            for x, value in ((o.bias, 0.0), (o.mask, True))
        )
        key, value = (pad(x, (0, 0, 0, more)) for x in (call.key, call.value))
        return replace(call, key=key, value=value).with_options(bias=bias, mask=mask)

    return change


def _narrow(width: int) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        if call.query.shape[-1] <= width:
            return None
        return replace(call, query=call.query[..., :width], key=call.key[..., :width])

    return change


def _round_to(dtype: torch.dtype) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        now = (call.query, call.key, call.value)
        then = [x.to(dtype).to(x.dtype) for x in now]
        if all(torch.equal(x, y) for x, y in zip(now, then, strict=True)):
            return None
        return replace(call, query=then[0], key=then[1], value=then[2])

    return change


SIZES = (
    *(
        Hypothesis(
            "last-tile-dropped", f"a ragged last tile of {n} keys is left out",
            _last_tile_dropped(n),
        )
        for n in TILES
    ),
    *(
        Hypothesis(
            "ragged-keys-not-masked",
            f"the padding of a ragged last tile of {n} keys counts as keys with score 0",
            _ragged_unmasked(n),
        )
        for n in TILES
    ),
    Hypothesis(
        "keys-beyond-queries", "keys beyond the number of queries are left out",
        _more_keys_than_queries,
    ),
    *(
        Hypothesis("narrow-heads", f"columns of query and key beyond {n} are left out", _narrow(n))
        for n in (64, 128)
    ),
    Hypothesis(
        "inputs-in-bfloat16", "the inputs are rounded to bfloat16", _round_to(torch.bfloat16)
    ),
    Hypothesis("inputs-in-float16", "the inputs are rounded to float16", _round_to(torch.float16)),
)  # fmt: skip
