"""Instructions that move bits: registers, parameters, global and shared memory, threads of a warp
(PTX ISA, "Data Movement and Conversion Instructions"), and additions in global memory ("atom",
"red")."""

from __future__ import annotations

import numpy as np

from bridge.ptx.kinds import BITS, UNSIGNED
from bridge.ptx.machine import WARP, NotSimulated, Program, parts
from bridge.ptx.operations import Run
from bridge.ptx.syntax import Address, Constant, Instruction, Pair, Symbol, Vector

_LANE_MASK = 31
# The kinds that can be added in memory.
_ADDED = frozenset(("u32", "s32", "u64", "f16", "f32", "f64"))
# A load's modifiers for caches and order, which change nothing of one program's numbers.
_HINTS = frozenset(("nc", "relaxed", "gpu", "cta", "sys", "L1", "L2", "evict_first", "evict_last"))


def move(program: Program, instruction: Instruction) -> None:
    """mov, of one register or between one and several narrower ones."""
    result, given = instruction.operands
    kind = instruction.kind
    if isinstance(result, Vector):
        width = BITS[kind] // len(result.parts)
        whole = program.bits(given, kind)
        for i, part in enumerate(result.parts):
            shifted = whole >> whole.dtype.type(i * width)
            program.put(part, shifted.astype(UNSIGNED[width]))
    elif isinstance(given, Vector):
        width = BITS[kind] // len(given.parts)
        unsigned = UNSIGNED[BITS[kind]]
        found = np.zeros(len(program.lanes), unsigned)
        for i, part in enumerate(given.parts):
            found |= program.bits(part, f"b{width}").astype(unsigned) << unsigned(i * width)
        program.put(result, found)
    else:
        program.put(result, program.bits(given, kind))


def convert_address(program: Program, instruction: Instruction) -> None:
    """cvta: generic addresses are those of global memory here."""
    if "shared" in instruction.modifiers:
        raise NotSimulated(instruction)
    move(program, instruction)


def _shape(instruction: Instruction) -> tuple[str, int, int]:
    """The memory of a load or a store, how many numbers it moves, and their size in bytes."""
    space, *rest = [x for x in instruction.modifiers if x not in _HINTS]
    count = 1
    if len(rest) == 2 and rest[0] in ("v2", "v4"):
        count = int(rest.pop(0)[1:])
    if space not in ("global", "shared") or len(rest) != 1 or rest[0] not in BITS:
        raise NotSimulated(instruction)
    return space, count, BITS[rest[0]] // 8


def load(program: Program, instruction: Instruction) -> None:
    """ld of a parameter, or of one, two or four numbers."""
    result, place = instruction.operands
    if instruction.modifiers[0] == "param":
        if not isinstance(place, Address) or not isinstance(place.base, Symbol) or place.offset:
            raise NotSimulated(instruction)
        bits = BITS[instruction.kind]
        given = program.parameters[place.base.name] & ((1 << bits) - 1)
        parameter = np.full(len(program.lanes), given, UNSIGNED[bits])
        program.put(result, parameter, signed=instruction.kind[0] == "s")
        return
    space, count, size = _shape(instruction)
    data = program.load(space, program.addresses(place, count * size), count * size)
    signed = instruction.kind[0] == "s"
    for i, part in enumerate(parts(result)):
        piece = np.ascontiguousarray(data[:, i * size : (i + 1) * size])
        bits_of_each = program.each(piece.view(UNSIGNED[8 * size])[:, 0])
        program.put(part, bits_of_each, signed=signed)


def store(program: Program, instruction: Instruction) -> None:
    """st of one, two or four numbers."""
    place, given = instruction.operands
    space, count, size = _shape(instruction)
    addresses = program.addresses(place, count * size)
    columns = [
        program.bits(part, f"b{8 * size}")[program.active][:, None].view(np.uint8)
        for part in parts(given)
    ]
    program.store(space, addresses, np.concatenate(columns, axis=1))


