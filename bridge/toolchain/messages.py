"""The messages and the results of a build."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from bridge.toolchain.errors import ToolchainError

Answer = dict[str, Any]
Severity = Literal["error", "warning", "info"]
# Lean's names of them; any other is information.
_SEVERITIES: dict[str, Severity] = {"error": "error", "warning": "warning"}


@dataclass(frozen=True)
class Message:
    """A message of Lean about a place: line 1-based, column 0-based, as Lean counts."""

    severity: Severity
    file: str
    line: int
    column: int
    text: str

    def __str__(self) -> str:
        return f"{self.severity}: {self.file}:{self.line}:{self.column}: {self.text}"


@dataclass(frozen=True)
class ModuleResult:
    """The result of one module. reused: nothing had changed. skipped: an import had failed.
    number, total: its place in the order of the build, and how many modules there are."""

    name: str
    ok: bool
    reused: bool = False
    skipped: bool = False
    seconds: float = 0.0
    messages: tuple[Message, ...] = ()
    number: int = 0
    total: int = 0


@dataclass(frozen=True)
class BuildResult:
    """The result of a build."""

    modules: tuple[ModuleResult, ...]
    seconds: float
    output: str = field(default="", repr=False)
    status: int = 0

    @property
    def ok(self) -> bool:
        return self.status == 0 and all(m.ok for m in self.modules)

    @property
    def built(self) -> tuple[str, ...]:
        return tuple(m.name for m in self.modules if not m.reused and not m.skipped)

    @property
    def reused(self) -> tuple[str, ...]:
        return tuple(m.name for m in self.modules if m.reused)

    @property
    def messages(self) -> tuple[Message, ...]:
        return tuple(message for m in self.modules for message in m.messages)


def message_of(answer: dict[str, Any], file: str) -> Message:
    """A message from Lean's own JSON."""
    severity = _SEVERITIES.get(answer["severity"], "info")
    position = answer["pos"]
    text = "\n".join(filter(None, [answer.get("caption"), answer["data"].rstrip("\n")]))
    return Message(severity, file, position["line"], position["column"], text)


def whole_listing(answers: Iterable[Answer], script: str, until: str) -> list[Answer]:
    """The answers of a Lean file but the last, whose key `until` says how many there are. Raises
    ToolchainError where some are missing."""
    *found, last = answers
    if last[until] != len(found):
        raise ToolchainError(f"{script}: {len(found)} of {last[until]} answers came")
    return found
