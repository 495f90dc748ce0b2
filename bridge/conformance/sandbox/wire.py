"""What a process says that may do anything: frames (`inside.frames`), looked at before they are
read.

Reading one runs nothing, and holds no more than `MOST_HEADER` and `MOST_NUMBERS` bytes; types,
sizes and bounds are looked at before the numbers.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from bridge.conformance.inside.frames import LONGEST_TEXT, SIZE, cut, write
from bridge.conformance.tensors.batch import DTYPES

__all__ = ["cut", "write"]

# All in one answer: the largest vectors have an output of 140 rows, the longest headers a sentence
# for each of 1,500 vectors.
MOST_HEADER = 1 << 22
MOST_NUMBERS = 1 << 28
_MOST_TENSORS, _MOST_DIMS = 1024, 8
# What a terminal or a page could take for more than text, or shows in another order.
CONTROL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe"
)


class WireError(ValueError):
    """Bytes that are no answer. The message says what was sent, without a subject: "a header of
    …"."""


@dataclass(frozen=True)
class Frame:
    """kind: what the process says; fields: values that JSON has; tensors: on the CPU, by name."""

    kind: str
    fields: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def field(self, name: str) -> Any:
        """A field. Raises WireError where there is none."""
        if name not in self.fields:
            raise WireError(f"a {show(self.kind)} without {name}")
        return self.fields[name]


