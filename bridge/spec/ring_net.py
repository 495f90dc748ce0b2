"""Ring attention between devices that run by themselves.

Written by `.venv/bin/python -m bridge translate` from `Attention/Spec/RingNet.lean`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from bridge.spec.attention import ScoredValue, ScoreMod
from bridge.spec.core import Arithmetic, Score, Value, set_index
from bridge.spec.online import State, empty, finish, step_block
from bridge.spec.rows import KeyValue
from bridge.spec.vector import vec_dot


@dataclass(frozen=True)
class InstructionSend:
    """Post a send of a buffer to the next device.

    Lean: `Attention.Spec.Instruction.send`.
    """

    buffer: int


@dataclass(frozen=True)
class InstructionReceive:
    """Post a receive from the device before this one into a buffer.

    Lean: `Attention.Spec.Instruction.receive`.
    """

    buffer: int


@dataclass(frozen=True)
class InstructionConsume:
    """Compute with a buffer, as the one that the device `source` held at first.

    Lean: `Attention.Spec.Instruction.consume`.
    """

    buffer: int
    source: int


@dataclass(frozen=True)
class InstructionWaitSends:
    """Wait until the messages of all posted sends have left.

    Lean: `Attention.Spec.Instruction.waitSends`.
    """


@dataclass(frozen=True)
class InstructionWaitReceives:
    """Wait until the messages of all posted receives have arrived.

    Lean: `Attention.Spec.Instruction.waitReceives`.
    """


# An instruction of a device's program. Lean: `Attention.Spec.Instruction`.
Instruction: TypeAlias = (
    InstructionSend
    | InstructionReceive
    | InstructionConsume
    | InstructionWaitSends
    | InstructionWaitReceives
)


@dataclass(frozen=True)
class Node:
    """A device. Posted sends whose messages have not left, and posted receives whose messages have
    not arrived, are listed by their buffers, oldest first.

    rest: the rest of its program.

    buffers: its two buffers.

    sends: the posted sends.

    receives: the posted receives.

    result: its result so far.

    Lean: `Attention.Spec.Node`.
    """

    rest: list[Instruction]
    buffers: list[Any]
    sends: list[int]
    receives: list[int]
    result: Any


@dataclass(frozen=True)
class RingNet:
    """The devices of a ring, and the messages on their way to each from the one before it, oldest
    first.

    nodes: the devices.

    channels: the messages to each device.

    Lean: `Attention.Spec.RingNet`.
    """

    nodes: list[Node]
    channels: list[list[Any]]


@dataclass(frozen=True)
class RingEventExecute:
    """The device does the next instruction of its program.

    Lean: `Attention.Spec.RingEvent.execute`.
    """

    i: int


@dataclass(frozen=True)
class RingEventLeave:
    """The oldest posted send to the device reads its buffer.

    Lean: `Attention.Spec.RingEvent.leave`.
    """

    i: int


@dataclass(frozen=True)
class RingEventArrive:
    """The oldest message to the device overwrites the buffer of its oldest posted receive.

    Lean: `Attention.Spec.RingEvent.arrive`.
    """

    i: int


# An event of a ring. Lean: `Attention.Spec.RingEvent`.
RingEvent: TypeAlias = RingEventExecute | RingEventLeave | RingEventArrive


def before(i: int, *, n: int) -> int:
    """The device before this one; before the first it is the last.

    Lean: `Attention.Spec.before`.
    """
    return max(n - 1, 0) if i == 0 else max(i - 1, 0)


def node_execute(take: Callable[[int, int, Any, Any], Any], i: int, node: Node) -> Node | None:
    """The device after its next instruction; `none` while it waits, and at the end. `take i
    source` takes a buffer into the result of device i.

    Lean: `Attention.Spec.Node.execute`.
    """
    if not node.rest:
        return None
    rest = node.rest[1:]
    if isinstance(node.rest[0], InstructionSend):
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=[*node.sends, node.rest[0].buffer],
            receives=node.receives,
            result=node.result,
        )
    if isinstance(node.rest[0], InstructionReceive):
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=node.sends,
            receives=[*node.receives, node.rest[0].buffer],
            result=node.result,
        )
    if isinstance(node.rest[0], InstructionConsume):
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=node.sends,
            receives=node.receives,
            result=take(i, node.rest[0].source, node.result, node.buffers[node.rest[0].buffer]),
        )
    if isinstance(node.rest[0], InstructionWaitSends):
        if len(node.sends) == 0:
            return Node(
                rest=rest,
                buffers=node.buffers,
                sends=node.sends,
                receives=node.receives,
                result=node.result,
            )
        return None
    if len(node.receives) == 0:
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=node.sends,
            receives=node.receives,
            result=node.result,
        )
    return None


def ring_net_after(
    take: Callable[[int, int, Any, Any], Any],
    capacity: int,
    net: RingNet,
    event: RingEvent,
    *,
    n: int,
) -> RingNet | None:
    """The ring after an event; `none` where it cannot happen. A channel has room for `capacity`
    messages, and for one more for each posted receive; without room no message leaves.

    Lean: `Attention.Spec.RingNet.after`.
    """
    if isinstance(event, RingEventExecute):
        node = node_execute(take, event.i, net.nodes[event.i])
        if node is None:
            return None
        return RingNet(nodes=set_index(net.nodes, event.i, node), channels=net.channels)
    if isinstance(event, RingEventLeave):
        sender = net.nodes[before(event.i, n=n)]
        if not sender.sends:
            return None
        if len(net.channels[event.i]) < capacity + len(net.nodes[event.i].receives):
            return RingNet(
                nodes=set_index(
                    net.nodes,
                    before(event.i, n=n),
                    Node(
                        rest=sender.rest,
                        buffers=sender.buffers,
                        sends=sender.sends[1:],
                        receives=sender.receives,
                        result=sender.result,
                    ),
                ),
                channels=set_index(
                    net.channels, event.i, [*net.channels[event.i], sender.buffers[sender.sends[0]]]
                ),
            )
        return None
    node = net.nodes[event.i]
    if not node.receives:
        return None
    messages = net.channels[event.i]
    if not messages:
        return None
    buffers = set_index(node.buffers, node.receives[0], messages[0])
    return RingNet(
        nodes=set_index(
            net.nodes,
            event.i,
            Node(
                rest=node.rest,
                buffers=buffers,
                sends=node.sends,
                receives=node.receives[1:],
                result=node.result,
            ),
        ),
        channels=set_index(net.channels, event.i, messages[1:]),
    )


def ring_net_run(
    take: Callable[[int, int, Any, Any], Any],
    capacity: int,
    events: list[RingEvent],
    net: RingNet,
    *,
    n: int,
) -> RingNet | None:
    """The ring after some events, one after the other; `none` if one cannot happen.

    Lean: `Attention.Spec.RingNet.run`.
    """
    if not events:
        return net
    next_ = ring_net_after(take, capacity, net, events[0], n=n)
    if next_ is None:
        return None
    return ring_net_run(take, capacity, events[1:], next_, n=n)


def source(i: int, t: int, *, n: int) -> int:
    """The device whose keys device `i` holds in round `t`: itself at first, then the one before
    it, and so on.

    Lean: `Attention.Spec.source`.
    """
    return i if t == 0 else source(before(i, n=n), t - 1, n=n)


def slot(t: int) -> int:
    """The buffer that is held in round `t`.

    Lean: `Attention.Spec.slot`.
    """
    return t % 2


def round_program(rounds: int, i: int, t: int, *, n: int) -> list[Instruction]:
    """Round `t` of device `i`. In the last nothing is passed on.

    Lean: `Attention.Spec.roundProgram`.
    """
    if t + 1 < rounds:
        return [
            InstructionSend(slot(t)),
            InstructionReceive(slot(t + 1)),
            InstructionConsume(slot(t), source(i, t, n=n)),
            InstructionWaitSends(),
            InstructionWaitReceives(),
        ]
    return [InstructionConsume(slot(t), source(i, t, n=n))]


def ring_program(rounds: int, i: int, *, n: int) -> list[Instruction]:
    """The program of device `i`.

    Lean: `Attention.Spec.ringProgram`.
    """
    return [x for t in range(rounds) for x in round_program(rounds, i, t, n=n)]


def ring_net_start(
    program: Callable[[int], list[Instruction]],
    held: Callable[[int], Any],
    spare: Callable[[int], Any],
    result: Callable[[int], Any],
    *,
    n: int,
) -> RingNet:
    """A ring before any event: the programs, the buffer that each device holds, its other buffer,
    and the result that it starts from.

    Lean: `Attention.Spec.RingNet.start`.
    """
    return RingNet(
        nodes=[
            Node(
                rest=program(i),
                buffers=[held(i), spare(i)],
                sends=[],
                receives=[],
                result=result(i),
            )
            for i in range(n)
        ],
        channels=[[] for _ in range(n)],
    )


def shard(K: list[list[Score]], V: list[list[Value]], cols: list[int]) -> list[KeyValue]:
    """The keys `cols` with their values.

    Lean: `Attention.Spec.shard`.
    """
    return [(K[j], V[j]) for j in cols]


def take_shard(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    rows: Callable[[int], list[int]],
    cols: Callable[[int], list[int]],
    i: int,
    source: int,
    states: list[State],
    held: list[KeyValue],
    *,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> list[State]:
    """Device `i` takes keys and values, as those at the places of device `source`, into the states
    of its queries.

    Lean: `Attention.Spec.takeShard`.
    """
    return [
        step_block(
            s,
            [
                ScoredValue(
                    score=modify(q, j, scale * vec_dot(Q[q], kv[0], d=d, zero=num.score(0))),
                    value=kv[1],
                )
                for j, kv in zip(cols(source), held, strict=False)
            ],
            d=d_v,
            num=num,
        )
        for q, s in zip(rows(i), states, strict=False)
    ]


def ring_start(
    program: Callable[[int], list[Instruction]],
    K: list[list[Score]],
    V: list[list[Value]],
    rows: Callable[[int], list[int]],
    cols: Callable[[int], list[int]],
    spare: Callable[[int], list[KeyValue]],
    *,
    n: int,
    d_v: int,
    num: Arithmetic,
) -> RingNet:
    """A ring in which device `i` has the queries `rows i` and holds the keys `cols i` with their
    values, before any event.

    Lean: `Attention.Spec.ringStart`.
    """
    return ring_net_start(
        program,
        lambda i: shard(K, V, cols(i)),
        spare,
        lambda i: [empty(d=d_v, num=num) for _ in rows(i)],
        n=n,
    )


def ring_net_outputs(net: RingNet, *, d_v: int, num: Arithmetic) -> list[list[list[Value]]]:
    """The outputs of each device, in the order of its queries.

    Lean: `Attention.Spec.RingNet.outputs`.
    """
    return [[finish(s, d=d_v, num=num) for s in node.result] for node in net.nodes]
