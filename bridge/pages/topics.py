"""Which listed theorems stand together on the map, in their list and on the site."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from bridge.pages.map_data import Definition, Theorem

_Placed = TypeVar("_Placed", Theorem, Definition)


@dataclass(frozen=True)
class Topic:
    """files: beginnings of the names of its Lean modules, without `Attention` and, but for claims,
    without the folder below it; the longest beginning decides. chapter: the page of `docs` that
    explains it, if there is one."""

    title: str
    files: tuple[str, ...]
    chapter: str | None = None

    @property
    def slug(self) -> str:
        """The anchor of its heading, and the name of its drawing."""
        return re.sub(r"[^\w\- ]", "", self.title.lower()).replace(" ", "-")


TOPICS = (
    Topic(
        "Softmax and attention",
        ("Softmax", "Attention", "Rows", "Flash.Rows", "Maximum"),
        "softmax",
    ),
    Topic("Online softmax and merging", ("Online", "Merge", "Ring", "Shard"), "online"),
    Topic(
        "The tile loop",
        (
            "Flash",
            "Schedule",
            "TileBounds",
            "WholeTiles",
            "Padding",
            "Masks.Padding",
            "Poison",
            "Claims.Memory",
        ),
        "tiles",
    ),
    Topic(
        "Masks and changes of the scores",
        ("Mask", "Score", "SafeSoftcap", "Sink"),
        "masks",
    ),
    Topic(
        "Log-sum-exp and split-KV",
        (
            "LogSumExp",
            "Softmax.LogSumExp",
            "Combine",
            "SplitKV",
            "Online.Combine",
            "Online.SplitKV",
        ),
        "log-sum-exp",
    ),
    Topic(
        "Heads, packed sequences, pages",
        (
            *("Heads", "MultiHead", "Claims.Heads", "Packed", "Varlen", "Page"),
            *("Cascade", "Online.Cascade"),
        ),
        "heads",
    ),
    Topic("A state that follows its keys", ("Cache", "StatesSound")),
    Topic("Dropout", ("Dropout", "KeepMask", "Philox")),
    Topic(
        "The backward pass",
        (
            *("Backward", "Derivative", "Slopes", "Tangent", "Claims.Masking.Gradients"),
            *("GradientSound", "NaturalGradientSound", "SampledGradientSound"),
        ),
        "backward",
    ),
    Topic(
        "The transformer",
        (
            *("Transformer", "Embedding", "LayerNorm", "FeedForward", "Linear"),
            *("Claims.Transformer", "Claims.Memorise.Theorem", "Claims.Approximation.Bounded"),
        ),
        "transformer",
    ),
    Topic(
        "Rounding",
        (
            *("Rounding", "Tolerance", "ScoreTolerance", "LogSumExpTolerance", "StateTolerance"),
            "DropoutTolerance",
        ),
        "rounding",
    ),
    Topic(
        "Rounding of gradients and tangents",
        (
            *("GradientTolerance", "TangentTolerance", "Rounding.Gradient", "Rounding.Inner"),
            *("Rounding.Tangent", "Rounding.ScoreRates", "Rounding.Majorants", "Rounding.Near."),
            *("SoftcapTolerance", "Rounding.Softcap", "StoredGradient", "Rounding.StoredGradients"),
            "ScaledGradients",
            *("TemperatureTolerance", "Rounding.Temperature", "WeightTolerance"),
            *("CappedRateTolerance", "Rounding.CappedRates", "Rounding.ThroughCap"),
            *("GradientStoreTolerance", "Rounding.GradientStores", "Rounding.TotalStores"),
        ),
        "tolerances",
    ),
    Topic(
        "Formats, underflow and overflow",
        (
            *("Format", "Real.Format", "Rounding.Format", "Underflow", "Rounding.Underflow"),
            *("OverflowBounds", "OverflowChanges", "OverflowGradients", "OverflowUnderflow"),
            "Rounding.Overflow",
            *("Mixed", "Rounding.Mixed"),
        ),
        "rounding",
    ),
    Topic(
        "The kernels that Triton compiles",
        ("Launched", "PackedLaunched", "Accesses", "Exponents", "Overflow"),
        "kernel",
    ),
    Topic(
        "The real numbers, and bounds on them",
        (
            *("Enclosure", "Real", "AlgorithmSound", "CaseSound", "NaturalSound", "SampledSound"),
            "NaturalSampledSound",
        ),
    ),
    Topic(
        "What attention can and cannot do",
        ("Claims",),
        "claims",
    ),
)
OTHERS = Topic("Other theorems", ())


def topic_of(module: str) -> Topic:
    """The topic in which the theorems of a Lean module stand."""
    file = module.removeprefix("Attention.")
    if not file.startswith("Claims."):
        file = file.partition(".")[2]
    found = [(len(f), topic) for topic in TOPICS for f in topic.files if file.startswith(f)]
    return max(found, key=lambda one: one[0])[1] if found else OTHERS


def by_topic(some: Iterable[_Placed]) -> Mapping[Topic, list[_Placed]]:
    """Theorems, or definitions, by topic; the topics that have any, in their order."""
    found: dict[Topic, list[_Placed]] = {topic: [] for topic in (*TOPICS, OTHERS)}
    for one in some:
        found[topic_of(one.module)].append(one)
    return {topic: placed for topic, placed in found.items() if placed}
