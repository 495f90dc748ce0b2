"""The kernels' texts that `Attention.Kernel` is about, and their Lean.

A kernel has one text for each of its specialisations. Of these many are one in Lean: dtypes differ
in conversions only, which do nothing without rounding, and tile sizes are variables. `Text` is such
a class of texts: its Lean is written from one launch, and every other launch of the class must come
to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch
import triton

from bridge.templates import template
from bridge.ttir.lean import Translation, numeric, translate
from bridge.ttir.parse import parse
from bridge.ttir.source import of_launch
from bridge.ttir.syntax import Function
from pyimpl._scores import ScoreOptions
from pyimpl.kernels import forward
from pyimpl.kernels._launch import DTYPES, Launch

FOLDER = "Attention/Kernel/Generated"
# The versions of Triton of which each text is known to come to the committed Lean.
COMPARED = ("3.6", "3.7")
ARCHITECTURES = (80, 90, 100)
_SIZES = ("BLOCK_M", "BLOCK_N", "BLOCK_D")


@dataclass(frozen=True)
class Text:
    """The forward kernel with a window of these bounds, None for none, of a head size that fills
    its tile. name: of the Lean module and with which its names begin; what: in words."""

    name: str
    what: str
    left: int | None
    right: int | None

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.lean"

    def launch(
        self,
        dtype: torch.dtype = torch.float32,
        head_dim: int = 128,
        arch: int = 90,
        blocks: tuple[int | None, int | None] = (None, None),
    ) -> Launch:
        """A launch on tensors without memory; blocks as the launcher chooses them, if None."""
        query = torch.empty((2, 8, 1000, head_dim), dtype=dtype, device="meta")
        key = torch.empty((2, 2, 1024, head_dim), dtype=dtype, device="meta")
        lse = torch.empty((2, 8, 1000), device="meta")
        options = ScoreOptions(0.125, left=self.left, right=self.right)
        return forward.launch(
            query, key, key, query, lse, options,
            capability=arch, block_m=blocks[0], block_n=blocks[1],
        )  # fmt: skip


TEXTS = (
    Text("Full", "without a window", None, None),
    Text("Causal", "with a right edge", None, 0),
    Text("Window", "with a window", 100, 0),
)


def kernel_of(launch: Launch, arch: int = 90) -> Function:
    """The kernel's TTIR as it is launched."""
    return parse(of_launch(launch, arch).text).kernel


def sizes_of(launch: Launch) -> dict[str, int]:
    """The tile sizes by name; of BLOCK_V, which is BLOCK_D here, the text knows nothing."""
    return {name: int(launch.constants[name] or 0) for name in _SIZES}


def translation(text: Text) -> Translation:
    """The text in Lean, of a launch whose tile sizes differ."""
    launch = text.launch(blocks=(32, 64))
    return translate(kernel_of(launch), text.name, sizes_of(launch))


def lean(text: Text) -> str:
    """The Lean module."""
    found = translation(text)
    return template("bridge.ttir", "generated.lean.jinja").render(
        name=text.name,
        what=text.what,
        fields=found.fields,
        pointers=found.pointers,
        definitions="\n".join(found.definitions),
    )


def launches(text: Text, archs: tuple[int, ...] = (90,)) -> Iterator[tuple[str, Launch, int]]:
    """Launches of the class with the tiles that the launcher chooses: dtypes, head sizes and
    compute capabilities, each in words."""
    for arch in archs:
        for dtype in DTYPES:
            for head_dim in (16, 32, 64, 128, 256):
                name = f"{text.name}, {str(dtype).removeprefix('torch.')}, head size {head_dim}"
                yield f"{name}, sm_{arch}", text.launch(dtype, head_dim, arch), arch


def differing_launches(text: Text, archs: tuple[int, ...] = (90,)) -> list[str]:
    """The launches of the class whose text does not come to the class's Lean, in words."""
    found = translation(text)
    return [
        name
        for name, launch, arch in launches(text, archs)
        if numeric(kernel_of(launch, arch), text.name) != found.at(sizes_of(launch))
    ]


def texts() -> Mapping[str, str]:
    """By path from the root, each module of Lean that is written from a kernel."""
    return {text.path: lean(text) for text in TEXTS}


def triton_version() -> str:
    return f"Triton {triton.__version__}"


def is_compared() -> bool:
    """Whether this Triton is one of which the texts are known."""
    version: str = triton.__version__
    return version.startswith(tuple(f"{one}." for one in COMPARED))


def differing(root: Path, wanted: Mapping[str, str]) -> list[str]:
    """The files that are not as they should be, those that should not be there included."""
    there = {p.relative_to(root).as_posix() for p in (root / FOLDER).glob("*.lean")}
    wrong = {n for n, text in wanted.items() if n not in there or (root / n).read_text() != text}
    return sorted(wrong | (there - wanted.keys()))
