"""The proofs about the compiled forward kernel, of edited sources: those of mutants fail at a goal,
those of harmless edits hold as they stand."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from lean_copies import ROOT, Copy, copy
from ttir_cases import MUTANTS, plant

from bridge.conformance.mutants.planting import Mutant
from bridge.ttir import texts
from bridge.ttir.lean import numeric
from bridge.ttir.syntax import TtirError

pytestmark = pytest.mark.compiled

_LOOP = "backends/kernels/parts/loop.py"
# Of the launcher, which Lean knows nothing of (`bridge.ttir.given` looks at the arguments that it
# passes), or of options for which there is no text with a proof: the texts are the same.
UNSEEN = {
    *("wrong-scale", "omitted-scale", "doubled-scale", "base-of-exponential"),
    *("causal-aligned-bottom-right", "alignment-swapped"),
    *("mask-inverted", "bias-base", "softcap-omitted", "alibi-sign", "alibi-signed-distance"),
    *("sink-omitted",),
    # Of other kernels.
    *("packed-heads-modulo", "sink-in-every-split", "last-split-dropped", "lengths-ignored"),
    *("page-table-ignored", "page-of-a-tile-ignored", "first-tile-of-each-page"),
    "parts-not-normalised",
}
# Another text, which means the same where there is no softcap.
RENAMED = "softcap-after-masking"
# There is no +∞ in Lean's floats, and no logarithm to base 2.
REFUSED = {"empty-row-lse-infinite", "empty-split-lse-infinite", "lse-base-2"}
FAILING = MUTANTS.keys() - UNSEEN - REFUSED - {RENAMED}

_SCORES = """        s = dot(rows.q, k)
        factor = scores.scale
        if CHECKED or SCATTERED or scores.cap is not None or rows.slopes is not None:
            s = score(s, keys, rows, scores)
            factor = None
"""
_VALUES = """        if CHECKED or PAGE_SIZE is not None or not EVEN_V:
            v = tl.load(value_ptrs, mask=v_inside, other=0.0)
        else:
            v = tl.load(value_ptrs)
"""
_FIRST = """    first = 0
    if left is not None:
        first = tl.maximum(row_first + shift - left, 0)
    return first
"""
_SHIFT = "shift = shift + kv_len - q_len"
_NAMED = "problem = shift + kv_len - q_len\n            shift = problem"
_RENAMED = re.sub(r"\bfirst\b", "problem", _FIRST)


def _edit(name: str, file: str, old: str, new: str, count: int = 1) -> Mutant:
    return Mutant(name, "changes nothing", file, old, new, count)


HARMLESS = {
    edit.name: edit
    for edit in (
        # To names that the translation has for a loop's end, and proofs for a text's arguments.
        _edit("variable of a loop renamed", _LOOP, "alpha", "result", 3),
        _edit("variable renamed", "backends/kernels/parts/bounds.py", _FIRST, _RENAMED),
        _edit("packed variable renamed", "backends/kernels/forward.py", _SHIFT, _NAMED),
        _edit("loads reordered", _LOOP, _SCORES + _VALUES, _VALUES + _SCORES),
        _edit(
            "another tile size", "backends/kernels/forward.py",
            "by_size(dim, (32, 32, 4, 2), (32, 16, 8, 2),",
            "by_size(dim, (32, 32, 4, 2), (64, 32, 8, 2),",
        ),
        _edit("comment", _LOOP, "    l = alpha * l", "    # The denominator.\n    l = alpha * l"),
        _edit(
            "equivalent bound", _LOOP,
            "rows.positions[:, None] - scores.left <= keys[None, :]",
            "keys[None, :] >= rows.positions[:, None] - scores.left",
        ),
        MUTANTS[RENAMED],
    )
}  # fmt: skip
# Triton or the translation makes the same text of them, and Lean is not needed. The others make
# another one.
SAME = ("comment", "another tile size", "equivalent bound")
# The quick mutant is of two texts, which none but their theorems need: the others are neither built
# nor proved anew. The quick edit leaves nothing to prove.
QUICK = "comment"
QUICK_MUTANT = "packed-alignment-one-off"
# Lean shows the equation between a text and `Problem` that does not hold; any other message (of a
# name that it does not know, of a text that it cannot read) is no failed proof.
_AT_A_GOAL = re.compile(r"\Anot so by unfolding:\n .+ =\s.+\n", re.DOTALL)


def changes() -> dict[str, str]:
    """By path, the texts that are now others than the committed."""
    wanted = texts.texts()
    return {path: wanted[path] for path in texts.differing_files(ROOT, wanted)}


@pytest.fixture(scope="module")
def lean(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    with copy(tmp_path_factory.mktemp("lean")) as made:
        yield made


def test_the_committed_texts_are_what_triton_compiles() -> None:
    assert changes() == {}


def _quick(chosen: str, names: set[str]) -> list[object]:
    return [
        name if name == chosen else pytest.param(name, marks=pytest.mark.thorough)
        for name in sorted(names)
    ]


@pytest.mark.lean
@pytest.mark.parametrize("name", _quick(QUICK_MUTANT, FAILING))
def test_the_proof_of_a_mutant_fails_at_a_goal(name: str, lean: Copy) -> None:
    with plant(MUTANTS[name]):
        found = changes()
    assert found
    built = lean.build(found, all_of_them=False)
    assert not built.ok
    for module in built.modules:
        # The mutated text is Lean: it is the proof that fails.
        assert module.ok or "Generated" not in module.name
    errors = [message.text for message in built.messages if message.severity == "error"]
    assert errors
    assert all(map(_AT_A_GOAL.search, errors)), errors


@pytest.mark.thorough
@pytest.mark.lean
@pytest.mark.parametrize("name", _quick(QUICK, set(HARMLESS)))
def test_the_proof_of_a_harmless_edit_holds(name: str, lean: Copy) -> None:
    with plant(HARMLESS[name]):
        found = changes()
        for text in texts.TEXTS:
            # With the tiles of the launcher.
            launch = text.launch()
            here = numeric(texts.kernel_of(launch), text.name)
            assert here == texts.translation(text).at(texts.sizes_of(launch))
    assert bool(found) == (name not in SAME)
    if found:
        built = lean.build(found, all_of_them=name != QUICK)
        assert built.ok, built.messages
        assert not {path.removesuffix(".lean").replace("/", ".") for path in found} - {*built.built}


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(UNSEEN))
def test_what_is_no_part_of_a_text_changes_none(name: str) -> None:
    with plant(MUTANTS[name]):
        assert changes() == {}


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_has_no_lean_is_refused(name: str) -> None:
    with plant(MUTANTS[name]), pytest.raises(TtirError, match="has no translation"):
        changes()


@pytest.mark.parametrize(
    "text",
    [
        text if not n else pytest.param(text, marks=pytest.mark.thorough)
        for n, text in enumerate(texts.TEXTS)
    ],
    ids=lambda text: text.name,
)
def test_hints_change_no_text(text: texts.Text) -> None:
    """16 divides no stride of these tensors."""
    launch = text.launch(blocks=(32, 64))
    shape = {"ALIGNED": False, "PAIRS_ALIGNED": False}
    unaligned = type(launch)(**{**vars(launch), "constants": {**launch.constants, **shape}})
    assert numeric(texts.kernel_of(unaligned), text.name) == texts.translation(text).at(
        texts.sizes_of(launch)
    )
