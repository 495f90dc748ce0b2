"""A case of the vectors is drawn from the hash of its own name, so that a new case moves no other:
the committed inputs recomputed from their names, and families with cases added, taken out and
exchanged."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from committed import family

from bridge.toolchain.embedded import EmbeddedLean
from bridge.vectors.format.rules import fnv1a
from bridge.vectors.model.attention import AttentionVector

ROOT = Path(__file__).parents[3]
# From the reference code of the hash (Fowler, Noll and Vo), 64 bits.
KNOWN = {
    "": 0xCBF29CE484222325,
    "a": 0xAF63DC4C8601EC8C,
    "b": 0xAF63DF4C8601F1A5,
    "foobar": 0x85944171F73967E8,
}
NOT_ASCII = "λ→∀"


class Draws:
    """The draws of `Attention/Vectors/Random.lean` for a name."""

    def __init__(self, name: str) -> None:
        self.state = fnv1a(name)

    def below(self, n: int) -> int:
        self.state = (6364136223846793005 * self.state + 1442695040888963407) % 2**64
        return self.state // 2**33 % n

    def integers(self, rows: int, columns: int) -> list[list[Fraction]]:
        return [[Fraction(self.below(3) - 1) for _ in range(columns)] for _ in range(rows)]

    def values(self, rows: int, columns: int) -> list[list[Fraction]]:
        return [
            [Fraction(self.below(129) - 64, 2 ** self.below(4)) for _ in range(columns)]
            for _ in range(rows)
        ]


def kind(vector: AttentionVector) -> str:
    return "plain" if vector.mask.kind == "none" else "causal"


# The names of the cases of a family, by their kind.
NAMES: dict[str, Callable[[AttentionVector], str]] = {
    "causal": lambda v: f"sizes ({v.q_len}, {v.head_dim})",
    "unequal-lengths": lambda v: f"{kind(v)} ({v.q_len}, {v.kv_len})",
    "scales": lambda v: f"{kind(v)} ({v.scale}, {v.head_dim})",
}


@pytest.mark.parametrize("text", KNOWN)
def test_the_hash_is_the_known_one(text: str) -> None:
    assert fnv1a(text) == KNOWN[text]


@pytest.mark.parametrize("name", NAMES)
def test_each_case_is_drawn_from_its_own_name(name: str) -> None:
    vectors = family(name).vectors
    assert len(vectors) >= 18
    for vector in vectors:
        assert isinstance(vector, AttentionVector)
        draws = Draws(f"{name}/{NAMES[name](vector)}")
        drawn = [
            draws.integers(vector.q_len, vector.head_dim),
            draws.integers(vector.kv_len, vector.head_dim),
            draws.values(vector.kv_len, vector.value_dim),
        ]
        assert drawn == [list(map(list, m)) for m in (vector.q, vector.k, vector.v)], vector.id


PROGRAM = """public import Small.Family
public section
namespace Small.Program
open Attention.Vectors

def ofCases (cases : List (Named String)) : Family String :=
  { name := "small", about := "", theoremId := "", cases }

def lengths (entries : List (Nat × Nat)) : List (Named String) :=
  each "lengths" entries fun (m, n) => do
    return s!"{(m, n)}: {← intRows 9 m n} {← valueRows n 1}"

def byName (entries : List (String × Nat)) : List (Named String) :=
  eachNamed entries fun (name, n) => return s!"{name}: {← draws (below 1000) n}"

def families : List (String × Family String) := [
  ("plain", ofCases (lengths [(1, 2), (2, 2), (3, 1)] ++ byName [("short", 2), ("long", 9)])),
  ("more", ofCases (lengths [(7, 7), (1, 2), (5, 1), (2, 2), (3, 1), (1, 1)]
    ++ byName [("first", 1), ("short", 2), ("middle", 3), ("long", 9)])),
  ("fewer", ofCases (lengths [(2, 2)] ++ byName [("long", 9)])),
  ("exchanged", ofCases (byName [("long", 9), ("short", 2)]
    ++ lengths [(3, 1), (1, 2), (2, 2)])),
  ("other", { ofCases (lengths [(1, 2), (2, 2), (3, 1)]) with name := "other" }),
  ("changed", ofCases ((lengths [(1, 2)]).map (Named.map fun case => s!"changed {case}"))),
  ("twice", ofCases (lengths [(1, 2), (2, 2), (1, 2)]))]

def main : List String → IO Unit
  | [file] => do
    let mut text := ""
    for hashed in TEXTS do
      text := text ++ s!"hash={fnv1a hashed}\\n"
    for (name, family) in families do
      match family.draw with
      | .ok cases => for case in cases do text := text ++ s!"{name}={case}\\n"
      | .error e => text := text ++ s!"{name}={e}\\n"
    IO.FS.writeFile file text
  | _ => throw (IO.userError "expected a file")

end Small.Program
"""


@pytest.fixture(scope="module")
def drawn(
    exchange_project: Callable[[dict[str, str]], EmbeddedLean],
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, list[str]]:
    """The output of a program with the project's own `Random` and `Family`, by kind of line."""
    sources = {
        name: (ROOT / "Attention" / "Vectors" / f"{name}.lean")
        .read_text("utf-8")
        .removeprefix("module\n")
        .replace("import Attention.Vectors.", "import Small.")
        for name in ("Random", "Family")
    }
    texts = ", ".join(f'"{text}"' for text in [*KNOWN, NOT_ASCII])
    lean = exchange_project({**sources, "Program": PROGRAM.replace("TEXTS", f"[{texts}]")})
    result = lean.build()
    assert result.ok, [str(m) for m in result.messages]
    file = tmp_path_factory.mktemp("drawn") / "drawn"
    lean.run("Small.Program", [str(file)])
    found: dict[str, list[str]] = {}
    for line in file.read_text("utf-8").splitlines():
        name, _, text = line.partition("=")
        found.setdefault(name, []).append(text)
    return found


@pytest.mark.thorough
def test_lean_computes_the_known_hashes(drawn: dict[str, list[str]]) -> None:
    assert drawn["hash"] == [str(number) for number in [*KNOWN.values(), fnv1a(NOT_ASCII)]]


@pytest.mark.parametrize("family", ["more", "fewer", "exchanged"])
def test_cases_that_come_go_and_move_leave_the_others_as_they_are(
    drawn: dict[str, list[str]], family: str
) -> None:
    plain = set(drawn["plain"])
    assert len(plain) == len(drawn["plain"]) == 5
    sizes = {"more": (10, 5), "fewer": (2, 2), "exchanged": (5, 5)}
    assert (len(drawn[family]), len(plain & set(drawn[family]))) == sizes[family]


def test_another_family_draws_other_numbers_for_the_same_names(
    drawn: dict[str, list[str]],
) -> None:
    assert len(drawn["other"]) == 3
    assert not set(drawn["other"]) & set(drawn["plain"])


def test_a_change_of_a_case_draws_nothing_else(drawn: dict[str, list[str]]) -> None:
    assert drawn["changed"] == [f"changed {drawn['plain'][0]}"]


def test_two_cases_of_one_name_are_refused(drawn: dict[str, list[str]]) -> None:
    assert drawn["twice"] == ["small: two cases have the name 'lengths (1, 2)'"]
