"""The maps of a made-up library of four definitions and four listed theorems."""

from __future__ import annotations

from bridge.pages.map_data import SPEC, Definition, Maps, Theorem
from bridge.source.excerpt import Excerpt


def definition(name: str, *uses: str, operation: bool = True) -> Definition:
    lean = Excerpt(SPEC + name, "Attention/Spec/A.lean", 3, 5, "def …")
    used = tuple(SPEC + one for one in uses)
    return Definition(SPEC + name, "Attention.Spec.A", used, operation, True, lean)


def theorem(id: str, file: str, speaks_of: list[str], rests_on: list[str]) -> Theorem:
    spoken = tuple(SPEC + one for one in speaks_of)
    module = f"Attention.Proof.{file}"
    return Theorem(id, f"{module}.{id}", f"{id} < is so.", module, spoken, (), tuple(rests_on))


SMALL = Maps(
    {
        one.name: one
        for one in (
            definition("Row", operation=False),
            definition("weight", "Row"),
            definition("softmax", "Row", "weight"),
            definition("flash", "softmax"),
        )
    },
    {
        one.id: one
        for one in (
            theorem("sum", "Softmax", ["Row", "weight", "softmax"], []),
            theorem("safe", "Softmax", ["softmax"], ["sum"]),
            theorem("loop", "Flash", ["flash", "Row"], ["safe", "sum"]),
            theorem("alone", "Unheard", ["Row"], []),
        )
    },
    {},
    {},
)