def copy_asynchronously(program: Program, instruction: Instruction) -> None:
    """cp.async: bytes from global to shared memory; of those behind the given size zeros, which are
    not read."""
    _, *rest = instruction.modifiers
    threads = program.lanes[program.active]
    if rest == ["commit_group"]:
        program.shared.commit(threads)
        return
    if rest == ["wait_group"] or rest == ["wait_all"]:
        pending = instruction.operands[0] if rest == ["wait_group"] else Constant(0)
        if not isinstance(pending, Constant):
            raise NotSimulated(instruction)
        if rest == ["wait_all"]:
            program.shared.commit(threads)
        program.shared.wait(threads, pending.bits)
        return
    to, source, size, *given = instruction.operands
    if not {"shared", "global"} <= set(rest) or not isinstance(size, Constant):
        raise NotSimulated(instruction)
    count = size.bits
    data = np.zeros((len(threads), count), np.uint8)
    sizes = np.full(len(threads), count)
    if given:
        sizes = program.bits(given[0], "u32")[program.active].astype(np.int64)
    places = program.addresses(to, count)
    everywhere = program.active
    for wanted in sorted(set(sizes.tolist()) - {0}):
        these = sizes == wanted
        program.active = program.each(these)
        read = program.load("global", program.addresses(source, wanted), wanted)
        data[these, :wanted] = read
        program.active = everywhere
    program.store("shared", places, data, copied=True)


def shuffle(program: Program, instruction: Instruction) -> None:
    """shfl.sync: each thread's number from another of its warp."""
    result, given, which, limits, _ = instruction.operands
    _, mode, kind = instruction.modifiers
    lane = program.lanes % WARP
    by = program.bits(which, "u32").astype(np.int64) & _LANE_MASK
    limit = program.bits(limits, "u32").astype(np.int64)
    clamp, segment = limit & _LANE_MASK, (limit >> 8) & _LANE_MASK
    last = (lane & segment) | (clamp & ~segment)
    if mode == "bfly":
        source = lane ^ by
    elif mode == "idx":
        source = (lane & segment) | (by & ~segment)
    elif mode == "down":
        source = lane + by
    elif mode == "up":
        source = lane - by
    else:
        raise NotSimulated(instruction)
    inside = source >= last if mode == "up" else source <= last
    threads = program.lanes - lane + np.where(inside, source, lane)
    asleep = program.active & ~program.active[threads]
    if asleep.any():
        what = "takes a number from a thread that does not take part"
        program.fault("part of a warp", what, int(np.argmax(asleep)))
    found = program.bits(given, kind)[threads]
    without = program.without(given)
    program.result_unknown(None if without is None else without[threads])
    if isinstance(result, Pair):
        program.put(result.second, inside)
        result = result.first
    program.put(result, found)


def add_in_memory(program: Program, instruction: Instruction) -> None:
    """red and atom with `add` in global memory, by one thread after another."""
    *result, place, given = instruction.operands
    kind = instruction.kind
    if not {"global", "add"} <= set(instruction.modifiers) or kind not in _ADDED:
        raise NotSimulated(instruction)
    size = BITS[kind] // 8
    addresses, values = program.addresses(place, size), program.numbers(given, kind)
    before = np.zeros((len(addresses), size), np.uint8)
    everywhere = program.active
    for i, thread in enumerate(program.lanes[everywhere]):
        program.active = program.lanes == thread
        at = addresses[i : i + 1]
        before[i] = program.load("global", at, size)[0]
        total = before[i].view(values.dtype) + values[thread : thread + 1]
        program.store("global", at, total.astype(values.dtype).view(np.uint8)[None])
    program.active = everywhere
    if result:
        program.put(result[0], program.each(before.view(UNSIGNED[8 * size])[:, 0]))


MOVES: dict[str, Run] = {
    "mov": move,
    "cvta": convert_address,
    "ld": load,
    "st": store,
    "cp": copy_asynchronously,
    "shfl": shuffle,
    "red": add_in_memory,
    "atom": add_in_memory,
}
