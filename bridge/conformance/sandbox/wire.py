"""Messages of a process that may do anything: frames (`inside.frames`), looked at before they are
read.

Reading one runs nothing, and holds no more than `MOST_HEADER` and `MOST_NUMBERS` bytes; types,
sizes and bounds are looked at before the numbers.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
import torch
from msgspec import Meta, Struct
from torch import Tensor

from bridge.conformance.inside.frames import LONGEST_TEXT, SIZE, cut, write
from bridge.conformance.tensors.batch import DTYPES

__all__ = ["cut", "write"]

# All in one answer: the largest vectors have an output of 140 rows, the longest headers a sentence
# for each of 1,500 vectors.
MOST_HEADER = 1 << 22
MOST_NUMBERS = 1 << 28
_MOST_TENSORS, _MOST_DIMS = 1024, 8
# Characters that a terminal or a page could take for more than text, or shows in another order.
CONTROL = (
    r"\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe"
)


class WireError(ValueError):
    """Bytes that are no answer. The message says what was sent, without a subject: "a header of
    …"."""


class Text(str):
    """A process's words, with control characters of a terminal replaced."""


_Size = Annotated[int, Meta(ge=0, le=MOST_NUMBERS)]
_Shape = Annotated[tuple[_Size, ...], Meta(max_length=_MOST_DIMS)]
_Described = tuple[Text, torch.dtype, _Shape]


class _Header(Struct, forbid_unknown_fields=True):
    kind: Text
    fields: dict[str, Any]
    tensors: Annotated[list[_Described], Meta(max_length=_MOST_TENSORS)]


@dataclass(frozen=True)
class Frame:
    """kind: of the message; fields: values that JSON has; tensors: on the CPU, by name."""

    kind: str
    fields: Mapping[str, Any]
    tensors: Mapping[str, Tensor]

    def field(self, name: str, shape: Any) -> Any:
        """A field of this type, as `read` takes it. Raises WireError where there is none."""
        if name not in self.fields:
            raise WireError(f"a {show(self.kind)} without {name}")
        return read(self.fields[name], shape, f"a field {name}")


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
        """The next frame, or None if it is not whole. Raises WireError if it is none, after which
        nothing more can be read."""
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
        tensors: dict[str, Tensor] = {}
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


def _header(data: bytes) -> tuple[str, dict[str, Any], list[_Described]]:
    try:
        found = json.loads(data.decode(), parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise WireError("a header that is not JSON") from None
    header: _Header = read(found, _Header, "a header")
    if len({name for name, _, _ in header.tensors}) < len(header.tensors):
        raise WireError("two tensors of one name")
    for _, _, shape in header.tensors:
        # Of a tensor without numbers PyTorch multiplies the others all the same.
        if 0 in shape and math.prod(size for size in shape if size) > MOST_NUMBERS:
            raise WireError(f"a tensor of shape {show(shape)}, whose sizes are too large together")
    return header.kind, header.fields, header.tensors


def _no_number(name: str) -> None:
    raise ValueError(name)


def _bytes_of(dtype: torch.dtype, shape: Sequence[int]) -> int:
    return math.prod(shape) * dtype.itemsize


def printable(text: str) -> str:
    """A text with control characters of a terminal replaced."""
    return re.sub(f"[{CONTROL}]", "\ufffd", text)


def show(value: Any) -> str:
    """A value in a sentence: its beginning."""
    whole = value if isinstance(value, str) else reprlib.repr(value)
    return printable(whole if len(whole) <= 60 else f"{whole[:59]}…")


def read(value: Any, shape: Any, what: str) -> Any:
    """A value of JSON as this type, which msgspec knows, `Text` or `torch.dtype`. Raises WireError
    for another; what: the value, with its article."""
    try:
        return msgspec.convert(value, shape, dec_hook=_read_other)
    except RecursionError:
        raise WireError(f"{what} that is nested too deep") from None
    except msgspec.ValidationError as error:
        raise WireError(f"{what} that is {show(value)}: {printable(str(error))[:200]}") from None


def _read_other(kind: type, value: Any) -> Any:
    if kind is Text:
        if not isinstance(value, str) or len(value) > LONGEST_TEXT:
            raise ValueError(f"no text of at most {LONGEST_TEXT} characters")
        return Text(printable(value))
    if not isinstance(value, str) or value not in DTYPES:
        raise ValueError(f"dtype {show(value)}, none of {', '.join(DTYPES)}")
    return DTYPES[value]
