"""The kernels' texts that `Attention.Kernel` is about, and their Lean.

A kernel has one text for each of its specialisations. Of these many are one in Lean: dtypes differ
in conversions only, which do nothing without rounding, and tile sizes are variables. `Text` is such
a class of texts: its Lean is written from one launch, and every other launch of the class must come
to the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
import triton

from bridge.templates import template
from bridge.ttir.lean import Translation, numeric, translate
from bridge.ttir.lean_text import break_lines
from bridge.ttir.parse import parse
from bridge.ttir.shared import fields_of, pointers_of, share
from bridge.ttir.source import of_launch
from bridge.ttir.syntax import Function
from pyimpl.backends.kernels import forward, varlen
from pyimpl.backends.kernels.parts.launch import DTYPES, Launch
from pyimpl.internal.scores import ScoreOptions

FOLDER = "Attention/Kernel/Generated"
# The module with the arguments of all texts.
_ARGUMENTS = "Arguments"
# The versions of Triton of which each text is known to come to the committed Lean.
COMPARED = ("3.6", "3.7")
ARCHITECTURES = (80, 90, 100)
_SIZES = ("BLOCK_M", "BLOCK_N", "BLOCK_D", "BLOCK_V")


@dataclass(frozen=True)
class Text:
    """The forward kernel with a window of these bounds, None for none. name: of the Lean module,
    with which its names begin; what: a description in words; fills: whether the sizes of heads and
    of values fill their tiles; packed: for packed sequences, bottom_right: with the window aligned
    so in each."""

    name: str
    what: str
    left: int | None
    right: int | None
    fills: bool = True
    packed: bool = False
    bottom_right: bool = False

    @property
    def path(self) -> str:
        return f"{FOLDER}/{self.name}.lean"

    @property
    def family(self) -> str:
        """The namespace in `Attention.Kernel` of the theorems about it."""
        return "Packed" if self.packed else self.name if self.fills else "Padded"

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """The sizes of heads and of values that are compared."""
        if self.fills:
            return (16, 16), (32, 32), (64, 64), (128, 128), (256, 256), (128, 64)
        return (80, 80), (96, 96), (36, 36), (7, 7), (192, 192), (80, 40)

    def launch(
        self,
        dtype: torch.dtype = torch.float32,
        head_dim: int | None = None,
        value_dim: int | None = None,
        arch: int = 90,
        blocks: tuple[int | None, int | None] = (None, None),
    ) -> Launch:
        """A launch on tensors without memory. Sizes that are None are chosen here, blocks by the
        launcher."""
        head_dim = (128 if self.fills else 80) if head_dim is None else head_dim
        value_dim = head_dim if value_dim is None else value_dim
        options = ScoreOptions(0.125, left=self.left, right=self.right)

        def tensor(*shape: int, of: torch.dtype = dtype) -> torch.Tensor:
            return torch.empty(shape, dtype=of, device="meta")

        if self.packed:
            cu = tensor(5, of=torch.int32)
            return varlen.launch(
                tensor(1000, 8, head_dim), tensor(1024, 2, head_dim), tensor(1024, 2, value_dim),
                cu, cu, tensor(1000, 8, value_dim), tensor(8, 1000, of=torch.float32), options,
                max_q_len=500, bottom_right=self.bottom_right, capability=arch,
                block_m=blocks[0], block_n=blocks[1],
            )  # fmt: skip
        return forward.launch(
            tensor(2, 8, 1000, head_dim), tensor(2, 2, 1024, head_dim),
            tensor(2, 2, 1024, value_dim), tensor(2, 8, 1000, value_dim),
            tensor(2, 8, 1000, of=torch.float32), options,
            capability=arch, block_m=blocks[0], block_n=blocks[1],
        )  # fmt: skip


def _padded_text(name: str, what: str, left: int | None, right: int | None) -> Text:
    return Text(f"Padded{name}", f"{what}, heads padded", left, right, fills=False)


def _packed_text(
    name: str, what: str, left: int | None, right: int | None, end: bool = False
) -> Text:
    what = f"{what}, sequences packed" + (", aligned bottom-right" if end else "")
    return Text(f"Packed{name}", what, left, right, packed=True, bottom_right=end)


_FULL = ("Full", "without a window", None, None)
_CAUSAL = ("Causal", "with a right edge", None, 0)
_WINDOW = ("Window", "with a window", 100, 0)
TEXTS = (
    Text(*_FULL),
    Text(*_CAUSAL),
    Text("Left", "with a left edge", 100, None),
    Text(*_WINDOW),
    _padded_text(*_FULL),
    _padded_text(*_CAUSAL),
    _padded_text(*_WINDOW),
    _packed_text(*_FULL),
    _packed_text(*_CAUSAL),
    _packed_text("CausalEnd", *_CAUSAL[1:], end=True),
    _packed_text(*_WINDOW),
    _packed_text("WindowEnd", *_WINDOW[1:], end=True),
)


def kernel_of(launch: Launch, arch: int = 90) -> Function:
    """The kernel's TTIR as it is launched."""
    return parse(of_launch(launch, arch).text).kernel


