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
    """Post a send of a buffer on a channel.

    Lean: `Attention.Spec.Instruction.send`.
    """

    channel: int
    buffer: int


@dataclass(frozen=True)
class InstructionReceive:
    """Post a receive from a channel into a buffer.

    Lean: `Attention.Spec.Instruction.receive`.
    """

    channel: int
    buffer: int


@dataclass(frozen=True)
class InstructionConsume:
    """Take a buffer into the result, as the one that belongs to the device `source`.

    Lean: `Attention.Spec.Instruction.consume`.
    """

    buffer: int
    source: int


@dataclass(frozen=True)
class InstructionStore:
    """Write from the result into a buffer.

    Lean: `Attention.Spec.Instruction.store`.
    """

    buffer: int


@dataclass(frozen=True)
class InstructionWaitSends:
    """Wait until the messages of all posted sends on a channel have left.

    Lean: `Attention.Spec.Instruction.waitSends`.
    """

    channel: int


@dataclass(frozen=True)
class InstructionWaitReceives:
    """Wait until the messages of all posted receives from a channel have arrived.

    Lean: `Attention.Spec.Instruction.waitReceives`.
    """

    channel: int


# An instruction of a device's program, of n devices with b buffers and c channels. Lean:
# `Attention.Spec.Instruction`.
Instruction: TypeAlias = (
    InstructionSend
    | InstructionReceive
    | InstructionConsume
    | InstructionStore
    | InstructionWaitSends
    | InstructionWaitReceives
)


@dataclass(frozen=True)
class Node:
    """A device. Posted sends whose messages have not left, and posted receives whose messages have
    not arrived, are listed for each channel by their buffers, oldest first.

    rest: the rest of its program.

    buffers: its buffers.

    sends: the posted sends on each channel.

    receives: the posted receives from each channel.

    result: its result so far.

    Lean: `Attention.Spec.Node`.
    """

    rest: list[Instruction]
    buffers: list[Any]
    sends: list[list[int]]
    receives: list[list[int]]
    result: Any


@dataclass(frozen=True)
class RingNet:
    """The devices of a ring, and the messages on their way to each on each channel, oldest first.

    nodes: the devices.

    channels: the messages to each device, channel by channel.

    Lean: `Attention.Spec.RingNet`.
    """

    nodes: list[Node]
    channels: list[list[list[Any]]]


@dataclass(frozen=True)
class RingEventExecute:
    """The device does the next instruction of its program.

    Lean: `Attention.Spec.RingEvent.execute`.
    """

    i: int


@dataclass(frozen=True)
class RingEventLeave:
    """The oldest posted send on the channel to the device reads its buffer.

    Lean: `Attention.Spec.RingEvent.leave`.
    """

    channel: int
    i: int


@dataclass(frozen=True)
class RingEventArrive:
    """The oldest message to the device overwrites the buffer of its oldest posted receive.

    Lean: `Attention.Spec.RingEvent.arrive`.
    """

    channel: int
    i: int


# An event of a ring. Lean: `Attention.Spec.RingEvent`.
RingEvent: TypeAlias = RingEventExecute | RingEventLeave | RingEventArrive


@dataclass(frozen=True)
class RingRules:
    """The rules of a ring.

    sender: the device whose messages a channel brings to a device.

    take: `take i source` takes a buffer into the result of device i.

    give: the content that a result writes into a buffer.

    capacity: the number of messages that a channel has room for, beside one for each posted
    receive.

    Lean: `Attention.Spec.RingRules`.
    """

    sender: Callable[[int, int], int]
    take: Callable[[int, int, Any, Any], Any]
    give: Callable[[Any], Any]
    capacity: int


