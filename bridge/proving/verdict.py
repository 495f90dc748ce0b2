"""The findings about a kernel, as a value, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from bridge.ttir.compare import Level, Shape

Word = Literal["EQUAL", "WRONG", "CANNOT TELL"]
STATUS: dict[Word, int] = {"EQUAL": 0, "WRONG": 1, "CANNOT TELL": 3}
_LONGEST = 600
_NAMES: dict[Level, str] = {
    "fields": "Random numbers of two prime fields", "formal": "All inputs",
    "rational": "Random whole numbers, by their order too",
}  # fmt: skip


@dataclass(frozen=True)
class Finding:
    """The reason why a kernel is wrong, or why this cannot be told.

    what: in a sentence; operation: with its source line, "" of an element that has another value;
    program: its place in the grid; element: of an output, or of the operation's tile; found,
    wanted: formulas.
    """

    shape: Shape
    what: str
    operation: str = ""
    program: tuple[int, ...] | None = None
    output: str = ""
    element: tuple[int, ...] | None = None
    found: str = ""
    wanted: str = ""

    def lines(self) -> list[str]:
        lines = [f"shape: {shape_text(self.shape)}"]
        if self.operation:
            lines.append(f"operation: {self.operation}")
        if self.program is not None:
            lines.append(f"program: {list(self.program)}")
        if self.element is not None:
            lines.append(f"element: {self.output}{list(self.element)}")
        if self.found:
            lines += [f"is:        {_cut(self.found)}", f"should be: {_cut(self.wanted)}"]
        return lines


@dataclass
class LevelResult:
    """One level: "fields", random numbers of two prime fields, "formal", all inputs, or "rational",
    random whole numbers.

    equal: the shapes of which every element is equal; elements: how many those were; finding: the
    one that ended the level; refused: shapes that the launcher does not take, with its message;
    left: those that were not run, since the time for the level was used up.
    """

    level: Level
    equal: list[Shape] = field(default_factory=list)
    elements: int = 0
    finding: Finding | None = None
    wrong: bool = False
    refused: list[tuple[Shape, str]] = field(default_factory=list)
    left: list[Shape] = field(default_factory=list)
    assumed: set[str] = field(default_factory=set)

    @property
    def word(self) -> Word | None:
        """The level's result in a word; None if no shape was run."""
        if self.finding is not None:
            return "WRONG" if self.wrong else "CANNOT TELL"
        return "EQUAL" if self.equal else None


@dataclass
class Verdict:
    """lean: the result of the comparison with the committed Lean text. error: the largest
    probability with which the level "fields" misses a wrong output of one of its shapes. notes:
    sentences."""

    kernel: str
    levels: list[LevelResult]
    roundings: set[str]
    lean: str
    error: float
    notes: list[str]

    @property
    def word(self) -> Word:
        words = [level.word for level in self.levels]
        if "WRONG" in words:
            return "WRONG"
        return "EQUAL" if "EQUAL" in words else "CANNOT TELL"

    @property
    def status(self) -> int:
        return STATUS[self.word]

    @property
    def finding(self) -> Finding | None:
        """The finding of the first level which has the verdict's word."""
        found = (level.finding for level in self.levels if level.word == self.word)
        return next(found, None)

    def text(self) -> str:
        lines = [f"{self.word}: {self.kernel}"]
        finding = self.finding
        if finding is not None and self.word != "EQUAL":
            lines[0] += f": {finding.what}"
            lines += [f"  {line}" for line in finding.lines()]
        for level in self.levels:
            lines += [f"  {line}" for line in self._level(level)]
        if self.roundings:
            kinds = ", ".join(sorted(self.roundings))
            lines.append(f"  Not seen, since numbers are exact: rounding to {kinds}")
        lines.append(f"  Lean: {self.lean}")
        return "\n".join([*lines, *(f"  {note}" for note in self.notes)])

    def _level(self, level: LevelResult) -> list[str]:
        name = _NAMES[level.level]
        shapes = "; ".join(map(shape_text, level.equal))
        equal = f"{level.elements} elements equal for {shapes}"
        if level.level == "fields":
            equal += f"; a wrong output is missed with probability at most {self.error:.1e}"
        assumed = ", ".join(sorted(level.assumed))
        with_ = f", where {assumed}" if assumed and level.level == "formal" else ""
        lines = [f"{name}{with_}: {equal}"] if level.equal else []
        finding = level.finding
        if finding is not None and finding is self.finding:
            lines.append(f"{name}: {level.word}, as said above")
        elif finding is not None:
            where = f" ({finding.operation})" if finding.operation else ""
            lines.append(
                f"{name}: {level.word} for {shape_text(finding.shape)}: {finding.what}{where}"
            )
        if level.left:
            left = "; ".join(map(shape_text, level.left))
            lines.append(f"{name}: not run within the time: {left}")
        reasons = Counter(sentence for _, sentence in level.refused)
        lines += [f"{name}: {n} shapes refused: {why}" for why, n in reasons.items()]
        return lines or [f"{name}: no shape was run"]

    def to_json(self) -> dict[str, Any]:
        def shape(s: Shape) -> dict[str, Any]:
            window = {"left": s.window[0], "right": s.window[1], "alignment": s.alignment.value}
            return {**asdict(s), "window": window, "alignment": s.alignment.value,
                    "dtype": str(s.dtype).removeprefix("torch.")}  # fmt: skip

        def finding(x: Finding | None) -> Any:
            return None if x is None else {**asdict(x), "shape": shape(x.shape)}

        return {
            "kernel": self.kernel,
            "verdict": self.word,
            "finding": finding(self.finding) if self.word != "EQUAL" else None,
            "levels": [
                {
                    "level": level.level,
                    "verdict": level.word,
                    "equal": [shape(s) for s in level.equal],
                    "elements": level.elements,
                    "assumed": sorted(level.assumed),
                    "finding": finding(level.finding),
                    "refused": [{"shape": shape(s), "why": why} for s, why in level.refused],
                    "left": [shape(s) for s in level.left],
                }
                for level in self.levels
            ],
            "error_probability": self.error,
            "roundings": sorted(self.roundings),
            "lean": self.lean,
            "notes": self.notes,
        }


def shape_text(shape: Shape) -> str:
    """A shape in a few words."""
    heads = f"{shape.heads}" if shape.heads == shape.kv_heads else f"{shape.heads}/{shape.kv_heads}"
    left, right = shape.window
    mask = ""
    if (left, right) == (None, 0):
        mask = ", causal"
    elif (left, right) != (None, None):
        mask = f", window ({left}, {right})"
    if mask and shape.q_len != shape.kv_len:
        mask += " bottom-right" if shape.alignment.value == "bottomRight" else " top-left"
    dims = f"{shape.head_dim}"
    if shape.value_dim != shape.head_dim:
        dims += f"/{shape.value_dim}"
    batch = f"batch {shape.batch}, " if shape.batch != 1 else ""
    lengths = f"{shape.q_len} × {shape.kv_len}"
    plural = "" if heads == "1" else "s"
    return f"{batch}{heads} head{plural}, {lengths}, d {dims}{mask}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
