"""Terms of the stored modules as lines of lean4export's format (3.1.0): each name, level and
expression once, under a number of its own, before its uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from bridge.audit.second_kernel.olean import Module, OleanError

_BINDERS = ('"default"', '"implicit"', '"strictImplicit"', '"instImplicit"')
# The constants on which a literal rests: the kernel makes a string of characters, and those of
# numbers.
OF_NUMBER = ("Nat",)
OF_STRING = ("Char.ofNat", "String.ofList")
_NUMBER, _STRING = -1, -2

Line = Callable[[str], object]


def _missing_addresses(memo: dict[int, int], addresses: Iterable[int]) -> list[int]:
    return [address for address in addresses if address not in memo]


@dataclass
class _Memo:
    """Of one module, by address."""

    names: dict[int, int] = field(default_factory=dict)
    levels: dict[int, int] = field(default_factory=dict)
    terms: dict[int, int] = field(default_factory=dict)


class Terms:
    """Numbers for the names, levels and expressions of modules. `write` is called with each line.

    shown: the names by number, as one writes them.
    """

    def __init__(self, write: Line) -> None:
        self._write = write
        self._names: dict[tuple[int, str | int], int] = {}
        self.shown = [""]
        self._levels: dict[tuple[str, *tuple[int, ...]], int] = {("zero",): 0}
        self._terms: dict[tuple[object, ...], int] = {}
        # Of each expression: those that it is made of, and the name or literal in it.
        self._within: list[tuple[int, ...]] = []
        self._constant: list[int | None] = []
        self._memos: dict[Module, _Memo] = {}

    def _memo(self, module: Module) -> _Memo:
        return self._memos.setdefault(module, _Memo())

    # --- names and levels -------------------------------------------------------------------------

    def name(self, module: Module, address: int) -> int:
        memo = self._memo(module).names
        if address & 1:
            return 0
        if (known := memo.get(address)) is not None:
            return known
        tag, (before, last), _ = module.constructor(address)
        prefix = self.name(module, before)
        end = module.string(last) if tag == 1 else module.number(last)
        found = memo[address] = self.number_of_name(prefix, end)
        return found

    def number_of_name(self, prefix: int, last: str | int) -> int:
        """The number of a name, by that of its prefix."""
        key = (prefix, last)
        if (known := self._names.get(key)) is not None:
            return known
        number = self._names[key] = len(self.shown)
        self.shown.append(f"{self.shown[prefix]}.{last}" if prefix else str(last))
        if isinstance(last, str):
            said = f'"str":{{"pre":{prefix},"str":{json.dumps(last)}}}'
        else:
            said = f'"num":{{"i":{last},"pre":{prefix}}}'
        self._write(f'{{"in":{number},{said}}}')
        return number

    def level(self, module: Module, address: int) -> int:
        memo = self._memo(module).levels
        if address & 1:
            return 0
        if (known := memo.get(address)) is not None:
            return known
        tag, fields, _ = module.constructor(address)
        if tag == 1:
            number = self._level(("succ", self.level(module, fields[0])))
        elif tag in (2, 3):
            both = (self.level(module, fields[0]), self.level(module, fields[1]))
            number = self._level(("max" if tag == 2 else "imax", *both))
        elif tag == 4:
            number = self.parameter(self.name(module, fields[0]))
        else:
            raise OleanError(f"{module.name} has a level {tag} at {address:#x}")
        memo[address] = number
        return number

    def parameter(self, name: int) -> int:
        """The level that is a parameter."""
        return self._level(("param", name))

    def _level(self, key: tuple[str, *tuple[int, ...]]) -> int:
        if (known := self._levels.get(key)) is not None:
            return known
        number = self._levels[key] = len(self._levels)
        kind, *of = key
        said = of[0] if len(of) == 1 else json.dumps(of, separators=(",", ":"))
        self._write(f'{{"il":{number},"{kind}":{said}}}')
        return number

    # --- expressions ------------------------------------------------------------------------------

    def _term(
        self,
        key: tuple[object, ...],
        said: str,
        within: tuple[int, ...] = (),
        constant: int | None = None,
    ) -> int:
        if (known := self._terms.get(key)) is not None:
            return known
        number = self._terms[key] = len(self._within)
        self._within.append(within)
        self._constant.append(constant)
        self._write(f'{{"ie":{number},{said}}}')
        return number

    def term(self, module: Module, root: int) -> int:
        """The number of an expression. Terms are deep: parts still to be done are on a stack."""
        memo = self._memo(module).terms
        stack = [root]
        while stack:
            address = stack[-1]
            if address in memo:
                stack.pop()
                continue
            tag, fields, scalars = module.constructor(address)
            parts = {
                5: fields[:2], 6: fields[1:3], 7: fields[1:3], 8: fields[1:4], 10: fields[1:2],
                11: fields[2:3],
            }.get(tag, ())  # fmt: skip
            if waiting := _missing_addresses(memo, parts):
                stack += reversed(waiting)
                continue
            memo[address] = self._make(module, tag, fields, scalars, [memo[part] for part in parts])
            stack.pop()
        return memo[root]

    def _make(
        self, module: Module, tag: int, fields: Sequence[int], scalars: bytes, of: list[int]
    ) -> int:
        """An expression whose parts have numbers."""
        if tag == 5:
            function, argument = of
            return self._term(
                (tag, *of), f'"app":{{"arg":{argument},"fn":{function}}}', (function, argument)
            )
        if tag in (6, 7):
            name, binder, kind = self.name(module, fields[0]), scalars[8], "lam"
            if tag == 7:
                kind = "forallE"
            return self._term(
                (tag, name, *of, binder),
                f'"{kind}":{{"binderInfo":{_BINDERS[binder]},"body":{of[1]},"name":{name},'
                f'"type":{of[0]}}}',
                tuple(of),
            )
        if tag == 4:
            name = self.name(module, fields[0])
            levels = [self.level(module, one) for one in module.list(fields[1])]
            said = json.dumps(levels, separators=(",", ":"))
            return self._term(
                (tag, name, *levels), f'"const":{{"name":{name},"us":{said}}}', (), name
            )
        if tag == 0:
            index = module.number(fields[0])
            return self._term((tag, index), f'"bvar":{index}')
        if tag == 3:
            level = self.level(module, fields[0])
            return self._term((tag, level), f'"sort":{level}')
        if tag == 8:
            name = self.name(module, fields[0])
            return self._term(
                (tag, name, *of),
                f'"letE":{{"body":{of[2]},"name":{name},"nondep":false,"type":{of[0]},'
                f'"value":{of[1]}}}',
                tuple(of),
            )
        if tag == 9:
            kind_of, (value,), _ = module.constructor(fields[0])
            if kind_of == 0:
                number = module.number(value)
                return self._term((tag, number), f'"natVal":"{number}"', (), _NUMBER)
            text = module.string(value)
            return self._term((tag, text), f'"strVal":{json.dumps(text)}', (), _STRING)
        if tag == 10:
            # Notes on a term say nothing to the kernel.
            return of[0]
        if tag == 11:
            name, index = self.name(module, fields[0]), module.number(fields[1])
            return self._term(
                (tag, name, index, *of),
                f'"proj":{{"idx":{index},"struct":{of[0]},"typeName":{name}}}',
                tuple(of),
                name,
            )
        raise OleanError(f"{module.name} has a term of kind {tag}, which no checked proof has")

    def constants(self, terms: Iterable[int]) -> tuple[set[int], set[str]]:
        """The names of the constants in terms, and of those that their literals rest on."""
        seen: set[int] = set()
        found: set[int] = set()
        literals: set[str] = set()
        stack = list(terms)
        while stack:
            term = stack.pop()
            if term in seen:
                continue
            seen.add(term)
            constant = self._constant[term]
            if constant == _NUMBER:
                literals.update(OF_NUMBER)
            elif constant == _STRING:
                literals.update(OF_STRING)
            elif constant is not None:
                found.add(constant)
            stack.extend(self._within[term])
        return found, literals
