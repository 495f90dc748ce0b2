"""Which launches of the forward kernel run a text that is proved."""

from __future__ import annotations

from functools import cache

from bridge.ttir.texts import TEXTS, Text
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.internal.scores import KERNEL_CHANGES

# Tile sizes are variables of a text. Divisibility by 16 is a hint that changes no operation.
_NO_PART = frozenset(
    {"BLOCK_M", "BLOCK_N", "BLOCK_D", "BLOCK_V", "ALIGNED", "PAIRS_ALIGNED"}
)  # fmt: skip
_FLOATS = {"*fp16": "*float", "*bf16": "*float", "*fp32": "*float"}
# The option that a launch uses if it passes this argument.
_OPTIONS = {
    "mask_ptr": "mask",
    **{change.argument: change.title for change in KERNEL_CHANGES},
    "seed_ptr": "dropout",
}
# The names of a window's edges, by whether it has a left and a right one.
EDGES = {
    (False, False): "full", (False, True): "right edge", (True, False): "left edge",
    (True, True): "window",
}  # fmt: skip

Key = frozenset[tuple[str, object]]


def key(launch: Launch) -> Key:
    """The key of the class to which the launch's text belongs: the types of its arguments (float
    types of pointers count as one), and those constants that are part of a text."""
    types, constants = launch.specialisation()
    kinds = {name: _FLOATS.get(kind, kind) for name, kind in types.items()}
    fixed = {name: constant for name, constant in constants.items() if name not in _NO_PART}
    return frozenset({**kinds, **{f"{name} is": x for name, x in fixed.items()}}.items())


@cache
def classes() -> dict[Key, Text]:
    """The texts with theorems, by the key of their launches."""
    return {key(text.launch()): text for text in TEXTS}


def text_of(launch: Launch) -> Text | None:
    """The text with theorems that a launch of the forward kernel runs, None if it is of no such."""
    return classes().get(key(launch))


def features(launch: Launch) -> frozenset[str]:
    """The features that a launch of the forward kernel uses: the edges of its window, options,
    packed sequences, and head sizes that leave a part of their tile empty."""
    given = {name for name, argument in launch.arguments.items() if argument is not None}
    found = {EDGES["left" in given, "right" in given]}
    found |= {word for name, word in _OPTIONS.items() if name in given}
    if "cu_q_ptr" in given:
        found.add("packed")
    if not (launch.constants["EVEN_D"] and launch.constants["EVEN_V"]):
        found.add("padded head size")
    return frozenset(found)
