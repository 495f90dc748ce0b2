"""Somebody else's kernel, as `bridge prove` takes it: recorded launches, run and compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import torch

from bridge.proving import replay
from bridge.proving.foreign import Foreign
from bridge.proving.recorded import Recorded
from bridge.proving.worker import Request
from bridge.spec.masks import Alignment
from bridge.ttir.compare import SCALE, Compared, Level, Place, Shape

_CAUSAL = (None, 0)
# Lengths of queries and keys; those that the launcher refuses are left out.
_RANDOM = (
    (1, 1), (3, 3), (1, 17), (20, 20), (17, 33), (64, 64), (100, 100), (128, 128), (200, 300),
    (256, 256), (1024, 1024),
)  # fmt: skip
_RANDOM_BACKWARD = ((1, 1), (3, 3), (20, 20), (17, 33), (64, 64), (200, 200))
_FORMAL_BACKWARD = ((1, 1), (3, 3), (5, 8), (16, 16), (32, 32))
_NO_BOUND = (
    "The probability is that of an output; how likely a wrong gradient is missed has no bound here"
)
_FORMAL = ((1, 1), (3, 3), (1, 17), (5, 20), (16, 16), (32, 32), (64, 64), (128, 128))
# Lengths of several tiles, whatever the tiles' sizes.
_WHOLE = ((1, 1), (5, 20), (17, 100), (64, 64), (20, 300), (200, 200))
_WHOLE_BACKWARD = ((1, 1), (5, 8), (20, 20), (48, 48))


@dataclass
class Kernel:
    """A kernel in a process of its own. See `procedure.Subject`.

    minus_infinity: literals of the kernel's text that stand for −∞; masked_loads: the number that a
    masked load gives where the kernel does not say; alignment: of causal masks;
    layout: "bhnd" or "bnhd"; backward: whether gradients are compared too, on fewer shapes.
    """

    name: str
    process: Foreign
    dtype: str = "float16"
    layout: str = "bhnd"
    arch: int = 90
    configuration: int = 0
    alignment: Alignment = Alignment.TOP_LEFT
    minus_infinity: Sequence[float] = ()
    masked_loads: float | None = None
    backward: bool = False
    notes: list[str] = field(default_factory=list)
    _recorded: dict[Shape, Recorded] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.notes += [f"Declared: {x:g} stands for −∞" for x in self.minus_infinity]
        if self.masked_loads is not None:
            self.notes.append(
                f"Declared: a masked load gives {self.masked_loads:g} where the kernel does not say"
            )
        if self.backward:
            self.notes.append(_NO_BOUND)

    def shapes(self, level: Level) -> tuple[Shape, ...]:
        dtype = getattr(torch, self.dtype)
        windows = [(None, None), _CAUSAL] if self.process.takes["causal"] else [(None, None)]
        if level != "fields":
            forward, backward = {
                "formal": (_FORMAL, _FORMAL_BACKWARD), "rational": (_WHOLE, _WHOLE_BACKWARD)
            }[level]  # fmt: skip
            return tuple(
                Shape(q_len=m, kv_len=n, head_dim=16, value_dim=16, window=w,
                      alignment=self.alignment, dtype=dtype)
                for m, n in (backward if self.backward else forward) for w in windows
            )  # fmt: skip
        base = Shape(
            heads=2, kv_heads=2, head_dim=64, value_dim=64, dtype=dtype, alignment=self.alignment
        )
        found = [
            replace(base, q_len=m, kv_len=n, window=w, batch=2 if m < 256 else 1)
            for m, n in (_RANDOM_BACKWARD if self.backward else _RANDOM) for w in windows
        ]  # fmt: skip
        grouped = [
            replace(base, heads=4, q_len=length, kv_len=length, window=w)
            for length in (64 if self.backward else 128,)
            for w in windows
        ]
        wide = replace(
            base, heads=1, kv_heads=1, q_len=256, kv_len=256, head_dim=128, value_dim=128
        )
        return (*found, *grouped) if self.backward else (*found, *grouped, wide)

    def compare(
        self, shape: Shape, level: Level, seed: int = 0, only: Place | None = None
    ) -> Compared:
        takes_scale = self.process.takes["scale"]
        return replay.compare_launches(
            self._record(shape), shape, level, seed,
            scale=SCALE if takes_scale else shape.head_dim**-0.5, layout=self.layout,
            minus_infinity=self.minus_infinity, masked_loads=self.masked_loads,
            found=Compared(only=only),
        )  # fmt: skip

    def program(self, shape: Shape, number: int, output: str) -> tuple[int, ...]:
        launched = self._record(shape).last_store(output)
        return (number,) if launched is None else replay.place_of(launched, number)

    def _record(self, shape: Shape) -> Recorded:
        if shape not in self._recorded:
            request = Request(
                shape.batch, shape.heads, shape.kv_heads, shape.q_len, shape.kv_len,
                shape.head_dim, shape.value_dim, shape.window == _CAUSAL, SCALE, self.dtype,
                self.layout, self.arch, self.configuration, self.backward,
            )  # fmt: skip
            self._recorded[shape] = self.process.record(request)
            self._note(self._recorded[shape])
        return self._recorded[shape]

    def _note(self, recorded: Recorded) -> None:
        for launch in recorded.launches:
            if launch.configuration is not None and launch.configuration[1] > 1:
                which, of = launch.configuration
                note = f"{launch.kernel} is autotuned: configuration {which} of {of} was taken"
                if note not in self.notes:
                    self.notes.append(note)
        if len(recorded.outputs) == 1:
            note = "The output alone is compared; the launcher returns no log-sum-exp"
            if note not in self.notes:
                self.notes.append(note)
