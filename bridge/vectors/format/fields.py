"""The fields of a vector as exact values, with what a shape cannot say checked.

Every complaint is one sentence that names the file, the vector and the field.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypeVar

from bridge.vectors.model.attention import (
    BOUNDS_UNIT,
    AttentionVector,
    EnclosedRow,
    Exact,
    Mask,
    Matrix,
    Model,
    Row,
    State,
)
from bridge.vectors.model.operations import Key

Booleans = tuple[tuple[bool, ...], ...]
Counted = TypeVar("Counted", list[Any], str)

# A number with at most this many significant bits and a moderate exponent is exact in bfloat16.
_BF16_BITS = 8
_BF16_EXPONENT = 120
# Scales are numbers that a kernel is given: well within float32.
_LARGEST_SCALE = 1 << 64
# Far above any score here (8,003): weights are 2^score, and have so many digits.
_LARGEST_SCORE = 1 << 16
# Queries times keys times columns that a vector may come to, in whatever layout: pages and blocks
# may be listed many times. The largest of this project has 75,040.
_LARGEST_WORK = 1 << 22
# Half the largest distance between bounds: nothing beside the rounding of any kernel.
LARGEST_UNCERTAINTY = Fraction(1, 1 << 61)


class VectorError(ValueError):
    """A vector file that is not what it should be. The message is one sentence on one line,
    whatever the file holds: what cannot be printed is escaped."""

    def __init__(self, message: str) -> None:
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
        super().__init__("".join(shown))


def short(text: str, limit: int = 120) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


class Fields:
    """The fields of one entry, of the right shape, as exact values; what a shape cannot say
    is checked."""

    def __init__(self, filename: str, family: str, model: Model, entry: dict[str, Any]) -> None:
        self.filename = filename
        self.family = family
        self.model = model
        self.entry = entry
        if not re.fullmatch(re.escape(family) + r"-[0-9]+", entry["id"]):
            raise self.fail("id", f"is not the family's name {family}, a hyphen and a number")

    def fail(self, field: str, problem: str) -> VectorError:
        return VectorError(f"{self.filename}: {self.entry['id']}: field {field}: {problem}.")

    def number(self, text: str, field: str) -> Exact:
        try:
            return _number(text)
        except ValueError as error:
            raise self.fail(field, f"{short(text, 40)} {error}") from None

    def bf16(self, text: str, field: str) -> Exact:
        """A number that is exact in bfloat16."""
        try:
            return _bf16(text)
        except ValueError as error:
            raise self.fail(field, f"{short(text, 40)} {error}") from None

    def score(self, text: str | None, field: str) -> int | None:
        """An integer score, or None."""
        return None if text is None else self.bounded(text, field)

    def bounded(self, text: str, field: str) -> int:
        """A score or the logarithm of a sum of weights: an integer of moderate size."""
        number = int(text)
        if abs(number) > _LARGEST_SCORE:
            raise self.fail(
                field, f"is beyond {_LARGEST_SCORE}, of which weights would be too long"
            )
        return number

    def dyadic(self, text: str, field: str) -> Exact:
        """A sum of weights 2^s, or of such times values: its denominator is a power of 2."""
        number = self.number(text, field)
        if number.denominator & (number.denominator - 1):
            raise self.fail(field, f"{short(text, 40)} is no sum of powers of 2")
        return number

    def affordable(
        self, pairs: int, columns: int, what: str = "a query and a column of a key"
    ) -> None:
        """Refuse what would take more than seconds to go through."""
        if pairs * columns > _LARGEST_WORK:
            raise VectorError(
                f"{self.filename}: {self.entry['id']}: comes to more than {_LARGEST_WORK} products "
                f"of {what}."
            )

    def scale(self) -> Exact | None:
        """The factor of the scores; None: 1/√head_dim."""
        text = self.entry["scale"]
        if text == "default":
            if self.model == "exact":
                raise self.fail("scale", "is the default, which the exact model cannot hold")
            return None
        scale = self.number(text, "scale")
        if abs(Fraction(scale)) > _LARGEST_SCALE:
            raise self.fail("scale", "is beyond 2^64")
        return scale

    def given_scale(self) -> Exact:
        """The factor of the scores, which has to be given."""
        scale = self.scale()
        if scale is None:
            raise self.fail("scale", "is the default, but has to be given for this operation")
        return scale

    def counted(self, data: Counted, field: str, count: int, name: str, what: str) -> Counted:
        """The list or text, which must be as long as the field `name` says."""
        if len(data) != count:
            raise self.fail(field, f"has {len(data)} {what}, but {name} is {count}")
        return data

    def vector(self, data: list[str], field: str, count: int, name: str) -> tuple[Exact, ...]:
        """Numbers that are exact in bfloat16."""
        self.counted(data, field, count, name, "numbers")
        try:
            return tuple(map(_bf16, data))
        except ValueError:
            # Once more, for the place of the one that is wrong.
            return tuple(self.bf16(x, f"{field}[{j}]") for j, x in enumerate(data))

    def rows_of(self, data: list[list[str]], field: str, columns: int, name: str) -> Matrix:
        """A matrix with any number of rows."""
        return tuple(
            self.vector(line, f"{field}[{i}]", columns, name) for i, line in enumerate(data)
        )

    def matrix(self, field: str, rows: str, columns: str) -> Matrix:
        """A matrix whose sizes are the fields of these names."""
        data = self.counted(self.entry[field], field, self.entry[rows], rows, "rows")
        return self.rows_of(data, field, self.entry[columns], columns)

    def matrices(self, field: str, count: str, rows: str, columns: str) -> tuple[Matrix, ...]:
        """Matrices whose number and sizes are the fields of these names."""
        data = self.counted(self.entry[field], field, self.entry[count], count, "matrices")
        out = []
        for n, matrix in enumerate(data):
            place = f"{field}[{n}]"
            self.counted(matrix, place, self.entry[rows], rows, "rows")
            out.append(self.rows_of(matrix, place, self.entry[columns], columns))
        return tuple(out)

    def booleans(
        self,
        data: list[str],
        field: str,
        rows: int,
        columns: int,
        names: tuple[str, str] = ("q_len", "kv_len"),
    ) -> Booleans:
        """A matrix of q_len rows of kv_len characters, 1 for true; `names` are those of its
        sizes."""
        for i, row in enumerate(self.counted(data, field, rows, names[0], "rows")):
            self.counted(row, f"{field}[{i}]", columns, names[1], "characters")
        return tuple(tuple(c == "1" for c in row) for row in data)

    def mask(
        self,
        q_len: int,
        kv_len: int,
        field: str = "mask",
        names: tuple[str, str] = ("q_len", "kv_len"),
    ) -> Mask:
        """The mask over so many queries and keys, whose numbers have these names."""
        data = self.entry[field]

        def counted(name: str, count: int, size: str, what: str) -> list[Any]:
            if len(data[name]) != count:
                raise self.fail(
                    f"{field}.{name}", f"has {len(data[name])} {what}, but {size} is {count}"
                )
            found: list[Any] = list(data[name])
            return found

        match data["kind"]:
            case "causal-bottom-right":
                return Mask("causal-bottom-right", shift=kv_len - q_len)
            case "window":
                return self.window(data, q_len, kv_len)
            case "key-length":
                return Mask("key-length", length=data["length"])
            case "key-padding":
                valid = counted("valid", kv_len, names[1], "characters")
                return Mask("key-padding", valid=tuple(c == "1" for c in valid))
            case "document":
                queries = counted("queries", q_len, names[0], "numbers")
                keys = counted("keys", kv_len, names[1], "numbers")
                return Mask("document", queries=tuple(queries), keys=tuple(keys))
            case "none" | "causal":
                return Mask(data["kind"])
        rows = self.booleans(data["rows"], f"{field}.rows", q_len, kv_len, names)
        return Mask("boolean", rows)

    @staticmethod
    def shift(alignment: str, q_len: int, kv_len: int) -> int:
        """Where query 0 stands on the axis of the keys."""
        return kv_len - q_len if alignment == "bottom-right" else 0

    def window(self, data: dict[str, Any], q_len: int, kv_len: int) -> Mask:
        """The window with these bounds and alignment."""
        shift = self.shift(data["alignment"], q_len, kv_len)
        return Mask("window", shift=shift, left=data["left"], right=data["right"])

    def enclosed_row(self, data: dict[str, Any], field: str) -> EnclosedRow:
        """Bounds of the result for one query."""
        value_dim = self.entry["value_dim"]
        bounds = {}
        for name in ("lower", "upper"):
            bounds[name] = tuple(int(x) for x in data["output"][name])
            if len(bounds[name]) != value_dim:
                raise self.fail(
                    f"{field}.output.{name}",
                    f"has {len(bounds[name])} numbers, but value_dim is {value_dim}",
                )
        lse = data["log_sum_exp"]
        row = EnclosedRow(
            bounds["lower"],
            bounds["upper"],
            None if lse is None else (int(lse["lower"]), int(lse["upper"])),
        )
        pairs = list(zip(row.lower, row.upper, strict=True))
        if row.masked and any(pair != (0, 0) for pair in pairs):
            raise self.fail(f"{field}.output", "is not 0, but log_sum_exp is null (no key)")
        if any(lo > hi for lo, hi in [*pairs, row.lse_bounds or (0, 0)]):
            raise self.fail(field, "has a lower bound above the upper one")
        if row.uncertainty > LARGEST_UNCERTAINTY:
            raise self.fail(field, "has bounds that are further apart than 2^-60")
        return row

    def row(self, data: dict[str, Any], field: str) -> Row:
        """The exact result for one query."""
        denominator = self.dyadic(data["denominator"], f"{field}.denominator")
        bottom = int(data["output"]["denominator"])
        numerators = tuple(int(x) for x in data["output"]["numerators"])
        value_dim = self.entry["value_dim"]
        if len(numerators) != value_dim:
            raise self.fail(
                f"{field}.output.numerators",
                f"has {len(numerators)} numbers, but value_dim is {value_dim}",
            )
        if bottom <= 0:
            raise self.fail(f"{field}.output.denominator", "is not positive")
        if data["max"] is None:
            if denominator != 0:
                raise self.fail(f"{field}.denominator", "is not 0, but max is null (no key)")
            if any(numerators):
                raise self.fail(f"{field}.output.numerators", "are not 0, but max is null (no key)")
            return Row(None, denominator, bottom, numerators)
        if denominator < 1:
            raise self.fail(f"{field}.denominator", "is below 1, but the largest weight alone is 1")
        largest = self.bounded(data["max"], f"{field}.max")
        text = data.get("log2_sum_exp")
        log = None if text is None else self.bounded(text, f"{field}.log2_sum_exp")
        if log is not None and Fraction(denominator) != Fraction(2) ** (log - largest):
            raise self.fail(
                f"{field}.log2_sum_exp", "is not the logarithm of denominator, plus max"
            )
        return Row(largest, denominator, bottom, numerators, log)

    def rows(
        self, data: list[dict[str, Any]], field: str, count: int, name: str
    ) -> tuple[Row, ...]:
        """The exact results for so many queries."""
        self.counted(data, field, count, name, "rows")
        return tuple(self.row(row, f"{field}[{i}]") for i, row in enumerate(data))

    @staticmethod
    def _beyond(row: Row | EnclosedRow, largest: Fraction) -> list[bool]:
        """Whether each output is larger than `largest` for certain: in whole numbers, since there
        are many and fractions take long."""
        top, bottom = largest.numerator, largest.denominator
        if isinstance(row, Row):
            most = top * row.output_denominator
            return [abs(n) * bottom > most for n in row.numerators]
        pairs = list(zip(row.lower, row.upper, strict=True))
        wide = max(hi - lo for lo, hi in [*pairs, row.lse_bounds or (0, 0)])
        most = 2 * BOUNDS_UNIT * top + wide * bottom
        return [abs(lo + hi) * bottom > most for lo, hi in pairs]

    def plausible(self, vector: AttentionVector, places: Sequence[str]) -> None:
        """Refuse rows that contradict the mask, or outputs beyond every value; `places` are the
        fields of the rows."""
        largest = Fraction(max((max(max(line), -min(line)) for line in vector.v), default=0))
        if vector.dropout is not None:
            largest *= vector.dropout.largest
        for i, (row, place) in enumerate(zip(vector.expected, places, strict=True)):
            for c, beyond in enumerate(self._beyond(row, largest)):
                if beyond:
                    name = "numerators" if isinstance(row, Row) else "upper"
                    raise self.fail(
                        f"{place}.output.{name}[{c}]",
                        "makes an output larger than every value, of which it is a mean",
                    )
            seen = any(vector.visible(i, j) for j in range(vector.kv_len))
            seen = seen or vector.sink is not None
            if row.masked == seen:
                name = "max" if isinstance(row, Row) else "log_sum_exp"
                raise self.fail(f"{place}.{name}", "does not agree with the mask")

    def key(self, data: dict[str, Any], field: str) -> Key:
        """A key by its score, with its value."""
        value = self.vector(data["value"], f"{field}.value", self.entry["value_dim"], "value_dim")
        return Key(self.score(data["score"], f"{field}.score"), value)

    def state(self, data: dict[str, Any], field: str) -> State:
        """The exact state of one query."""
        m = None if data["m"] is None else self.bounded(data["m"], f"{field}.m")
        l = self.dyadic(data["l"], f"{field}.l")
        value_dim = self.entry["value_dim"]
        self.counted(data["o"], f"{field}.o", value_dim, "value_dim", "numbers")
        o = tuple(self.dyadic(x, f"{field}.o[{j}]") for j, x in enumerate(data["o"]))
        if m is None and (l != 0 or any(o)):
            raise self.fail(field, "is not 0, but m is null (no key)")
        if l < 0:
            raise self.fail(f"{field}.l", "is negative, but is a sum of weights")
        return State(m, l, o)


def _number(text: str) -> Exact:
    """Raises ValueError, which says what is wrong with it, for one that is not in lowest terms."""
    top, _, bottom = text.partition("/")
    if not bottom:
        return int(top)
    value = Fraction(int(top), int(bottom))
    if value.denominator != int(bottom):
        raise ValueError("is not in lowest terms")
    return value


# Half a million inputs of the committed files are some thousand numbers.
@lru_cache(maxsize=1 << 16)
def _bf16(text: str) -> Exact:
    """Raises ValueError as `_number`, and for a number that is not exact in bfloat16."""
    x = _number(text)
    numerator, denominator = abs(x.numerator), x.denominator
    if numerator:
        odd = numerator // (numerator & -numerator)
        exponent = numerator.bit_length() - denominator.bit_length()
        dyadic = denominator & (denominator - 1) == 0
        if not dyadic or odd.bit_length() > _BF16_BITS or abs(exponent) > _BF16_EXPONENT:
            raise ValueError("is not exact in bfloat16")
    return x
