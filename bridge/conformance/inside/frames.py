"""Frames on a pipe: a JSON header and raw bytes.

A frame is 4 bytes, the size of the header (big-endian); the header, which has `kind`, `fields` and
`tensors`, a tensor as `[name, dtype, shape]`; then the numbers of the tensors, one after the other,
in C order and the byte order of the machine. The judge checks frames before it reads them
(`bridge.conformance.sandbox.wire`); frames that the judge itself has written are read here.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

SIZE = struct.Struct(">I")
FLOATS = {
    "float64": torch.float64,
    "float32": torch.float32,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
}
# The dtypes of a function's inputs.
GIVEN = {**FLOATS, "bool": torch.bool, "int32": torch.int32, "int64": torch.int64}
_NAMES = {dtype: name for name, dtype in GIVEN.items()}
LONGEST_TEXT = 2000


def pack(
    kind: str, fields: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None
) -> bytes:
    """A frame. tensors: of the dtypes of `GIVEN`, on any device."""
    described, numbers = [], []
    for name, tensor in (tensors or {}).items():
        # A copy: the stride of a single element, of which `contiguous` leaves any, becomes 1.
        flat = tensor.detach().cpu().reshape(-1).clone(memory_format=torch.contiguous_format)
        described.append([name, _NAMES[tensor.dtype], list(tensor.shape)])
        numbers.append(flat.view(torch.uint8).numpy().tobytes())
    content = {"kind": kind, "fields": fields, "tensors": described}
    header = json.dumps(content, allow_nan=False).encode()
    return b"".join((SIZE.pack(len(header)), header, *numbers))


def write(
    to: int, kind: str, fields: Mapping[str, Any], tensors: Mapping[str, Tensor] | None = None
) -> None:
    """Write a frame, as of `pack`, to a file descriptor."""
    left = memoryview(pack(kind, fields, tensors))
    while left:
        left = left[os.write(to, left) :]


def read(from_: int) -> tuple[str, dict[str, Any], dict[str, Tensor]] | None:
    """The next frame of the judge's, its tensors in memory of their own; None at the end."""
    size = _exactly(from_, SIZE.size)
    if size is None:
        return None
    header = json.loads(_exactly(from_, SIZE.unpack(size)[0]) or b"")
    tensors = {}
    for name, dtype, shape in header["tensors"]:
        kind = GIVEN[dtype]
        numbers = _exactly(from_, math.prod(shape) * kind.itemsize) or bytearray()
        flat = torch.frombuffer(numbers, dtype=kind) if numbers else torch.empty(0, dtype=kind)
        # Allocated as every other tensor is, and aligned so.
        tensors[name] = flat.reshape(shape).clone()
    return header["kind"], header["fields"], tensors


def _exactly(from_: int, size: int) -> bytearray | None:
    """So many bytes; None if they end before."""
    found = bytearray()
    while len(found) < size:
        piece = os.read(from_, min(size - len(found), 1 << 20))
        if not piece:
            return None
        found += piece
    return found


def cut(text: str) -> str:
    """A text of a length that is read."""
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 1]}…"
