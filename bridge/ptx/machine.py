"""One program of a kernel: all its threads execute an instruction at once, in numpy.

Where threads part, those at the least instruction go first, the others wait; `bar.sync` holds a
thread until all have come (PTX ISA, "bar, barrier"). That is one of the orders that the hardware
may choose. In another one a kernel could give other numbers only by a race, which `shared` finds in
this one; accesses of global memory by several programs are not compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from bridge.gluon.faults import Fault, Kind
from bridge.ptx import kinds
from bridge.ptx.kinds import BITS, UNSIGNED, Array
from bridge.ptx.memory import Buffers, Outside
from bridge.ptx.shared import Misuse, Shared
from bridge.ptx.syntax import (
    Address,
    Constant,
    Instruction,
    Kernel,
    Negated,
    Operand,
    Register,
    Special,
    Symbol,
    Vector,
)

WARP = 32


class NotSimulated(NotImplementedError):
    """An instruction that this machine does not know; the message has its line."""

    def __init__(self, instruction: Instruction) -> None:
        super().__init__(f"{instruction} is not simulated")


class Program:
    """A program's threads, registers and shared memory.

    parameters: the kernel's, as bits, by name; number: which of `programs`; shared_size: bytes.
    now: the instruction under way; active: which threads execute it.
    """

    def __init__(
        self,
        kernel: Kernel,
        memory: Buffers,
        parameters: Mapping[str, int],
        number: int,
        programs: int,
        shared_size: int,
    ) -> None:
        self.kernel, self.memory, self.parameters = kernel, memory, parameters
        self.number = number
        threads = kernel.threads
        self.lanes = np.arange(threads)
        self.shared = Shared(shared_size, threads)
        self.active = np.ones(threads, bool)
        self.now = kernel.instructions[0]
        self._registers: dict[str, Array] = {}
        # The threads in which a register has no number, by the register.
        self._without: dict[str, Array] = {}
        # In which threads the instruction under way has read such a register; None: in none.
        self._unknown: Array | None = None
        self._special = self._specials(number, programs)
        self._live = np.ones(threads, bool)
        self._waiting = np.zeros(threads, bool)
        self._next = np.zeros(threads, np.int64)

    def _specials(self, number: int, programs: int) -> dict[str, Array]:
        threads = self.kernel.threads
        x = {
            "%tid.x": self.lanes,
            "%laneid": self.lanes % WARP,
            "%warpid": self.lanes // WARP,
            "%ntid.x": np.full(threads, threads),
            "%ctaid.x": np.full(threads, number),
            "%nctaid.x": np.full(threads, programs),
        }
        of_one = {f"%{name}.{axis}": np.full(threads, int(name.startswith("n")))
                  for name in ("tid", "ntid", "ctaid", "nctaid") for axis in "yz"}  # fmt: skip
        return {name: value.astype(np.uint32) for name, value in (x | of_one).items()}

    # The next step.

    def step(self) -> bool:
        """Choose the next instruction and the threads that execute it, in `now` and `active`.
        False: all have ended. Raises Fault where a barrier is reached by a part of the threads."""
        if not self._live.any():
            return False
        running = self._live & ~self._waiting
        if not running.any():
            self._release()
            running = self._live
        at = self._next[running].min()
        here = running & (self._next == at)
        if at >= len(self.kernel.instructions):
            self._live &= ~here
            return self.step()
        self.now = self.kernel.instructions[at]
        self._next[here] += 1
        self.active, self._unknown = here, None
        if self.now.guard is not None:
            holds = self.bits(self.now.guard.register, "pred")
            self.demand_known("is guarded by a register that nobody wrote")
            self.active = here & (~holds if self.now.guard.negated else holds)
        return True

    def _release(self) -> None:
        if not self._waiting.all() or len(set(self._next.tolist())) > 1:
            place = int(np.argmax(self._waiting))
            self.now = self.kernel.instructions[self._next[place] - 1]
            count = int(self._waiting.sum())
            self.fault("barrier", f"is reached by {count} of {len(self.lanes)} threads alone")
        self._waiting[:] = False
        self.shared.barrier()

    def barrier(self) -> None:
        """The active threads wait for all others."""
        self._waiting |= self.active

    def jump(self, label: str) -> None:
        """The active threads go on at a label."""
        self._next[self.active] = self.kernel.labels[label]

    def end(self) -> None:
        """The active threads end."""
        self._live &= ~self.active

    def fault(self, kind: Kind, what: str, thread: int | None = None) -> NoReturn:
        """Raise the Fault that the instruction under way is; `thread` does it."""
        who = "" if thread is None else f", thread {thread}"
        raise Fault(kind, f"{self.kernel.name}, program {self.number}{who}: {self.now}: {what}")

    def whole_warps(self) -> None:
        """Raise the Fault of an instruction that all threads of a warp must execute, unless they
        do (`.sync.aligned`)."""
        warps = self.active.reshape(-1, WARP)
        if (warps.any(1) != warps.all(1)).any():
            self.fault("part of a warp", "is executed by a part of a warp's threads")

    # Registers. A thread may compute with a register that it never wrote, as compilers let it where
    # the result goes nowhere: the result is unknown too. In an address, a guard or a store it is a
    # fault.

    def bits(self, operand: Operand, kind: str) -> Array:
        """The operand's bits as unsigned integers of the kind's size (of "pred" truth values), of
        each thread; those of threads that are not active mean nothing."""
        width = 1 if kind == "pred" else BITS[kind]
        match operand:
            case Register(name):
                found = self._read(name)
            case Negated(register):
                return ~self.bits(register, kind)
            case Constant(bits):
                if kind == "pred":
                    return np.full(len(self.lanes), bool(bits))
                return np.full(len(self.lanes), bits & ((1 << width) - 1), UNSIGNED[width])
            case Special(name) if name in self._special:
                found = self._special[name]
            case Symbol(name) if name == self.kernel.array:
                found = np.zeros(len(self.lanes), np.uint32)
            case _:
                raise NotSimulated(self.now)
        if (found.dtype == bool) != (kind == "pred"):
            raise NotSimulated(self.now)
        return found if kind == "pred" else found.astype(UNSIGNED[width], copy=False)

    def _read(self, name: str) -> Array:
        found = self._registers.get(name)
        if found is None:
            width = self.kernel.width(name)
            found = np.zeros(len(self.lanes), bool if width == 1 else UNSIGNED[width])
        without = self.without(Register(name))
        if without is not None:
            self._unknown = without if self._unknown is None else self._unknown | without
        return found

    def without(self, operand: Operand) -> Array | None:
        """The threads in which the operand is a register without a number; None: there are none."""
        if not isinstance(operand, Register):
            return None
        if operand.name not in self._registers:
            return np.ones(len(self.lanes), bool)
        return self._without.get(operand.name)

    def result_unknown(self, threads: Array | None) -> None:
        """The results under way are unknown in these threads, and in no other."""
        self._unknown = threads

    def demand_known(self, what: str) -> None:
        """Raise Fault if an active thread has read a register without a number; `what`: the
        predicate of the fault's sentence."""
        if self._unknown is not None and (self.active & self._unknown).any():
            self.fault("never written", what, int(np.argmax(self.active & self._unknown)))

    def numbers(self, operand: Operand, kind: str) -> Array:
        """The operand as numbers of this kind; bfloat16 in float32."""
        return kinds.numbers(self.bits(operand, kind), kind)

    def put(self, operand: Operand, bits: Array, *, signed: bool = False) -> None:
        """Give the active threads' register these bits; a wider one has zeros or, `signed`, the
        sign above them."""
        if not isinstance(operand, Register):
            raise NotSimulated(self.now)
        name = operand.name
        if name == "_":
            return
        width = self.kernel.width(name)
        if width == 1 and bits.dtype == bool:
            wanted = bits
        elif width == 1 or bits.dtype == bool:
            raise NotSimulated(self.now)
        else:
            if signed:
                bits = bits.view(f"i{bits.dtype.itemsize}")
            wanted = bits.astype(UNSIGNED[width], copy=False)
        old, unknown = self._registers.get(name), self._unknown
        if unknown is None and self.active.all():
            self._registers[name] = wanted
            self._without.pop(name, None)
            return
        before = self.without(operand)
        self._registers[name] = wanted if old is None else np.where(self.active, wanted, old)
        none = np.zeros(len(self.lanes), bool)
        without = np.where(
            self.active, none if unknown is None else unknown, none if before is None else before
        )
        if without.any():
            self._without[name] = without
        else:
            self._without.pop(name, None)

    def put_numbers(self, operand: Operand, values: Array, kind: str) -> None:
        """Put numbers, rounded to this kind, as `put` does bits."""
        self.put(operand, kinds.bits_of(values, kind), signed=kind[0] == "s")

    # Memory.

    def addresses(self, operand: Operand, size: int) -> Array:
        """The addresses of the active threads. Raises Fault where one is not a multiple of the
        access's size, as all must be (PTX ISA, "Operands", "Addresses as Operands")."""
        if not isinstance(operand, Address):
            raise NotSimulated(self.now)
        found = self.bits(operand.base, "u64").view(np.int64)[self.active] + operand.offset
        self.demand_known("has an address that nobody wrote")
        wrong = found % size != 0
        if wrong.any():
            self.fault("not aligned", f"has an address that {size} does not divide",
                       self._thread(int(np.argmax(wrong))))  # fmt: skip
        return found

    def _thread(self, position: int) -> int:
        return int(self.lanes[self.active][position])

    def load(self, space: str, addresses: Array, size: int) -> Array:
        """`[active, size]` bytes of "global" or "shared" memory."""
        try:
            if space == "shared":
                return self.shared.read(self.lanes[self.active], addresses, size)
            return self.memory.read(addresses, size)
        except Misuse as error:
            self.fault(error.kind, error.what, self._thread(error.position))
        except Outside as error:
            self._outside("reads", addresses, size, error.position)

    def store(self, space: str, addresses: Array, data: Array, *, copied: bool = False) -> None:
        """Put `[active, size]` bytes. copied: by `cp.async`."""
        self.demand_known("stores a value that was never written")
        threads = self.lanes[self.active]
        try:
            if copied:
                self.shared.copy(threads, addresses, data)
            elif space == "shared":
                self.shared.write(threads, addresses, data)
            else:
                self.memory.write(addresses, data)
        except Misuse as error:
            self.fault(error.kind, error.what, self._thread(error.position))
        except Outside as error:
            self._outside("writes", addresses, data.shape[1], error.position)

    def _outside(self, does: str, addresses: Array, size: int, position: int) -> NoReturn:
        where = f"{does} {size} bytes at {int(addresses[position]):#x}, outside of every tensor"
        self.fault("outside its tensor", where, self._thread(position))

    def each(self, rows: Array) -> Array:
        """The active threads' rows among those of all; the others' are 0."""
        whole = np.zeros((len(self.lanes), *rows.shape[1:]), rows.dtype)
        whole[self.active] = rows
        return whole


def parts(operand: Operand) -> tuple[Operand, ...]:
    """The operands of a vector; an operand alone is one of one."""
    return operand.parts if isinstance(operand, Vector) else (operand,)
