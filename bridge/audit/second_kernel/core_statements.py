"""The statements of constants of Lean's own modules on which the library rests and which have no
body there: a committed table of digests, and an export's held against it.

    python -m bridge.audit.second_kernel.core_statements EXPORT [--write]

EXPORT: in lean4export's format, 3.1.0, by `bridge export-proofs` or by lean4export itself. Exit
status 0 if each constant of the table has the kind and the statement there that the table says, 1
with a sentence for each that has not, 2 for a file that is no export. --write writes the table of
an export by `bridge export-proofs`. Needs nothing but Python's standard library.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.audit.second_kernel.export import bodiless_beside
from bridge.errors import MendableError
from bridge.files import write_changed

TABLE = "docs/core-statements.json"
_WRITES = ".venv/bin/python -m bridge index --maps"
# In the words of the audit.
_KINDS = {"axiom": "axiom", "def": "definition", "opaque": "opaque constant", "thm": "theorem"}
# The parts of an expression, in the order of their numbers, and its letter in a line.
_PARTS = {
    "app": ("a", ("fn", "arg")),
    "lam": ("l", ("type", "body")),
    "forallE": ("p", ("type", "body")),
    "letE": ("t", ("type", "value", "body")),
    "proj": ("j", ("struct",)),
    "mdata": ("", ("expr",)),
}


class FormatError(MendableError):
    """A file that is no export, or no table. The message is one sentence."""


@dataclass(frozen=True)
class Statement:
    """kind: axiom, definition, opaque constant or theorem. digest: of its level parameters and its
    type, up to the names of bound variables, how arguments are given, and notes; the digest that
    `audit.statements` and `native` make of a theorem."""

    kind: str
    digest: str


@dataclass
class _Export:
    """The lines of an export. Expressions are most of it and are read where they are needed."""

    names: list[str] = field(default_factory=lambda: [""])
    levels: list[str] = field(default_factory=lambda: ["0"])
    expressions: list[str] = field(default_factory=list)

    def enter(self, table: list[str], number: int, text: str) -> None:
        if number != len(table):
            raise ValueError(f"number {number} where {len(table)} comes next")
        table.append(text)

    def name(self, said: Mapping[str, Any]) -> str:
        prefix, last = (
            (said["str"]["pre"], said["str"]["str"])
            if "str" in said
            else (said["num"]["pre"], said["num"]["i"])
        )
        return f"{self.names[prefix]}.{last}" if prefix else str(last)

    def level(self, said: Mapping[str, Any]) -> str:
        ((kind, of),) = ((key, value) for key, value in said.items() if key != "il")
        if kind == "param":
            parameter: str = self.names[of]
            return parameter
        if kind not in ("succ", "max", "imax"):
            raise ValueError(f"a level {kind}")
        parts = of if isinstance(of, list) else [of]
        return f"{kind}({','.join(self.levels[one] for one in parts)})"

    def digest(self, said: Mapping[str, Any]) -> str:
        """Of a declaration's statement."""
        parameters = [self.names[one] for one in said["levelParams"]]
        lines = "\n".join([*parameters, *self._term(said["type"])])
        return hashlib.sha256(lines.encode()).hexdigest()

    def _term(self, root: int) -> list[str]:
        """A line for each part of an expression, each part once and after those that it is made
        of."""
        lines: dict[str, int] = {}
        done: dict[int, int] = {}
        read: dict[int, tuple[dict[str, Any], list[int]]] = {}
        stack = [root]
        while stack:
            number = stack[-1]
            if number not in read:
                read[number] = self._expression(number)
            said, parts = read[number]
            if waiting := [part for part in parts if part not in done]:
                stack += reversed(waiting)
                continue
            stack.pop()
            if number not in done:
                of = [done[part] for part in parts]
                if "mdata" in said:
                    done[number] = of[0]
                else:
                    done[number] = lines.setdefault(self._line(said, of), len(lines))
        return list(lines)

    def _expression(self, number: int) -> tuple[dict[str, Any], list[int]]:
        said: dict[str, Any] = json.loads(self.expressions[number])
        if said["ie"] != number:
            raise ValueError(f"number {said['ie']} where {number} comes next")
        parts = [
            said[kind][part] for kind, (_, all_) in _PARTS.items() if kind in said for part in all_
        ]
        if any(not 0 <= part < number for part in parts):
            raise ValueError(f"the expression {number} is made of a later one")
        return said, parts

    def _line(self, said: Mapping[str, Any], of: Sequence[int]) -> str:
        ((kind, what),) = ((key, value) for key, value in said.items() if key != "ie")
        if kind == "proj":
            return f"j {self.names[what['typeName']]} {what['idx']} {of[0]}"
        if kind in _PARTS:
            return " ".join((_PARTS[kind][0], *map(str, of)))
        if kind == "bvar":
            return f"b {what}"
        if kind == "sort":
            return f"s {self.levels[what]}"
        if kind == "const":
            return " ".join(
                ("c", self.names[what["name"]], *(self.levels[one] for one in what["us"]))
            )
        if kind in ("natVal", "strVal"):
            return f"{'n' if kind == 'natVal' else 'x'} {what}"
        raise ValueError(f"an expression {kind}")


