"""Reads Lean's stored modules (`.olean`, format 2, 32-bit words), from its bytes and without Lean.

An object is known by its address. A file says at which address its bytes lie; the parts of a module
(`.olean`, `.olean.server`, `.olean.private`) point into each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bridge.errors import MendableError

# Header: "olean", the format, flags, Lean's version (33 bytes), its commit (40), the address, and
# the root object.
_MAGIC, _FORMAT = b"olean", 2
_COMMIT = slice(40, 80)
_BASE, _ROOT = 80, 84
_LARGEST_CONSTRUCTOR, _ARRAY, _STRING, _NUMBER = 244, 246, 249, 250


class OleanError(MendableError):
    """Stored bytes are not as they are read here. The message is one sentence."""


class Part:
    """One file: `words` from its first byte, which lies at the address `base`."""

    def __init__(self, path: Path) -> None:
        try:
            self.data = path.read_bytes()
        except OSError as error:
            raise OleanError(f"{path} cannot be read: {error.strerror or error}") from error
        if self.data[:5] != _MAGIC or len(self.data) < 88 or self.data[5] != _FORMAT:
            raise OleanError(f"{path} is no .olean of format {_FORMAT}")
        self.path = path
        self.commit = self.data[_COMMIT].decode("ascii", "replace")
        self.words = memoryview(self.data[: len(self.data) & ~3]).cast("I")
        self.base, self.root = self.words[_BASE >> 2], self.words[_ROOT >> 2]


class Module:
    """One module: its parts, the last of which holds all of it.

    An address with its lowest bit set is no object but a number, half of it rounded down.
    """

    def __init__(self, name: str, paths: Sequence[Path]) -> None:
        self.name = name
        self.parts = [Part(path) for path in paths]
        # That of the last part may lie in an earlier one, to which it adds nothing.
        self.root = self.parts[-1].root
        # Most of a proof is in the last one.
        self._places = [(part.base, len(part.data), part) for part in reversed(self.parts)]

    def find(self, address: int) -> tuple[Part, int]:
        """The part that holds an address, and the number of its word there."""
        for base, size, part in self._places:
            # Modulo 2^32: a file may lie across the end of the addresses.
            offset = (address - base) & 0xFFFFFFFF
            if offset < size:
                return part, offset >> 2
        raise OleanError(f"{self.parts[-1].path} points to {address:#x}, which no part of it holds")

    def _of_tag(self, address: int, tag: int) -> tuple[Part, int]:
        part, i = self.find(address)
        found = part.words[i + 1] >> 24
        if found != tag:
            raise OleanError(f"{part.path} has an object {found} at {address:#x}, not {tag}")
        return part, i

    def constructor(self, address: int) -> tuple[int, Sequence[int], bytes]:
        """The number of a constructor, the addresses of its fields, and 16 bytes from where those
        begin that are no objects."""
        part, i = self.find(address)
        head = part.words[i + 1]
        tag, size = head >> 24, (head >> 16) & 255
        if tag > _LARGEST_CONSTRUCTOR:
            raise OleanError(f"{part.path} has an object {tag} at {address:#x}, no constructor")
        end = i + 2 + size
        return tag, part.words[i + 2 : end], part.data[end * 4 : end * 4 + 16]

    def string(self, address: int) -> str:
        part, i = self._of_tag(address, _STRING)
        start = (i + 5) * 4
        return part.data[start : start + part.words[i + 2] - 1].decode("utf-8")

    def array(self, address: int) -> Sequence[int]:
        part, i = self._of_tag(address, _ARRAY)
        return part.words[i + 4 : i + 4 + part.words[i + 2]]

    def list(self, address: int) -> list[int]:
        found = []
        while not address & 1:
            _, (head, address), _ = self.constructor(address)
            found.append(head)
        return found

    def number(self, address: int) -> int:
        """A natural number. GMP keeps a large one: room, how many words, and where they are."""
        if address & 1:
            return address >> 1
        part, i = self._of_tag(address, _NUMBER)
        used, where = part.words[i + 3 : i + 5]
        if not 0 < used < 1 << 16:
            raise OleanError(f"{part.path} has a number of {used} words")
        part, i = self.find(where)
        return int.from_bytes(part.data[i * 4 : (i + used) * 4], "little")

    def parts_of_name(self, address: int) -> tuple[str | int, ...]:
        if address & 1:
            return ()
        before, end = self._last(address)
        return (*self.parts_of_name(before), end)

    def _last(self, address: int) -> tuple[int, str | int]:
        """The address of a name's prefix, and its last part."""
        tag, (before, last), _ = self.constructor(address)
        return before, self.string(last) if tag == 1 else self.number(last)

    def last_of_name(self, address: int) -> str | int:
        """The last part of a name; "" where it has none."""
        return "" if address & 1 else self._last(address)[1]

    def plain_name(self, address: int) -> str:
        """A name as one writes it, its parts between dots."""
        return ".".join(str(part) for part in self.parts_of_name(address))
