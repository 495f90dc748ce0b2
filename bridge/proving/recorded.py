"""A launcher's steps, as data: recorded in its process (`recording`), sent from there (`worker`),
and checked by these types before they are used (`foreign`)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import torch
from msgspec import Meta, Struct

from bridge.conformance.inside.frames import LONGEST_TEXT
from bridge.conformance.sandbox.wire import CONTROL, WireError, printable

_DTYPES = {
    str(dtype).removeprefix("torch."): dtype
    for dtype in (
        torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
        torch.int16, torch.int8, torch.uint8, torch.bool,
    )
}  # fmt: skip
Size = Annotated[int, Meta(ge=0, le=1 << 40)]
Sizes = Annotated[tuple[Size, ...], Meta(max_length=16)]
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Name = Annotated[str, Meta(max_length=LONGEST_TEXT, pattern=f"^[^{CONTROL}]*$")]
Origin = Literal["given", "empty", "constant", "integers", "computed"]
Operation = Literal["copy", "fill", "add", "subtract", "multiply", "divide", "negate", "sum"]
MOST_STEPS = 1000


class Storage(Struct, frozen=True):
    """The contents of a storage, of a dtype that is known or as bytes.

    origin: "given", "empty" (or computed by a step that is recorded), "constant", "integers" or
    "computed" (by a step that is not recorded); detail: the name of the tensor that was given, the
    constant, the integers, or the operation of PyTorch.
    """

    dtype: torch.dtype
    size: Size
    origin: Origin
    detail: Name | float | Annotated[tuple[Integer, ...], Meta(max_length=1 << 16)] | None = None

    def __post_init__(self) -> None:
        kinds = {"empty": object, "constant": float, "integers": tuple}
        if not isinstance(self.detail, kinds.get(self.origin, str)):
            raise ValueError(f"a storage that is {self.origin}, and not by what")
        if isinstance(self.detail, tuple) and len(self.detail) != self.size:
            raise ValueError(f"{len(self.detail)} integers for a storage of {self.size}")


class View(Struct, frozen=True):
    """A tensor: the number of its storage, and where in it its elements lie; padding: of a
    descriptor that the launcher made, whose sizes and strides are its own."""

    storage: Size
    dtype: torch.dtype
    offset: Size
    sizes: Sizes
    strides: Sizes
    padding: Literal["zero", "nan"] | None = None

    def __post_init__(self) -> None:
        if len(self.sizes) != len(self.strides):
            raise ValueError(f"{len(self.strides)} strides for {len(self.sizes)} sizes")

    @property
    def last(self) -> int:
        """The place of its last element; −1: it has none."""
        if 0 in self.sizes:
            return -1
        at = zip(self.sizes, self.strides, strict=True)
        return self.offset + sum((size - 1) * stride for size, stride in at)


class Launched(Struct, frozen=True, tag="launch", tag_field="step"):
    """One launch: a kernel's TTIR, its arguments at run time in order, and its grid.

    configuration: of an autotuned kernel, which of how many was taken.
    """

    kernel: Name
    text: Annotated[str, Meta(max_length=1 << 22)]
    arguments: Annotated[
        tuple[tuple[Name, View | Integer | float | bool], ...], Meta(max_length=1000)
    ]
    grid: Annotated[tuple[Annotated[int, Meta(ge=0, le=1 << 31)], ...], Meta(max_length=3)]
    configuration: tuple[int, int] | None

    def __post_init__(self) -> None:
        if self.configuration and not 0 <= self.configuration[0] < self.configuration[1]:
            raise ValueError("a configuration that is none of those that there are")

    @property
    def views(self) -> list[View]:
        return [given for _, given in self.arguments if isinstance(given, View)]


class Computed(Struct, frozen=True, tag="computed", tag_field="step"):
    """A step of PyTorch's between launches.

    operands: tensors, or numbers; dims: of a sum, those that it is over, which the result has with
    length 1.
    """

    operation: Operation
    to: View
    operands: tuple[View | float, ...]
    dims: Annotated[tuple[Annotated[int, Meta(ge=0, le=15)], ...], Meta(max_length=16)] = ()

    def __post_init__(self) -> None:
        wanted = 1 if self.operation in ("copy", "fill", "negate", "sum") else 2
        if len(self.operands) != wanted:
            raise ValueError(f"{self.operation} of {len(self.operands)} operands")

    @property
    def views(self) -> list[View]:
        return [self.to, *(x for x in self.operands if isinstance(x, View))]


Step = Launched | Computed


class Recorded(Struct, frozen=True):
    """A launcher's steps. outputs: its output and, if it returned one, its log-sum-exp, which are
    there after `forward_steps` steps; gradients: those by query, key and value after all."""

    steps: Annotated[tuple[Step, ...], Meta(max_length=MOST_STEPS)]
    storages: Annotated[tuple[Storage, ...], Meta(max_length=100_000)]
    outputs: Annotated[tuple[View, ...], Meta(min_length=1, max_length=2)]
    forward_steps: int = 0
    gradients: tuple[View, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.forward_steps <= len(self.steps):
            raise ValueError(f"{self.forward_steps} steps of the forward pass")
        if len(self.gradients) not in (0, 3):
            raise ValueError(f"{len(self.gradients)} gradients")
        of_steps = [view for step in self.steps for view in step.views]
        for view in (*self.outputs, *self.gradients, *of_steps):
            if view.storage >= len(self.storages):
                raise ValueError(f"a tensor of storage {view.storage}, of which there are less")
            if view.last >= self.storages[view.storage].size:
                raise ValueError("a tensor that is larger than its storage")

    @property
    def launches(self) -> tuple[Launched, ...]:
        return tuple(step for step in self.steps if isinstance(step, Launched))

    def last_store(self, output: str) -> Launched | None:
        """The last launch that can have stored to an output, or a gradient, of the names of
        `Compared`; None: PyTorch did."""
        outputs = dict(zip(("output", "log-sum-exp"), self.outputs, strict=False))
        gradients = dict(zip(("dQ", "dK", "dV"), self.gradients, strict=False))
        storage = (outputs | gradients)[output].storage
        steps = self.steps[: self.forward_steps] if output in outputs else self.steps
        found = [
            step
            for step in steps
            if isinstance(step, Launched) and any(view.storage == storage for view in step.views)
        ]
        return found[-1] if found else None


def encode(part: Struct) -> dict[str, Any]:
    """A part as values of JSON; a dtype that no kernel here has as that of bytes."""

    def name(dtype: torch.dtype) -> str:
        found = str(dtype).removeprefix("torch.")
        return found if found in _DTYPES else "uint8"

    found: dict[str, Any] = msgspec.to_builtins(part, enc_hook=name)
    return found


def decode(data: dict[str, Any]) -> Recorded:
    """The recording in a message. Raises WireError for a message that is no recording."""

    def dtype(_: type, name: Any) -> torch.dtype:
        if name not in _DTYPES:
            raise ValueError(f"a dtype that is none of {', '.join(_DTYPES)}")
        return _DTYPES[name]

    try:
        return msgspec.convert(data, Recorded, dec_hook=dtype)
    except msgspec.ValidationError as error:
        raise WireError(printable(str(error))[:300]) from None
