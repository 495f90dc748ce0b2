"""Lean's names in Python."""

from __future__ import annotations

import builtins
import keyword
import re
import unicodedata
from collections.abc import Collection, Container

from bridge.translation.errors import UntranslatableError

_GREEK = {"α": "alpha", "β": "beta", "δ": "delta", "Δ": "delta", "ε": "eps", "ν": "nu",
          "η": "eta", "Σ": "sigma", "τ": "tau"}  # fmt: skip
_TAKEN = frozenset(keyword.kwlist) | frozenset(dir(builtins))


def identifier(name: str) -> str:
    """A name of a variable: Greek letters are written out, primes become underscores.

    Raises UntranslatableError for a name with a sign that Python does not know.
    """
    plain = "".join(_GREEK.get(c, c) for c in name).replace("'", "_")
    # ⱼ and ₀ become _j and _0.
    plain = re.sub(r"[ₐ-ₜⱼ₀-₉]+", lambda m: "_" + unicodedata.normalize("NFKC", m.group()), plain)
    if not plain.isascii() or not plain.isidentifier():
        raise UntranslatableError(f"the variable {name} has no name in Python")
    # One capital letter is a matrix, dQ its derivative; colTiles is col_tiles.
    plain = snake(plain) if re.match("[a-z][a-z0-9]", plain) else plain
    return f"{plain}_" if plain in _TAKEN else plain


def snake(name: str) -> str:
    """splitKV → split_kv."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def own(name: str, types: Collection[str]) -> list[str]:
    """The parts of a declared name that Python keeps: Attention.Spec.Online.step → step, and
    Attention.Spec.Mask.causal → Mask, causal, since Mask is a type."""
    path = name.split(".")
    kept = [space for n, space in enumerate(path[:-1], 1) if ".".join(path[:n]) in types]
    return [*kept, path[-1]]


def function(name: str, types: Collection[str]) -> str:
    """The function that a definition becomes."""
    return identifier("_".join(map(snake, own(name, types))))


def class_(name: str) -> str:
    """The class that a type becomes."""
    return name.rsplit(".", 1)[-1]


def constructor(name: str) -> str:
    """The class of one constructor among several: MergeTree.leaf → MergeTreeLeaf."""
    of, last = name.split(".")[-2:]
    return of + last[0].upper() + last[1:]


def member(name: str) -> str:
    """A constructor without fields: topLeft → TOP_LEFT."""
    return snake(name.rsplit(".", 1)[-1]).upper()


def fresh(name: str, taken: Container[str]) -> str:
    """The name, with a number if it is taken."""
    if name not in taken:
        return name
    number = 1
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
