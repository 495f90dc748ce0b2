"""Ring attention.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/Ring.lean`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bridge.spec.attention import ScoreMod, scored
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.flash import step_tile
from bridge.spec.online import State, empty, finish


@dataclass(frozen=True)
class Device:
    """A device of the ring.

    rows: the queries that stay on the device.

    cols: the keys that it holds in this round.

    states: the state of each of its queries.

    Lean: `Attention.Spec.Device`.
    """

    rows: list[int]
    cols: list[int]
    states: list[State]


def rotate(xs: list[Any]) -> list[Any]:
    """Each passes its keys to the device before it, the first to the last.

    Lean: `Attention.Spec.rotate`.
    """
    return [] if not xs else [*xs[1:], xs[0]]


def pass_on(devices: list[Device]) -> list[Device]:
    """Every device passes on the keys that it holds.

    Lean: `Attention.Spec.passOn`.
    """
    return [
        Device(rows=dev.rows, cols=cols, states=dev.states)
        for dev, cols in zip(devices, rotate([x.cols for x in devices]), strict=False)
    ]


def device_compute(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    dev: Device,
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> Device:
    """The device takes the keys that it holds into the states of its queries.

    Lean: `Attention.Spec.Device.compute`.
    """
    return Device(
        rows=dev.rows,
        cols=dev.cols,
        states=step_tile(
            lambda i, cols: scored(scale, modify, Q, K, V, i, cols, d=d, num=num),
            dev.rows,
            dev.states,
            dev.cols,
            d_v=d_v,
            num=num,
        ),
    )


def ring_rounds(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    n: int,
    devices: list[Device],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[Device]:
    """The ring after `n` rounds.

    Lean: `Attention.Spec.ringRounds`.
    """
    if n == 0:
        return devices
    return ring_rounds(
        scale,
        modify,
        Q,
        K,
        V,
        n - 1,
        pass_on(
            [device_compute(scale, modify, Q, K, V, dev, d=d, d_v=d_v, num=num) for dev in devices]
        ),
        d=d,
        d_v=d_v,
        num=num,
    )


def ring(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    K: list[list[Score]],
    V: list[list[Value]],
    shards: list[tuple[list[int], list[int]]],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[list[list[Value]]]:
    """The outputs of each device, in the order of its queries. A shard is what a device starts
    with: its queries, and the keys that it holds first.

    Lean: `Attention.Spec.ring`.
    """
    start = [
        Device(rows=rows, cols=cols, states=[empty(d=d_v, num=num) for _ in rows])
        for rows, cols in shards
    ]
    return [
        [finish(s, d=d_v, num=num) for s in dev.states]
        for dev in ring_rounds(scale, modify, Q, K, V, len(shards), start, d=d, d_v=d_v, num=num)
    ]
