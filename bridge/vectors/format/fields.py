"""The fields of a vector with their places, and their texts as exact values. The conditions that a
shape cannot express are checked here.
Every complaint is one sentence that names the file, the vector and the field.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache, lru_cache
from typing import Any, Self

from bridge.errors import MendableError
from bridge.vectors.model.attention import Exact, Mask, Model

Booleans = tuple[tuple[bool, ...], ...]
# A field that is a number, by its name; or a number, and the name of the things it counts.
Size = str | tuple[int, str]

# A number with at most this many significant bits and a moderate exponent is exact in bfloat16.
_BF16_BITS = 8
_BF16_EXPONENT = 120
# Far above any score here (8,003): weights are 2^score, and have so many digits.
_LARGEST_SCORE = 1 << 16
# Queries times keys times columns that a vector may come to, in whatever layout: pages and blocks
# may be listed many times. The largest of this project has 75,040.
_LARGEST_WORK = 1 << 22
# Half the largest distance between bounds: nothing beside the rounding of any kernel.
LARGEST_UNCERTAINTY = Fraction(1, 1 << 61)
# The entries of a list, by how deep there are lists in it.
_ENTRIES = ("numbers", "rows", "matrices")


class VectorError(MendableError, ValueError):
    """A vector file that breaks its format. The message is one sentence on one line, whatever the
    file holds: characters that cannot be printed are escaped."""

    def __init__(self, message: str) -> None:
        shown = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in message)
        super().__init__("".join(shown))


def short(text: str, limit: int = 120) -> str:
    """The text, cut where it is long."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


class Field:
    """A part of an entry, of the right shape, and its place there, as in `q[0][1]`."""

    __slots__ = ("data", "entry", "key", "within")

    def __init__(self, data: Any, within: Field | None, key: str | int, entry: Entry) -> None:
        self.data = data
        self.within = within
        self.key = key
        self.entry = entry

    def __getitem__(self, key: str | int) -> Field:
        return Field(self.data[key], self, key, self.entry)

    @property
    def place(self) -> str:
        """The path of this in the entry; made only when it is asked for, which is seldom."""
        outer = "" if self.within is None else self.within.place
        if isinstance(self.key, int):
            return f"{outer}[{self.key}]"
        return f"{outer}.{self.key}" if outer else self.key

    def get(self, name: str) -> Field | None:
        """The field of this name, if there is one."""
        return self[name] if name in self.data else None

    def __contains__(self, name: str) -> bool:
        return name in self.data

    def __len__(self) -> int:
        return len(self.data)

    def __iter__(self) -> Iterator[Field]:
        return (Field(part, self, n, self.entry) for n, part in enumerate(self.data))

    def fail(self, problem: str, within: str = "") -> VectorError:
        """The error that this is wrong; `within`: the place in it that is."""
        entry = self.entry
        field = f"field {self.place}{within}: "
        return VectorError(f"{entry.filename}: {entry.data['id']}: {field}{problem}.")

    def size(self, size: Size) -> tuple[int, str]:
        """A size as its number and its name."""
        return (self.entry.data[size], size) if isinstance(size, str) else size

    def number_of(self, entries: str) -> tuple[int, str]:
        """The length as a size of others."""
        return len(self.data), f"the number of {entries} of {self.place}"

    def check_count(self, size: Size, entries: str) -> Self:
        """This list or text, which must be so long."""
        count, name = self.size(size)
        if len(self.data) != count:
            raise self.fail(f"has {len(self.data)} {entries}, but {name} is {count}")
        return self

    def read(self, read: Callable[[str], Any]) -> Any:
        """The text's value by `read`, which raises ValueError with the fault."""
        try:
            return read(self.data)
        except ValueError as error:
            raise self.fail(f"{short(self.data, 40)} {error}") from None

    def numbers(self, *sizes: Size | None, read: Callable[[str], Any] | None = None) -> Any:
        """Lists in lists of these sizes, None: any, as nested tuples of `read`'s values for their
        texts, by default numbers that are exact in bfloat16."""
        counts = [None if size is None else self.size(size)[0] for size in sizes]
        try:
            return _read_nested(self.data, counts, read or bf16)
        except ValueError:
            return self._numbers_one_by_one(sizes, read or bf16)

    def _numbers_one_by_one(self, sizes: Sequence[Size | None], read: Callable[[str], Any]) -> Any:
        """Read as `numbers` does, one by one, to name the place of the fault."""
        size, *rest = sizes
        if size is not None:
            self.check_count(size, _ENTRIES[len(rest)])
        if rest:
            return tuple(part._numbers_one_by_one(rest, read) for part in self)
        return tuple(part.read(read) for part in self)

    def booleans(self, rows: Size, columns: Size) -> Booleans:
        """Rows of characters, 1 for true."""
        return tuple(
            tuple(c == "1" for c in row.check_count(columns, "characters").data)
            for row in self.check_count(rows, "rows")
        )

    def mask(self, rows: Size = "q_len", columns: Size = "kv_len") -> Mask:
        """The mask over so many queries and keys."""
        kind, shift = self.data["kind"], self.size(columns)[0] - self.size(rows)[0]
        match kind:
            case "causal-bottom-right":
                return Mask(kind, shift=shift)
            case "window":
                return self.window(shift)
            case "key-length":
                return Mask(kind, length=self.data["length"])
            case "key-padding":
                valid = self["valid"].check_count(columns, "characters").data
                return Mask(kind, valid=tuple(c == "1" for c in valid))
            case "document":
                queries = self["queries"].check_count(rows, "numbers").data
                keys = self["keys"].check_count(columns, "numbers").data
                return Mask(kind, queries=tuple(queries), keys=tuple(keys))
            case "boolean":
                return Mask(kind, self["rows"].booleans(rows, columns))
        return Mask(kind)

    def shift(self, bottom_right: int) -> int:
        """The place of query 0 on the axis of the keys under the alignment."""
        return bottom_right if self.data["alignment"] == "bottom-right" else 0

    def window(self, bottom_right: int) -> Mask:
        """The window with these bounds and alignment."""
        shift = self.shift(bottom_right)
        return Mask("window", shift=shift, left=self.data["left"], right=self.data["right"])


