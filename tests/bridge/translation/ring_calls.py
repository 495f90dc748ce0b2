"""How a sequence in shards is given to the translated ring of devices: the layout by its
definition, and the events in another order than in Lean, where the first device that can goes on;
here it is the last."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import spec_calls

from bridge.spec import shards
from bridge.spec.attention import mask_to_score_mod
from bridge.spec.core import EXACT
from bridge.spec.masks import Alignment
from bridge.spec.online import empty, finish
from bridge.spec.ring_net import (
    RingEvent,
    RingEventArrive,
    RingEventExecute,
    RingEventLeave,
    RingNet,
    RingRules,
    forward_rules,
    ring_net_after,
    ring_net_outputs,
    ring_program,
    ring_start,
    shard,
    source,
)
from bridge.spec.ring_skip import needed_rounds, shards_meet, take_met
from bridge.vectors.model.shards import ShardsVector
from pyimpl.distributed.internal.shards import MOST_RUNS

Places = Callable[[int], list[int]]


def places(v: ShardsVector, length: int, listed: list[tuple[int, ...]]) -> Places:
    """Which places each device holds, by the layout."""
    n = len(v.devices)
    owners: dict[str, Callable[[int], int]] = {
        "contiguous": partial(shards.contiguous_owner, n=n, len_=length),
        "zigzag": partial(shards.zigzag_owner, n=n, len_=length),
        "striped": partial(shards.striped_owner, n=n),
    }
    if v.layout == "places":
        return lambda i: list(listed[i])
    found = [shards.places_of(owners[v.layout], i, len_=length) for i in range(n)]
    assert found == [list(some) for some in listed]
    return found.__getitem__


def last_first(rules: RingRules, net: RingNet, n: int) -> RingNet:
    """The ring at its end."""
    while True:
        events: list[RingEvent] = [
            event
            for i in reversed(range(n))
            for event in (RingEventArrive(0, i), RingEventLeave(0, i), RingEventExecute(i))
        ]
        after = (ring_net_after(rules, net, event, n=n, b=2, c=1) for event in events)
        found = next((one for one in after if one is not None), None)
        if found is None:
            return net
        net = found


def _ring_net(v: ShardsVector) -> Any:
    """For each device the partial outputs, in order of arrival, and those over all keys."""
    n = len(v.devices)
    size: dict[str, Any] = {"d_v": v.value_dim, "num": EXACT}
    rows = places(v, v.q_len, [device.queries for device in v.devices])
    cols = places(v, v.kv_len, [device.keys for device in v.devices])
    left, right, shift = v.mask.window or (None, None, 0)
    at = Alignment.BOTTOM_RIGHT if shift else Alignment.TOP_LEFT
    meet = partial(
        shards_meet, MOST_RUNS, at, left, right, None, rows, cols, q_len=v.q_len, kv_len=v.kv_len
    )
    rounds = needed_rounds(meet, n=n)
    modify = mask_to_score_mod(spec_calls.mask_of(v.mask, v.q_len, v.kv_len))
    q, k = spec_calls.matrix(v, v.q), spec_calls.matrix(v, v.k)
    value = spec_calls.values(v, v.v)
    scale = spec_calls.score_number(v, v.scale)
    plain = forward_rules(scale, modify, q, rows, cols, 1, n=n, d=v.head_dim, **size)
    rules = replace(plain, take=partial(take_met, meet, plain.take))
    start = ring_start(
        lambda i: ring_program(rounds, i, n=n), k, value, rows, cols, lambda _: [], n=n, **size
    )
    outputs = ring_net_outputs(last_first(rules, start, n), **size)
    found = []
    for i, merged in enumerate(outputs):
        sources = [source(i, t, n=n) for t in range(rounds)]
        assert sources == list(v.devices[i].arrivals)
        for j in sources:
            nothing = [empty(d=v.value_dim, num=EXACT) for _ in rows(i)]
            states = rules.take(i, j, nothing, shard(k, value, cols(j)))
            found += [finish(state, d=v.value_dim, num=EXACT) for state in states]
        found += merged
    return found


CALLS: Mapping[str, Callable[[Any], Any]] = {"RingNet.outputs": _ring_net}