def sizes_of(launch: Launch) -> dict[str, int]:
    """The tile sizes by name."""
    return {name: int(launch.constants[name] or 0) for name in _SIZES}


def apart(text: Text) -> Launch:
    """A launch whose tile sizes differ."""
    head_dim, value_dim = (128, 256) if text.fills else (96, 200)
    return text.launch(head_dim=head_dim, value_dim=value_dim, blocks=(32, 64))


@cache
def translation(text: Text) -> Translation:
    """The text in Lean, of a launch whose tile sizes differ."""
    launch = apart(text)
    return translate(kernel_of(launch), text.name, sizes_of(launch))


def launches(
    text: Text, archs: tuple[int, ...] = (90,), every: bool = False
) -> Iterator[tuple[str, Launch, int]]:
    """Launches of the class with the tiles that the launcher chooses, each in words: all sizes that
    are compared, for each compute capability. every: each size in each dtype, not in one alone."""
    for arch in archs:
        for number, (head_dim, value_dim) in enumerate(text.sizes):
            for dtype in DTYPES if every else (DTYPES[number % len(DTYPES)],):
                size = f"head size {head_dim}"
                if value_dim != head_dim:
                    size += f", value size {value_dim}"
                name = f"{text.name}, {str(dtype).removeprefix('torch.')}, {size}, sm_{arch}"
                yield name, text.launch(dtype, head_dim, value_dim, arch), arch


def differing_launches(
    text: Text, archs: tuple[int, ...] = (90,), every: bool = False
) -> list[str]:
    """The launches of the class whose text does not come to the class's Lean, in words."""
    found = translation(text)
    return [
        name
        for name, launch, arch in launches(text, archs, every)
        if numeric(kernel_of(launch, arch), text.name) != found.at(sizes_of(launch))
    ]


@cache
def texts() -> Mapping[str, str]:
    """By path from the root, each module of Lean that is written from a kernel."""
    translations = [translation(text) for text in TEXTS]
    parameters = TEXTS[0].launch().kernel.arg_names
    fields = template("bridge.ttir", "arguments.lean.jinja").render(
        fields=fields_of(translations, parameters),
        pointers=pointers_of(translations, parameters),
    )
    modules = {f"{FOLDER}/{_ARGUMENTS}.lean": fields}
    for text, found in zip(TEXTS, share(translations), strict=True):
        modules[text.path] = template("bridge.ttir", "generated.lean.jinja").render(
            name=text.name,
            what=text.what,
            uses=found.uses or [_ARGUMENTS],
            definitions="\n".join(map(break_lines, found.definitions)),
        )
    return modules


def triton_version() -> str:
    return f"Triton {triton.__version__}"


def is_compared() -> bool:
    """Whether this Triton is one of which the texts are known."""
    version: str = triton.__version__
    return version.startswith(tuple(f"{one}." for one in COMPARED))


def differing_files(root: Path, wanted: Mapping[str, str]) -> list[str]:
    """The files that are not as they should be, those that should not be there included."""
    there = {p.relative_to(root).as_posix() for p in (root / FOLDER).glob("*.lean")}
    wrong = {n for n, text in wanted.items() if n not in there or (root / n).read_text() != text}
    return sorted(wrong | (there - wanted.keys()))
