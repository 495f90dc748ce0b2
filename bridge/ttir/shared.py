"""Several texts of a kernel with one definition where they agree.

Texts of one kernel compute mostly the same values: a window changes the bounds of the loops and
the mask, packed sequences change addresses. If an earlier text has the same definition, apart from
the names that it uses, the definition is not written again but taken from that text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bridge.ttir.lean import Translation
from bridge.ttir.lean_text import DEF

# The names of all arguments of all texts, of which a text uses its own, and of its pointers.
ARGUMENTS = "Forward.Args"
POINTERS = "Forward.Pointers"
_DEFINED = re.compile(rf"(?:{re.escape(DEF)}|abbrev) ([\w.]+)")


@dataclass(frozen=True)
class Shared:
    """The definitions of a text that no earlier one has; uses: the earlier ones it takes some
    from."""

    definitions: list[str]
    uses: list[str]


def fields_of(translations: Sequence[Translation], order: Sequence[str]) -> dict[str, str]:
    """All arguments of the texts with their types: the kernel's parameters in their order, then
    the arguments that the translation adds."""
    found: dict[str, str] = {}
    for translation in translations:
        found |= translation.fields
    given = [name for name in order if name in found and not name.startswith("BLOCK_")]
    return {name: found[name] for name in (*given, *(x for x in found if x not in given))}


def pointers_of(translations: Sequence[Translation], order: Sequence[str]) -> list[str]:
    """All pointers of the texts, among the kernel's parameters, in their order."""
    found = {name for translation in translations for name in translation.pointers}
    return [name for name in order if name in found]


def share(translations: Sequence[Translation]) -> list[Shared]:
    """Each text's own definitions. Each text has the parts of its loops and its stores under its
    own name, even if another text has the same: the proofs begin there."""
    known: dict[str, str] = {}
    names = [translation.name for translation in translations]
    result = []
    for translation in translations:
        definitions = _own(translation, known)
        uses = [
            name
            for name in names
            if name != translation.name
            and any(re.search(rf"\b{name}\.", text) for text in definitions)
        ]
        result.append(Shared(definitions, sorted(uses)))
    return result


def _own(translation: Translation, known: dict[str, str]) -> list[str]:
    """The definitions that are not known yet, and those that each text has. `known`, from the text
    of a definition to its name, gets these too."""
    named = re.compile(rf"\b{translation.name}(?:\.[A-Za-z_]\w*)+")
    renamed = {f"{translation.name}.Args": ARGUMENTS, f"{translation.name}.Pointers": POINTERS}

    def current(found: re.Match[str]) -> str:
        return renamed.get(found[0], found[0])

    definitions = []
    for definition in (*translation.definitions, *translation.conditions):
        text = named.sub(current, definition)
        defined = _DEFINED.search(text)
        if defined is None:
            raise ValueError(f"no definition: {text}")
        meaning = text.replace(defined[0], "", 1)
        if text.startswith("/--") and not defined[0].startswith("abbrev"):
            definitions.append(text)
        elif meaning in known:
            renamed[defined[1]] = known[meaning]
        else:
            known[meaning] = defined[1]
            definitions.append(text)
    return definitions
