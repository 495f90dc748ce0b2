"""Private names of the library, of which no two modules have the same."""

from __future__ import annotations

import re
from collections import defaultdict

from checkout_copy import ROOT

_PRIVATE = re.compile(
    r"^(?:@\[[^\]]*\] ?)?private (?:noncomputable )?"
    r"(?:theorem|def|abbrev|instance|structure|inductive) (\S+)"
)


def private_names(text: str) -> list[str]:
    """The private declarations of a module, with their namespaces."""
    found, inside = [], list[str]()
    for line in text.splitlines():
        kind, _, name = line.partition(" ")
        if kind == "namespace":
            inside.append(name)
        elif kind == "end" and inside and inside[-1] == name:
            inside.pop()
        elif match := _PRIVATE.match(line):
            found.append(".".join([*inside, match[1]]))
    return found


def test_private_names_have_their_namespaces() -> None:
    text = "namespace A\nnamespace B.C\n@[simp] private theorem x : 1 = 1 := rfl\nend B.C\n"
    text += "section\nprivate noncomputable def y := 1\nend\nend A\nprivate abbrev z := 2\n"
    assert private_names(text) == ["A.B.C.x", "A.y", "z"]


def test_no_two_modules_have_a_private_name_in_common() -> None:
    """Where the embedded Lean reads all modules with their private parts, as the index and the
    translation do, it knows only one of two such declarations."""
    modules = defaultdict(list)
    for path in sorted((ROOT / "Attention").rglob("*.lean")):
        if "WrongVariants" not in path.parts:
            for name in private_names(path.read_text("utf-8")):
                modules[name].append(path.stem)
    assert len(modules) > 500
    assert {name: found for name, found in modules.items() if len(found) > 1} == {}
