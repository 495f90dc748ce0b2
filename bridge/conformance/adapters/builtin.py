"""The built-in adapters, by name; those of other packages are in `libraries`."""

from __future__ import annotations

from collections.abc import Callable

from bridge.conformance.adapters import emulated
from bridge.conformance.adapters.adapter import Builtin, BuiltinAdapter
from bridge.conformance.adapters.own import (
    PyimplReference,
    PyimplState,
    PyimplTiled,
    PyimplTriton,
)
from bridge.conformance.adapters.sdpa import SdpaFlash, SdpaMath
from bridge.conformance.batch import Batch, Outputs
from bridge.conformance.rounding_model import Denominator, RoundingModel


class FlashEmulated(Builtin):
    """A flash kernel's rounding, step by step: `bridge.conformance.adapters.emulated`."""

    name = "flash-emulated"
    dtypes: tuple[str, ...] = ("float32", "float16", "bfloat16")

    def __init__(self, block_n: int = 16, denominator: Denominator = "unrounded") -> None:
        self.block_n, self.denominator = block_n, denominator

    def rounding(self, dtype: str, device: str) -> RoundingModel:
        return RoundingModel.flash(dtype, block_n=self.block_n, denominator=self.denominator)

    def run(self, batch: Batch) -> Outputs:
        out, lse = emulated.flash(
            batch.query,
            batch.key,
            batch.value,
            mask=None if batch.is_causal else batch.boolean,
            is_causal=batch.is_causal,
            scale=batch.scale,
            block_n=self.block_n,
            denominator_rounded=self.denominator == "rounded",
        )
        return Outputs(out, lse)


BUILTIN: dict[str, Callable[[], BuiltinAdapter]] = {
    "pyimpl-reference": PyimplReference,
    "pyimpl-state": PyimplState,
    "pyimpl-tiled": PyimplTiled,
    "pyimpl-triton": PyimplTriton,
    "sdpa-math": SdpaMath,
    "sdpa-math-reduced": lambda: SdpaMath(reduced=True),
    "sdpa-flash": SdpaFlash,
    "flash-emulated": FlashEmulated,
}


def builtin(name: str) -> BuiltinAdapter:
    """The built-in adapter of that name. Raises KeyError with the known names."""
    if name not in BUILTIN:
        raise KeyError(f"no adapter {name!r}; there are {', '.join(sorted(BUILTIN))}")
    return BUILTIN[name]()
