"""The binders that a theorem has from `variable` and `include` commands, read from text alone.

Lean's rule: a theorem has the variables that its statement names, those that `include` names, those
that the types of these name, and each instance all of whose variables it has; `omit` takes binders
away. A name that is bound within a statement (`∀ i`, `fun x`) may hide a variable of the same name:
then the binder stands here, and Lean's theorem has it not.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace

from bridge.source.brackets import CLOSING, OPENING, closing_bracket
from bridge.source.lean import NAME, Written

_COLUMNS = 100


@dataclass(frozen=True)
class Binder:
    """Names in one pair of brackets; none for an instance without a name. type: the text behind the
    colon, or the whole of a nameless instance."""

    opening: str
    names: tuple[str, ...]
    type: str

    @property
    def text(self) -> str:
        said = f"{' '.join(self.names)} : {self.type}" if self.names else self.type
        return f"{self.opening}{said}{CLOSING[OPENING.index(self.opening)]}"


def binders(text: str) -> tuple[list[Binder], str]:
    """The binders at the beginning of a text, and the text behind them."""
    found = []
    text = text.lstrip()
    while text and text[0] in OPENING:
        end = closing_bracket(text)
        found.append(_binder(text[0], " ".join(text[1:end].split())))
        text = text[end + 1 :].lstrip()
    return found, text


def _binder(opening: str, inside: str) -> Binder:
    names, colon, type = inside.partition(" : ")
    if colon and all(NAME.fullmatch(name) or name == "_" for name in names.split()):
        return Binder(opening, tuple(names.split()), type)
    if opening != "[":
        # `variable {n}`: another kind of brackets for a variable that is declared already.
        return Binder(opening, tuple(inside.split()), "")
    return Binder(opening, (), inside)


def _declarations(commands: str) -> list[Binder]:
    """The variables that `variable` commands declare, one name a binder, in their last brackets."""
    found: list[Binder] = []
    for command in re.split(r"\bvariable\b", commands):
        for one in binders(command)[0]:
            if not one.names:
                found.append(one)
            elif one.type:
                found += (replace(one, names=(name,)) for name in one.names)
            else:
                found = [
                    replace(old, opening=one.opening) if set(old.names) & set(one.names) else old
                    for old in found
                ]
    return found


def _names_in(text: str) -> set[str]:
    """Names in a text; of `x.f` also `x`."""
    return {part for name in NAME.findall(text) for part in (name, name.partition(".")[0])}


def of_variables(theorem: Written) -> list[Binder]:
    """The binders of a theorem that stand before it, in their order; those beside each other with
    one type together."""
    own, rest = binders(theorem.statement or "")
    bound: set[str] = set()
    wanted = set(theorem.included)
    for one in own:
        wanted |= _names_in(one.type) - bound
        bound |= set(one.names)
    wanted |= _names_in(rest) - bound
    omitted = {" ".join(one.split()) for one in theorem.omitted}
    declared = [
        one
        for one in _declarations(theorem.variables)
        if one.text not in omitted and not set(one.names) & omitted
    ]
    variables = {name for one in declared for name in one.names}
    while True:
        kept = [one for one in declared if _is_had(one, wanted, variables)]
        more = wanted.union(*(_names_in(one.type) for one in kept), *(one.names for one in kept))
        if more == wanted:
            return list(_together(kept))
        wanted = more


def _is_had(one: Binder, wanted: set[str], variables: set[str]) -> bool:
    if set(one.names) & wanted:
        return True
    return one.opening == "[" and _names_in(one.type) & variables <= wanted


def _together(found: list[Binder]) -> Iterator[Binder]:
    last: Binder | None = None
    for one in found:
        if last and last.names and one.names and one == replace(last, names=one.names):
            last = replace(last, names=(*last.names, *one.names))
            continue
        if last is not None:
            yield last
        last = one
    if last is not None:
        yield last


def whole(theorem: Written, code: str) -> str:
    """The code of a statement (`theorem NAME …`, without the proof) with the binders that it has
    from `variable` and `include` commands before its own."""
    assert theorem.name is not None
    before = of_variables(theorem)
    if not before:
        return code
    head = re.match(rf"\s*\S+\s+{NAME.pattern}", code)
    assert head is not None, code
    said = " ".join(one.text.replace(" ", "\0") for one in before)
    width = _COLUMNS - 4
    lines = textwrap.wrap(said, width, break_long_words=False, break_on_hyphens=False)
    rest = code[head.end() :].lstrip()
    if rest.startswith(":"):
        lines[-1] += " :"
        rest = rest[1:].lstrip()
    return "\n    ".join((head[0], *(line.replace("\0", " ") for line in lines), rest))