def node_execute(rules: RingRules, i: int, node: Node, *, b: int, c: int) -> Node | None:
    """The device after its next instruction; `none` while it waits, and at the end.

    Lean: `Attention.Spec.Node.execute`.
    """
    if not node.rest:
        return None
    rest = node.rest[1:]
    if isinstance(node.rest[0], InstructionSend):
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=set_index(
                node.sends,
                node.rest[0].channel,
                [*node.sends[node.rest[0].channel], node.rest[0].buffer],
            ),
            receives=node.receives,
            result=node.result,
        )
    if isinstance(node.rest[0], InstructionReceive):
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=node.sends,
            receives=set_index(
                node.receives,
                node.rest[0].channel,
                [*node.receives[node.rest[0].channel], node.rest[0].buffer],
            ),
            result=node.result,
        )
    if isinstance(node.rest[0], InstructionConsume):
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=node.sends,
            receives=node.receives,
            result=rules.take(
                i, node.rest[0].source, node.result, node.buffers[node.rest[0].buffer]
            ),
        )
    if isinstance(node.rest[0], InstructionStore):
        return Node(
            rest=rest,
            buffers=set_index(node.buffers, node.rest[0].buffer, rules.give(node.result)),
            sends=node.sends,
            receives=node.receives,
            result=node.result,
        )
    if isinstance(node.rest[0], InstructionWaitSends):
        if len(node.sends[node.rest[0].channel]) == 0:
            return Node(
                rest=rest,
                buffers=node.buffers,
                sends=node.sends,
                receives=node.receives,
                result=node.result,
            )
        return None
    if len(node.receives[node.rest[0].channel]) == 0:
        return Node(
            rest=rest,
            buffers=node.buffers,
            sends=node.sends,
            receives=node.receives,
            result=node.result,
        )
    return None


def node_leave(channel: int, node: Node, *, c: int) -> tuple[Any, Node] | None:
    """The message of the oldest posted send on a channel, and the device after it has left.

    Lean: `Attention.Spec.Node.leave`.
    """
    if not node.sends[channel]:
        return None
    return (
        node.buffers[node.sends[channel][0]],
        Node(
            rest=node.rest,
            buffers=node.buffers,
            sends=set_index(node.sends, channel, node.sends[channel][1:]),
            receives=node.receives,
            result=node.result,
        ),
    )


def node_arrive(channel: int, message: Any, node: Node, *, b: int, c: int) -> Node | None:
    """The device after a message has arrived from a channel; `none` without a posted receive.

    Lean: `Attention.Spec.Node.arrive`.
    """
    if not node.receives[channel]:
        return None
    return Node(
        rest=node.rest,
        buffers=set_index(node.buffers, node.receives[channel][0], message),
        sends=node.sends,
        receives=set_index(node.receives, channel, node.receives[channel][1:]),
        result=node.result,
    )


def ring_net_set_node(net: RingNet, i: int, node: Node, *, n: int) -> RingNet:
    """The ring with another device i.

    Lean: `Attention.Spec.RingNet.setNode`.
    """
    return RingNet(nodes=set_index(net.nodes, i, node), channels=net.channels)


def ring_net_set_channel(
    net: RingNet, i: int, channel: int, messages: list[Any], *, n: int, c: int
) -> RingNet:
    """The ring with other messages on a channel to device i.

    Lean: `Attention.Spec.RingNet.setChannel`.
    """
    return RingNet(
        nodes=net.nodes,
        channels=set_index(net.channels, i, set_index(net.channels[i], channel, messages)),
    )


def ring_net_after(
    rules: RingRules, net: RingNet, event: RingEvent, *, n: int, b: int, c: int
) -> RingNet | None:
    """The ring after an event; `none` where it cannot happen. A channel has room for `capacity`
    messages, and for one more for each posted receive; without room no message leaves.

    Lean: `Attention.Spec.RingNet.after`.
    """
    if isinstance(event, RingEventExecute):
        node = node_execute(rules, event.i, net.nodes[event.i], b=b, c=c)
        if node is None:
            return None
        return ring_net_set_node(net, event.i, node, n=n)
    if isinstance(event, RingEventLeave):
        messages = net.channels[event.i][event.channel]
        if len(messages) < rules.capacity + len(net.nodes[event.i].receives[event.channel]):
            found = node_leave(event.channel, net.nodes[rules.sender(event.channel, event.i)], c=c)
            if found is None:
                return None
            return ring_net_set_channel(
                ring_net_set_node(net, rules.sender(event.channel, event.i), found[1], n=n),
                event.i,
                event.channel,
                [*messages, found[0]],
                n=n,
                c=c,
            )
        return None
    messages = net.channels[event.i][event.channel]
    if not messages:
        return None
    node = node_arrive(event.channel, messages[0], net.nodes[event.i], b=b, c=c)
    if node is None:
        return None
    return ring_net_set_channel(
        ring_net_set_node(net, event.i, node, n=n), event.i, event.channel, messages[1:], n=n, c=c
    )


