"""Terms of the stored modules as lines of lean4export's format (3.1.0): each name, level and
expression once, under a number of its own, before its uses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.audit.second_kernel.olean import Module, OleanError

_BINDERS = ('"default"', '"implicit"', '"strictImplicit"', '"instImplicit"')
# The constants on which a literal rests: the kernel makes a string of characters, and those of
# numbers.
OF_NUMBER = ("Nat",)
OF_STRING = ("Char.ofNat", "String.ofList")
# Of each kind of expression that is made of others: where those are among the fields of the stored
# object, and in its key.
_PARTS = {
    5: slice(0, 2), 6: slice(1, 3), 7: slice(1, 3), 8: slice(1, 4), 10: slice(1, 2),
    11: slice(2, 3),
}  # fmt: skip
_KEY_PARTS = {5: slice(1, 3), 6: slice(2, 4), 7: slice(2, 4), 8: slice(2, 5), 11: slice(3, 4)}
_NONE = slice(0)
# On a stack, in the place of an address: the parts of the expression begun last are done.
_END = -1

Line = Callable[[str], object]
# Of an expression: its kind, and the numbers of all that it is made of, or its literal.
_Key = tuple[Any, ...]


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
        self._terms: dict[_Key, int] = {}
        # The keys of expressions, by number.
        self._keys: list[_Key] = []
        self._memos: dict[Module, _Memo] = {}

    def _memo(self, module: Module) -> _Memo:
        if (known := self._memos.get(module)) is None:
            known = self._memos[module] = _Memo()
        return known

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

    def term(self, module: Module, root: int) -> int:
        """The number of an expression. Terms are deep: parts still to be done are on a stack."""
        memo, terms, keys = self._memo(module).terms, self._terms, self._keys
        constructor, write = module.constructor, self._write
        stack = [root]
        begun: list[tuple[int, int, Sequence[int], bytes, Sequence[int]]] = []
        while stack:
            address = stack.pop()
            if address == _END:
                address, tag, fields, scalars, parts = begun.pop()
            elif address in memo:
                continue
            else:
                tag, fields, scalars = constructor(address)
                parts = fields[_PARTS.get(tag, _NONE)]
                if waiting := [part for part in parts if part not in memo]:
                    begun.append((address, tag, fields, scalars, parts))
                    stack.append(_END)
                    stack += waiting[::-1]
                    continue
            of = [memo[part] for part in parts]
            if tag == 10:
                # Notes on a term say nothing to the kernel.
                memo[address] = of[0]
                continue
            key = (5, *of) if tag == 5 else self._key(module, tag, fields, scalars, of)
            number = terms.get(key)
            if number is None:
                number = terms[key] = len(keys)
                keys.append(key)
                write(f'{{"ie":{number},{_text(key)}}}')
            memo[address] = number
        return memo[root]

    def _key(
        self, module: Module, tag: int, fields: Sequence[int], scalars: bytes, of: list[int]
    ) -> _Key:
        """Of an expression whose parts have the numbers `of`."""
        match tag:
            case 6 | 7:
                return (tag, self.name(module, fields[0]), *of, scalars[8])
            case 4:
                levels = (self.level(module, one) for one in module.list(fields[1]))
                return (tag, self.name(module, fields[0]), *levels)
            case 0:
                return (tag, module.number(fields[0]))
            case 3:
                return (tag, self.level(module, fields[0]))
            case 8:
                return (tag, self.name(module, fields[0]), *of)
            case 9:
                kind, (value,), _ = module.constructor(fields[0])
                return (tag, module.number(value) if kind == 0 else module.string(value))
            case 11:
                return (tag, self.name(module, fields[0]), module.number(fields[1]), *of)
        raise OleanError(f"{module.name} has a term of kind {tag}, which no checked proof has")

    def constants(self, terms: Iterable[int]) -> tuple[set[int], set[str]]:
        """The names of the constants in terms, and of those that their literals rest on."""
        keys = self._keys
        seen = set(terms)
        found: set[int] = set()
        literals: set[str] = set()
        stack = list(seen)
        while stack:
            key = keys[stack.pop()]
            tag = key[0]
            if tag in (4, 11):
                found.add(key[1])
            elif tag == 9:
                literals.update(OF_STRING if isinstance(key[1], str) else OF_NUMBER)
            for part in key[_KEY_PARTS.get(tag, _NONE)]:
                if part not in seen:
                    seen.add(part)
                    stack.append(part)
        return found, literals


def _text(key: _Key) -> str:
    """An expression as the format says it, without its number."""
    match key:
        case (5, function, argument):
            return f'"app":{{"arg":{argument},"fn":{function}}}'
        case (6 | 7 as tag, name, type_, body, binder):
            kind = "lam" if tag == 6 else "forallE"
            return (
                f'"{kind}":{{"binderInfo":{_BINDERS[binder]},"body":{body},"name":{name},'
                f'"type":{type_}}}'
            )
        case (4, name, *levels):
            said = json.dumps(levels, separators=(",", ":"))
            return f'"const":{{"name":{name},"us":{said}}}'
        case (0, index):
            return f'"bvar":{index}'
        case (3, level):
            return f'"sort":{level}'
        case (8, name, type_, value, body):
            return (
                f'"letE":{{"body":{body},"name":{name},"nondep":false,"type":{type_},'
                f'"value":{value}}}'
            )
        case (9, str(text)):
            return f'"strVal":{json.dumps(text)}'
        case (9, number):
            return f'"natVal":"{number}"'
        case (11, name, index, of):
            return f'"proj":{{"idx":{index},"struct":{of},"typeName":{name}}}'
    raise AssertionError(key)
