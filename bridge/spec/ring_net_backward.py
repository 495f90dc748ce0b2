"""The backward pass of ring attention between devices that run by themselves.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/RingNetBackward.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from bridge.spec.attention import ScoreMod
from bridge.spec.backward import score_gradient
from bridge.spec.backward_tiles import KeySums
from bridge.spec.core import Arithmetic, Score, Value
from bridge.spec.dropout import WeightFactor
from bridge.spec.maximum import rescale
from bridge.spec.ring_net import (
    Instruction,
    InstructionConsume,
    InstructionReceive,
    InstructionSend,
    InstructionStore,
    InstructionWaitReceives,
    InstructionWaitSends,
    RingNet,
    RingRules,
    before,
    following,
    ring_net_start,
    shard,
    source,
)
from bridge.spec.rows import KeyValue
from bridge.spec.tangent import ScoreSlope
from bridge.spec.vector import vec_add, vec_dot, vec_smul, vec_sum_over, vec_zero


@dataclass(frozen=True)
class ParcelKeys:
    """Keys with their values.

    Lean: `Attention.Spec.Parcel.keys`.
    """

    held: list[KeyValue]


@dataclass(frozen=True)
class ParcelSums:
    """The gradients by keys and values, summed over some queries.

    Lean: `Attention.Spec.Parcel.sums`.
    """

    held: KeySums


# The content of a buffer of the backward pass. Lean: `Attention.Spec.Parcel`.
Parcel: TypeAlias = ParcelKeys | ParcelSums


@dataclass(frozen=True)
class BackwardState:
    """The result of a device in the backward pass, so far.

    dQ: the gradients by its queries.

    sums: the gradients by the keys and values of this round.

    Lean: `Attention.Spec.BackwardState`.
    """

    dQ: list[list[Value]]
    sums: KeySums


def key_slot(t: int) -> int:
    """The buffer of the keys and values that are held in round `t`: 0 or 1.

    Lean: `Attention.Spec.keySlot`.
    """
    return t % 2


def sum_slot(t: int) -> int:
    """The buffer of the sums of gradients that go around, in round `t`: 2 or 3.

    Lean: `Attention.Spec.sumSlot`.
    """
    return 2 + t % 2


def home_slot() -> int:
    """The buffer of the gradients that come home.

    Lean: `Attention.Spec.homeSlot`.
    """
    return 4


def backward_round(rounds: int, i: int, t: int, *, n: int) -> list[Instruction]:
    """Round `t` of device `i` in the backward pass: the keys go on; those that are held meet the
    queries; what the devices before have added to the same keys is waited for and added, where
    there are such; the sums go on, or, after the last round, home.

    Lean: `Attention.Spec.backwardRound`.
    """
    compute = [
        InstructionConsume(key_slot(t), source(i, t, n=n)),
        *(
            []
            if t == 0
            else [
                InstructionWaitSends(1),
                InstructionWaitReceives(1),
                InstructionConsume(sum_slot(t), source(i, t, n=n)),
            ]
        ),
    ]
    if t + 1 < rounds:
        return [
            InstructionSend(0, key_slot(t)),
            InstructionReceive(0, key_slot(t + 1)),
            *compute,
            InstructionStore(sum_slot(t)),
            InstructionSend(1, sum_slot(t)),
            InstructionReceive(1, sum_slot(t + 1)),
            InstructionWaitSends(0),
            InstructionWaitReceives(0),
        ]
    return compute + (
        [InstructionStore(home_slot())]
        if t == 0
        else [
            InstructionStore(sum_slot(t)),
            InstructionSend(2, sum_slot(t)),
            InstructionReceive(2, home_slot()),
            InstructionWaitSends(2),
            InstructionWaitReceives(2),
        ]
    )


def backward_program(rounds: int, i: int, *, n: int) -> list[Instruction]:
    """The program of device `i` in the backward pass.

    Lean: `Attention.Spec.backwardProgram`.
    """
    return [x for t in range(rounds) for x in backward_round(rounds, i, t, n=n)]


def holder(i: int, t: int, *, n: int) -> int:
    """The device that holds the keys of device `i` in round `t`.

    Lean: `Attention.Spec.holder`.
    """
    return i if t == 0 else following(holder(i, t - 1, n=n), n=n)


def backward_sender(rounds: int, channel: int, i: int, *, n: int) -> int:
    """Keys and sums come from the device before; what comes home, from the device that held the
    keys last.

    Lean: `Attention.Spec.backwardSender`.
    """
    return holder(i, max(rounds - 1, 0), n=n) if channel == 2 else before(i, n=n)


def held_probability(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    L: list[Score | None],
    q: int,
    j: int,
    kv: KeyValue,
    *,
    d: int,
    num: Arithmetic,
) -> Value:
    """The softmax weight of query `q` and a key with its value, as those at place `j`.

    Lean: `Attention.Spec.heldProbability`.
    """
    return rescale(
        modify(q, j, scale * vec_dot(Q[q], kv[0], d=d, zero=num.score(0))), L[q], num=num
    )


def held_gradient(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    q: int,
    j: int,
    kv: KeyValue,
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> Value:
    """The gradient by their score before it was transformed, times the scale.

    Lean: `Attention.Spec.heldGradient`.
    """
    return to_value(scale) * (
        score_gradient(
            held_probability(scale, modify, Q, L, q, j, kv, d=d, num=num),
            dO[q],
            vec_smul(Z(q, j), kv[1]),
            delta[q],
            d_v=d_v,
            num=num,
        )
        * slope(q, j, scale * vec_dot(Q[q], kv[0], d=d, zero=num.score(0)))
    )


def take_parcel(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    rows: Callable[[int], list[int]],
    cols: Callable[[int], list[int]],
    i: int,
    source: int,
    state: BackwardState,
    held: Parcel,
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> BackwardState:
    """Device `i` computes with the keys and values that it holds, as those at the places of device
    `source`: it adds to the gradients by its queries, and begins the sums of this round. Sums
    that it holds it adds to those of this round.

    Lean: `Attention.Spec.takeParcel`.
    """
    if isinstance(held, ParcelKeys):
        placed = list(zip(cols(source), held.held, strict=False))
        return BackwardState(
            dQ=[
                vec_add(
                    sum_,
                    vec_sum_over(
                        lambda p: vec_smul(
                            held_gradient(
                                to_value,
                                scale,
                                modify,
                                slope,
                                Q,
                                Z,
                                L,
                                dO,
                                delta,
                                q,
                                p[0],
                                p[1],
                                d=d,
                                d_v=d_v,
                                num=num,
                            ),
                            [to_value(x) for x in p[1][0]],
                        ),
                        placed,
                        d=d,
                        zero=num.value(0),
                    ),
                )
                for q, sum_ in zip(rows(i), state.dQ, strict=False)
            ],
            sums=KeySums(
                dK=[
                    vec_sum_over(
                        lambda q: vec_smul(
                            held_gradient(
                                to_value,
                                scale,
                                modify,
                                slope,
                                Q,
                                Z,
                                L,
                                dO,
                                delta,
                                q,
                                p[0],
                                p[1],
                                d=d,
                                d_v=d_v,
                                num=num,
                            ),
                            [to_value(x) for x in Q[q]],
                        ),
                        rows(i),
                        d=d,
                        zero=num.value(0),
                    )
                    for p in placed
                ],
                dV=[
                    vec_sum_over(
                        lambda q: vec_smul(
                            held_probability(scale, modify, Q, L, q, p[0], p[1], d=d, num=num)
                            * Z(q, p[0]),
                            dO[q],
                        ),
                        rows(i),
                        d=d_v,
                        zero=num.value(0),
                    )
                    for p in placed
                ],
            ),
        )
    return BackwardState(
        dQ=state.dQ,
        sums=KeySums(
            dK=[vec_add(a, b) for a, b in zip(state.sums.dK, held.held.dK, strict=False)],
            dV=[vec_add(a, b) for a, b in zip(state.sums.dV, held.held.dV, strict=False)],
        ),
    )


def backward_rules(
    to_value: Callable[[Score], Value],
    scale: Score,
    modify: ScoreMod,
    slope: ScoreSlope,
    Q: list[list[Score]],
    Z: WeightFactor,
    L: list[Score | None],
    dO: list[list[Value]],
    delta: list[Value],
    rounds: int,
    rows: Callable[[int], list[int]],
    cols: Callable[[int], list[int]],
    capacity: int,
    *,
    d: int,
    d_v: int,
    n: int,
    num: Arithmetic,
) -> RingRules:
    """The rules of the backward pass.

    Lean: `Attention.Spec.backwardRules`.
    """
    return RingRules(
        sender=lambda channel, i: backward_sender(rounds, channel, i, n=n),
        take=lambda i, source, state, held: take_parcel(
            to_value,
            scale,
            modify,
            slope,
            Q,
            Z,
            L,
            dO,
            delta,
            rows,
            cols,
            i,
            source,
            state,
            held,
            d=d,
            d_v=d_v,
            num=num,
        ),
        give=lambda state: ParcelSums(state.sums),
        capacity=capacity,
    )


def backward_start(
    program: Callable[[int], list[Instruction]],
    K: list[list[Score]],
    V: list[list[Value]],
    rows: Callable[[int], list[int]],
    cols: Callable[[int], list[int]],
    spare: Callable[[int], list[Parcel]],
    *,
    d: int,
    n: int,
    num: Arithmetic,
) -> RingNet:
    """A ring before the backward pass: device `i` holds the keys `cols i` with their values;
    `spare` is in its other buffers.

    Lean: `Attention.Spec.backwardStart`.
    """
    return ring_net_start(
        program,
        lambda i: [
            ParcelKeys(shard(K, V, cols(i))),
            spare(i)[0],
            spare(i)[1],
            spare(i)[2],
            spare(i)[3],
        ],
        lambda i: BackwardState(
            dQ=[vec_zero(d=d, zero=num.value(0)) for _ in rows(i)], sums=KeySums(dK=[], dV=[])
        ),
        n=n,
        c=3,
    )


def ring_net_gradients(net: RingNet) -> list[tuple[list[list[Value]], Parcel]]:
    """The gradients of each device: by its queries, and what is in the buffer in which those by
    its keys and values come home.

    Lean: `Attention.Spec.RingNet.gradients`.
    """
    return [(node.result.dQ, node.buffers[home_slot()]) for node in net.nodes]