class Parser:
    """Frames from bytes as they come, in pieces of any size."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        # The header of a frame whose numbers are not all there: reading it again at each piece of
        # them would be work of the judge's that its sender decides on.
        self._begun: tuple[int, str, dict[str, Any], list[_Described]] | None = None

    def add(self, piece: bytes) -> None:
        self._bytes += piece

    @property
    def inside(self) -> bool:
        """Whether a frame has begun and is not whole."""
        return bool(self._bytes)

    def next(self) -> Frame | None:
        """The next frame, or None if it is not whole. Raises WireError for what is none, after
        which nothing more can be read."""
        if self._begun is None:
            self._begun = self._header()
        if self._begun is None:
            return None
        start, kind, fields, described = self._begun
        end = start + sum(_bytes_of(dtype, shape) for _, dtype, shape in described)
        if end - start > MOST_NUMBERS:
            raise WireError(f"{end - start} bytes of numbers; {MOST_NUMBERS} are accepted")
        if len(self._bytes) < end:
            return None
        self._begun = None
        tensors = {}
        for name, dtype, shape in described:
            stop = start + _bytes_of(dtype, shape)
            numbers = torch.empty(0, dtype=dtype)
            if stop > start:
                numbers = torch.frombuffer(self._bytes[start:stop], dtype=dtype)
            tensors[name] = numbers.reshape(shape)
            start = stop
        del self._bytes[:end]
        return Frame(kind, fields, tensors)

    def _header(self) -> tuple[int, str, dict[str, Any], list[_Described]] | None:
        """Where the numbers of the next frame begin, and its header; None if that is not whole."""
        if len(self._bytes) < SIZE.size:
            return None
        (size,) = SIZE.unpack_from(self._bytes)
        if not 0 < size <= MOST_HEADER:
            raise WireError(f"a header of {size} bytes; 1 to {MOST_HEADER} are accepted")
        start = SIZE.size + size
        if len(self._bytes) < start:
            return None
        return start, *_header(bytes(self._bytes[SIZE.size : start]))


_Described = tuple[str, torch.dtype, tuple[int, ...]]


def _header(data: bytes) -> tuple[str, dict[str, Any], list[_Described]]:
    try:
        found = json.loads(data.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise WireError("a header that is not JSON") from None
    if not isinstance(found, dict) or set(found) != {"kind", "fields", "tensors"}:
        raise WireError("a header that has not kind, fields and tensors alone")
    tensors = found["tensors"]
    if not isinstance(found["fields"], dict) or not isinstance(tensors, list):
        raise WireError("a header whose fields or tensors are of another type")
    if len(tensors) > _MOST_TENSORS:
        raise WireError(f"{len(tensors)} tensors; {_MOST_TENSORS} are accepted")
    described = [_describe(one) for one in tensors]
    names = [name for name, _, _ in described]
    if len(set(names)) < len(names):
        raise WireError("two tensors of one name")
    return text(found["kind"], "a kind"), found["fields"], described


def _no_number(name: str) -> None:
    raise ValueError(name)


def _describe(one: Any) -> _Described:
    if not isinstance(one, list) or len(one) != 3:
        raise WireError("a tensor that is not described by name, dtype and shape")
    name, dtype, shape = one
    name = text(name, "the name of a tensor")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise WireError(f"a tensor of dtype {show(dtype)}; {', '.join(DTYPES)} are accepted")
    if not isinstance(shape, list) or len(shape) > _MOST_DIMS:
        raise WireError(f"a tensor of shape {show(shape)}; at most {_MOST_DIMS} sizes are accepted")
    for size in shape:
        if isinstance(size, bool) or not isinstance(size, int) or not 0 <= size <= MOST_NUMBERS:
            raise WireError(f"a tensor of shape {show(shape)}; sizes of 0 and more are accepted")
    # Of a tensor without numbers PyTorch multiplies the others all the same.
    if 0 in shape and math.prod(size for size in shape if size) > MOST_NUMBERS:
        raise WireError(f"a tensor of shape {show(shape)}, whose sizes are too large together")
    return name, DTYPES[dtype], tuple(shape)


def _bytes_of(dtype: torch.dtype, shape: Sequence[int]) -> int:
    return math.prod(shape) * dtype.itemsize


def printable(text: str) -> str:
    """A text, what controls a terminal replaced."""
    return re.sub(f"[{CONTROL}]", "\ufffd", text)


def show(value: Any) -> str:
    """A value in a sentence: its beginning."""
    whole = repr(value) if not isinstance(value, str) else value
    return printable(whole if len(whole) <= 60 else f"{whole[:59]}…")


def text(value: Any, what: str) -> str:
    """A text, what controls a terminal replaced. Raises WireError for what is none."""
    if not isinstance(value, str) or len(value) > LONGEST_TEXT:
        raise WireError(f"{what} that is no text of at most {LONGEST_TEXT} characters")
    return printable(value)


def optional_text(value: Any, what: str) -> str | None:
    """A text or None. Raises WireError for what is neither."""
    return None if value is None else text(value, what)


def flag(value: Any, what: str) -> bool:
    """True or false. Raises WireError for what is neither."""
    if not isinstance(value, bool):
        raise WireError(f"{what} that is neither true nor false: {show(value)}")
    return value


def whole(value: Any, what: str, least: int, most: int) -> int:
    """A whole number within bounds, both included. Raises WireError for what is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise WireError(f"{what} that is no number from {least} to {most}: {show(value)}")
    return value


def number(value: Any, what: str) -> float:
    """A finite number of 0 or more. Raises WireError for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise WireError(f"{what} that is no number of 0 or more: {show(value)}")
    return float(value)


def one_of(value: Any, what: str, accepted: Sequence[str]) -> str:
    """One of these texts. Raises WireError for another."""
    if not isinstance(value, str) or value not in accepted:
        raise WireError(f"{what} that is {show(value)}, none of {', '.join(accepted)}")
    return value


def texts(value: Any, what: str, accepted: Sequence[str]) -> tuple[str, ...]:
    """A list of some of these texts. Raises WireError for another."""
    if not isinstance(value, list) or len(value) > len(accepted):
        raise WireError(f"{what} that are no list of some of {', '.join(accepted)}")
    if len({one_of(one, what, accepted) for one in value}) < len(value):
        raise WireError(f"{what} of which one comes twice")
    return tuple(value)


def sentences(value: Any, what: str, accepted: Sequence[str] | frozenset[str]) -> dict[str, str]:
    """Texts by some of these names. Raises WireError for another."""
    if not isinstance(value, dict) or not value.keys() <= set(accepted):
        raise WireError(f"{what} that are not by names that were asked for")
    return {name: text(one, what) for name, one in value.items()}