def ring_net_run(
    rules: RingRules, events: list[RingEvent], net: RingNet, *, n: int, b: int, c: int
) -> RingNet | None:
    """The ring after some events, one after the other; `none` if one cannot happen.

    Lean: `Attention.Spec.RingNet.run`.
    """
    if not events:
        return net
    next_ = ring_net_after(rules, net, events[0], n=n, b=b, c=c)
    if next_ is None:
        return None
    return ring_net_run(rules, events[1:], next_, n=n, b=b, c=c)


def ring_net_start(
    program: Callable[[int], list[Instruction]],
    buffers: Callable[[int], list[Any]],
    result: Callable[[int], Any],
    *,
    n: int,
    c: int,
) -> RingNet:
    """A ring before any event: the programs, the buffers of each device, and the result that it
    starts from.

    Lean: `Attention.Spec.RingNet.start`.
    """
    return RingNet(
        nodes=[
            Node(
                rest=program(i),
                buffers=buffers(i),
                sends=[[] for _ in range(c)],
                receives=[[] for _ in range(c)],
                result=result(i),
            )
            for i in range(n)
        ],
        channels=[[[] for _ in range(c)] for _ in range(n)],
    )


def before(i: int, *, n: int) -> int:
    """The device before this one; before the first it is the last.

    Lean: `Attention.Spec.before`.
    """
    return max(n - 1, 0) if i == 0 else max(i - 1, 0)


def following(i: int, *, n: int) -> int:
    """The device after this one; after the last it is the first.

    Lean: `Attention.Spec.following`.
    """
    return 0 if i + 1 == n else i + 1


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
            InstructionSend(0, slot(t)),
            InstructionReceive(0, slot(t + 1)),
            InstructionConsume(slot(t), source(i, t, n=n)),
            InstructionWaitSends(0),
            InstructionWaitReceives(0),
        ]
    return [InstructionConsume(slot(t), source(i, t, n=n))]


def ring_program(rounds: int, i: int, *, n: int) -> list[Instruction]:
    """The program of device `i`.

    Lean: `Attention.Spec.ringProgram`.
    """
    return [x for t in range(rounds) for x in round_program(rounds, i, t, n=n)]


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


def forward_rules(
    scale: Score,
    modify: ScoreMod,
    Q: list[list[Score]],
    rows: Callable[[int], list[int]],
    cols: Callable[[int], list[int]],
    capacity: int,
    *,
    n: int,
    d: int,
    d_v: int,
    num: Arithmetic,
) -> RingRules:
    """The rules of the forward pass: every device gets the keys of the one before it, and writes
    nothing into its buffers itself.

    Lean: `Attention.Spec.forwardRules`.
    """
    return RingRules(
        sender=lambda _x, i: before(i, n=n),
        take=lambda i, source, states, held: take_shard(
            scale, modify, Q, rows, cols, i, source, states, held, d=d, d_v=d_v, num=num
        ),
        give=lambda _x: [],
        capacity=capacity,
    )


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
    values, before any event; `spare` is in its other buffer.

    Lean: `Attention.Spec.ringStart`.
    """
    return ring_net_start(
        program,
        lambda i: [shard(K, V, cols(i)), spare(i)],
        lambda i: [empty(d=d_v, num=num) for _ in rows(i)],
        n=n,
        c=1,
    )


def ring_net_outputs(net: RingNet, *, d_v: int, num: Arithmetic) -> list[list[list[Value]]]:
    """The outputs of each device, in the order of its queries.

    Lean: `Attention.Spec.RingNet.outputs`.
    """
    return [[finish(s, d=d_v, num=num) for s in node.result] for node in net.nodes]