class Entry(Field):
    """The whole entry of a vector. cost: how many products one row takes with the parameters that
    were read."""

    __slots__ = ("cost", "family", "filename", "model")

    def __init__(self, filename: str, family: str, model: Model, data: dict[str, Any]) -> None:
        super().__init__(data, None, "", self)
        self.filename = filename
        self.family = family
        self.model = model
        self.cost = 0
        if not re.fullmatch(re.escape(family) + r"-[0-9]+", data["id"]):
            raise self["id"].fail(f"is not the family's name {family}, a hyphen and a number")

    def affordable(
        self, pairs: int, columns: int, what: str = "a query and a column of a key"
    ) -> None:
        """Refuse a vector that would take more than seconds to go through."""
        if pairs * columns > _LARGEST_WORK:
            raise VectorError(
                f"{self.filename}: {self.data['id']}: comes to more than {_LARGEST_WORK} products "
                f"of {what}."
            )

    def plain(self, kind: type) -> dict[str, Any]:
        """The fields of a vector of this kind that the entry holds as they are: texts and sizes."""
        found = {"family": self.family, "model": self.model}
        for name, annotation in _plain_fields(kind):
            if type(self.data.get(name)).__name__ == annotation:
                found[name] = self.data[name]
        return found


def _read_nested(data: list[Any], counts: Sequence[int | None], read: Callable[[str], Any]) -> Any:
    """Read as `Field.numbers` does. Raises ValueError where something is wrong."""
    if counts[0] is not None and len(data) != counts[0]:
        raise ValueError
    if len(counts) == 1:
        return tuple(map(read, data))
    inner = counts[1:]
    return tuple([_read_nested(part, inner, read) for part in data])


@cache
def _plain_fields(kind: Any) -> list[tuple[str, str]]:
    """The fields of a dataclass that are a text, a size, or true or false, with their types."""
    fields = [(field.name, field.type) for field in dataclasses.fields(kind)]
    return [(name, str(annotation)) for name, annotation in fields if annotation in _PLAIN]


_PLAIN = ("str", "int", "bool")

# --- texts: each raises ValueError with the fault -------------------------------------------------


def number(text: str) -> Exact:
    """An integer or a fraction in lowest terms."""
    top, _, bottom = text.partition("/")
    if not bottom:
        return int(top)
    value = Fraction(int(top), int(bottom))
    if value.denominator != int(bottom):
        raise ValueError("is not in lowest terms")
    return value


# Half a million inputs of the committed files are some thousand numbers.
@lru_cache(maxsize=1 << 16)
def bf16(text: str) -> Exact:
    """A number that is exact in bfloat16."""
    x = number(text)
    numerator, denominator = abs(x.numerator), x.denominator
    if numerator:
        odd = numerator // (numerator & -numerator)
        exponent = numerator.bit_length() - denominator.bit_length()
        dyadic = denominator & (denominator - 1) == 0
        if not dyadic or odd.bit_length() > _BF16_BITS or abs(exponent) > _BF16_EXPONENT:
            raise ValueError("is not exact in bfloat16")
    return x


def bf16_or_none(text: str | None) -> Exact | None:
    """A number that is exact in bfloat16, or None."""
    return None if text is None else bf16(text)


def dyadic(text: str) -> Exact:
    """A sum of weights 2^s, or of such times values: its denominator is a power of 2."""
    found = number(text)
    if found.denominator & (found.denominator - 1):
        raise ValueError("is no sum of powers of 2")
    return found


def read_bounded(text: str | None) -> int | None:
    """A score or the logarithm of a sum of weights: an integer of moderate size; or None."""
    found = None if text is None else int(text)
    if found is not None and abs(found) > _LARGEST_SCORE:
        raise ValueError(f"is beyond {_LARGEST_SCORE}, of which weights would be too long")
    return found