def read(lines: Iterable[str], names: Collection[str]) -> dict[str, Statement]:
    """The statements of the constants `names` that an export declares, without types, constructors
    and recursors. Raises FormatError."""
    export = _Export()
    found: dict[str, Statement] = {}
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            # A quotation mark within a string would have a backslash before it.
            if '"ie":' in line:
                export.expressions.append(line)
                continue
            said = json.loads(line)
            if "in" in said:
                export.enter(export.names, said["in"], export.name(said))
            elif "il" in said:
                export.enter(export.levels, said["il"], export.level(said))
            elif "meta" in said:
                if number != 1 or not said["meta"]["format"]["version"].startswith("3.1."):
                    raise ValueError("not one export of the format 3.1")
            else:
                ((kind, what),) = said.items()
                if kind in _KINDS and (name := export.names[what["name"]]) in names:
                    if name in found:
                        raise ValueError(f"{name} a second time")
                    found[name] = Statement(_KINDS[kind], export.digest(what))
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise FormatError(
            f"line {number} of the export is none of its format ({type(error).__name__}: {error})"
        ) from error
    if number == 0:
        raise FormatError("the export is empty")
    return found


def of_export(path: Path, names: Collection[str] = ()) -> dict[str, Statement]:
    """The statements of the constants `names`, and of those without a body that are listed beside
    the export: these stand in it as axioms, and have the kinds of the list. Raises FormatError and
    OSError."""
    beside = bodiless_beside(path)
    listed: dict[str, str] = {}
    if beside.exists():
        bodiless = json.loads(beside.read_text("utf-8"))["bodiless"]
        listed = {name: kind for kind, of in bodiless.items() for name in of}
    with path.open(encoding="utf-8") as lines:
        found = read(lines, {*names, *listed})
    return {
        name: Statement(listed[name], one.digest) if name in listed and one.kind == "axiom" else one
        for name, one in found.items()
    }


def table(root: Path) -> dict[str, Statement]:
    """The committed statements. Raises FormatError."""
    path = root / TABLE
    try:
        kinds = json.loads(path.read_text("utf-8"))
        return {
            name: Statement(kind, of) for kind, each in kinds.items() for name, of in each.items()
        }
    except OSError as error:
        raise FormatError(f"{TABLE} cannot be read: {error.strerror or error}") from error
    except (ValueError, AttributeError) as error:
        raise FormatError(f"{TABLE} is no table of statements: {error}") from error


def text(found: Mapping[str, Statement]) -> str:
    """The table as it is committed."""
    kinds: dict[str, dict[str, str]] = {}
    for name, one in sorted(found.items()):
        kinds.setdefault(one.kind, {})[name] = one.digest
    return json.dumps(kinds, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def differences(
    committed: Mapping[str, Statement], found: Mapping[str, Statement]
) -> Iterator[str]:
    """Where a constant is another than in the table, a sentence each."""
    for name in sorted({*committed} & {*found}):
        has, said = found[name], committed[name]
        if has.kind != said.kind:
            yield f"{name} is of the kind {has.kind}, and in {TABLE} of the kind {said.kind}"
        elif has.digest != said.digest:
            yield f"{name} ({has.kind}) states something else than {TABLE} has"


def problems(committed: Mapping[str, Statement], found: Mapping[str, Statement]) -> Iterator[str]:
    """Where an export differs from the table, a sentence each."""
    for name in sorted({*committed} - {*found}):
        yield f"{name}, of {TABLE}, is not in the export"
    for name in sorted({*found} - {*committed}):
        kind = found[name].kind
        yield f"{name} ({kind}) has no body and is not in {TABLE}, which {_WRITES} writes"
    yield from differences(committed, found)


def out_of_date(root: Path, found: Mapping[str, Statement]) -> list[str]:
    """One sentence if the committed table has other constants than the library rests on."""
    path = root / TABLE
    if path.is_file() and path.read_text("utf-8") == text(found):
        return []
    return [f"{TABLE} differs from the constants that the library rests on; run {_WRITES}"]


def write(root: Path, found: Mapping[str, Statement]) -> bool:
    """Write the table; whether it changed."""
    return write_changed(root / TABLE, text(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """The exit status."""
    parser = argparse.ArgumentParser(prog="core_statements", description=__doc__)
    parser.add_argument("export", type=Path, metavar="EXPORT")
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args(arguments)
    root = Path.cwd()
    try:
        if given.write:
            found = of_export(given.export)
            if not found:
                raise FormatError(
                    f"{bodiless_beside(given.export)} lists no constant of the export"
                )
            write(root, found)
            print(f"wrote {len(found)} statements into {TABLE}")
            return 0
        committed = table(root)
        wrong = list(problems(committed, of_export(given.export, committed)))
    except FormatError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"Error: {given.export}: {error.strerror or error}", file=sys.stderr)
        return 2
    for one in wrong:
        print(one)
    if not wrong:
        print(f"{len(committed)} statements of Lean's own constants are as in {TABLE}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
