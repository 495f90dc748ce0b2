"""Products of matrices that run beside the warp group that began them.

A product reads its operands in shared memory when it ends, at some point between its beginning and
the wait that is sure of its end. Its accumulator is no value before that wait gives it back; and an
operand in registers must be given to the same wait, or the compiler may use its registers for
something else while the product runs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bridge.gluon.faults import Fault, line
from bridge.gluon.program import here, partition
from bridge.gluon.rounded import FLOAT32
from bridge.gluon.shared import Access, Shared
from bridge.gluon.tiles import Tile, full
from bridge.ttir.domain import Numbers


class Product(Tile):
    """The accumulator of a product that may still run: a tile without numbers."""

    def __init__(self, a: Shared | Tile, b: Shared, acc: Any, shape: list[int]) -> None:
        self.dtype, self._shape = FLOAT32, shape
        self.who = f"a product that {partition().name} began at {line()}"
        self.result: Numbers = None
        self.is_awaited = False
        self.registers = a if isinstance(a, Tile) else None
        self._a, self._b, self._acc = a, b, acc
        clock = partition().clock
        self._reads: list[Access] = [
            x.begin(False, clock, self.who) for x in (a, b) if isinstance(x, Shared)
        ]

    def step(self) -> bool:
        """It reads its operands, and ends."""
        a = self._a.read() if isinstance(self._a, Shared) else self._a.numbers
        acc = self._acc.result if isinstance(self._acc, Product) else self._acc
        self.result = here().domain.dot(a, self._b.read(), acc)
        return True

    def note_wait(self, deps: Sequence[Any]) -> None:
        """A wait with these dependencies is sure of its end."""
        if self.registers is not None and not any(x is self.registers for x in deps):
            raise Fault(
                "operand not kept",
                f"{line()} waits for {self.who}, but not with the operand that it has in registers",
            )
        self.is_awaited = True
        for access in self._reads:
            access.end = partition().clock.now(partition())

    @property
    def shape(self) -> list[int]:
        return self._shape

    @property
    def numbers(self) -> Numbers:
        raise Fault(
            "read in flight",
            f"{line()} reads the accumulator of {self.who}, which no wait gave back as a value",
        )


def warpgroup_mma(
    a: Shared | Tile,
    b: Shared,
    acc: Tile | Product,
    *,
    use_acc: Any = True,
    precision: Any = None,
    max_num_imprecise_acc: Any = None,
    is_async: bool = False,
) -> Any:
    """Begin a @ b + acc, or without `use_acc` a @ b; the value itself, unless `is_async`."""
    shape = [a.shape[0], b.shape[1]]
    if a.shape[1] != b.shape[0] or list(acc.shape) != shape:
        raise Fault("shape", f"{line()} multiplies {a.shape} with {b.shape} into {acc.shape}")
    if a.dtype is not b.dtype:
        raise Fault("shape", f"{line()} multiplies {a.dtype.name} with {b.dtype.name}")
    base: Any = acc if isinstance(acc, Product) else acc.numbers
    if not use_acc:
        base = full(shape, 0, FLOAT32).numbers
    product = Product(a, b, base, shape)
    who = partition()
    who.products.append(product)
    who.begun.append(product)
    here().scheduler.point(who)
    if is_async:
        return product
    found = warpgroup_mma_wait(0, [product, *(x.registers for x in who.begun if x.registers)])
    return found[0] if isinstance(found, tuple) else found


def warpgroup_mma_wait(num_outstanding: int = 0, deps: Sequence[Any] = ()) -> Any:
    """Wait until no more than `num_outstanding` of this warp group's products run. Of `deps` those
    that it is sure of become values; the others stay as they are."""
    who, most = partition(), int(num_outstanding)
    here().scheduler.point(who, lambda: len(who.products) <= most, lambda: "its products")
    who.clock.advance(who)
    sure = who.begun[: max(0, len(who.begun) - most)]
    for product in sure:
        product.note_wait(deps)
    del who.begun[: len(sure)]
    found = tuple(
        Tile(x.dtype, x.result) if isinstance(x, Product) and x.is_awaited else x for x in deps
    )
    return found[0] if len(found) == 1 else found
