"""The exact vectors through all kernels' TTIR, with no tolerance at all."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from fractions import Fraction
from typing import Any

import committed
import pytest
from ttir_cases import kernel_name

from bridge.pages.kernel_coverage import EXACTLY_BY
from bridge.ttir.rational import RationalDomain, logarithm
from bridge.ttir.vectors import SPLIT, differences, not_run
from bridge.vectors.model.attention import Vector
from pyimpl.backends.kernels.parts.launch import Launch

pytestmark = pytest.mark.compiled

# The forward kernel (with dropout), varlen, paged with combine, and those of the backward pass;
# then the decoding and combining ones on blocks and changing keys, and functions inside kernels.
QUICK = (
    "causal", "sink-tiles", "dropout", "varlen", "paged", "gradient",
    "cascade", "merge", "cache-edits", "cache-window", "philox", "tile-bounds",
)  # fmt: skip
ROWS = set(committed.names("sampled"))
SHARDS = set(committed.names("shards"))
EXACT = [name for name in committed.names(model="exact") if name not in ROWS | SHARDS]
LAYERS = {
    "cached-decoding", "decoder-layer", "decoder-stack", "encoder-layer", "encoder-stack",
    "feed-forward", "layer-norm", "linear", "multi-head-layer", "transformer",
    "transformer-positions", "transformer-tied",
}  # fmt: skip
BOUNDS = set(committed.names()) - set(committed.names(model="exact")) - LAYERS - ROWS


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", QUICK)
def test_quick_families(name: str) -> None:
    family = committed.family(name)
    ran: list[Launch] = []
    assert list(differences(family.vectors[0], ran=ran.append)) == []
    # The page about coverage says which kernels these are.
    kernels = {kernel_name(launch) for launch in ran} - {None}
    assert kernels == set(EXACTLY_BY[family.operation])


def test_padding_of_a_ragged_tile_of_keys_has_no_weight_above_1() -> None:
    """Its scores are 0, above the log-sum-exp of every query; the queries are a whole tile, which
    is taken without mask code elsewhere."""
    assert list(differences(committed.vector("gradient-dropout-011"))) == []


def test_a_logarithm_of_a_power_of_two_is_a_number() -> None:
    """A state of one key may refer to a larger score that has gone: its m + log₂ l is the key's."""
    assert logarithm(1, Fraction(1, 2), 1) == 0
    assert logarithm(2, Fraction(1, 8), 0) == -1
    assert logarithm(0, 4, 1) == logarithm(2, 1, 1)
    assert logarithm(0, 3, 0) not in (1, 2)
    assert list(differences(committed.vector("cache-window-003"))) == []


def test_wholes_of_logarithms_are_compared_without_their_powers_of_two() -> None:
    """2 to the power of such a number is in no memory."""
    large, domain = Fraction(10**40, 7), RationalDomain()
    one, other = logarithm(large, 1, 1), logarithm(-large, 1, 1)
    assert not domain.equal_one(one, other)
    assert domain.max_one(other, one) == one


def test_splits_and_their_combination() -> None:
    assert list(differences(committed.family(SPLIT).vectors[0], splits=3)) == []


@pytest.mark.thorough
def test_all_splits() -> None:
    for vector in committed.family(SPLIT).vectors:
        assert list(differences(vector, splits=3)) == [], vector.id


@pytest.mark.thorough
@pytest.mark.parametrize("name", EXACT)
def test_all_families(name: str) -> None:
    for vector in committed.family(name).vectors:
        assert list(differences(vector)) == [], vector.id


def test_every_exact_vector_is_run_and_of_the_others_it_is_said_why_not() -> None:
    families, vectors = defaultdict(set), 0
    for family in committed.everything():
        for vector in family.vectors:
            reason = not_run(vector)
            assert (reason is None) == (family.name in EXACT), vector.id
            vectors += reason is None
            if reason is not None:
                families[reason.partition(":")[0]].add(family.name)
    assert families == {
        "a layer": LAYERS,
        "its numbers are known between bounds": BOUNDS,
        "some rows of several heads": ROWS,
        "shards of a sequence": SHARDS,
    }
    assert vectors == sum(len(family.vectors) for family in committed.families(*EXACT))


def test_a_vector_that_is_not_run_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="softcap-000 cannot run: its numbers are known between"):
        list(differences(committed.vector("softcap-000")))


def test_an_operation_without_a_kernel_is_said_to_be_one() -> None:
    @dataclasses.dataclass(frozen=True)
    class Convolution(Vector):
        operation = "convolution"

    vector = Convolution("a-000", "a", "A.f", "a", "None.", "exact")
    assert not_run(vector) == "no kernel is known for convolution"


def _other(x: Any) -> Any:
    """Other numbers, words or letters of the same shape."""
    if isinstance(x, str):
        return x.translate(str.maketrans("um-", "-um"))
    return tuple(map(_other, x)) if isinstance(x, tuple) else x + 1


@pytest.mark.parametrize(
    ("name", "field", "said"),
    [
        ("causal", "v", "head 0: output["),
        ("paged", "v", "paged: output["),
        ("cascade", "prefix_v", "cascade: output["),
        ("cascade", "suffix_k", "cascade: log-sum-exp["),
        ("philox", "expected", "words of counter 0 are (1713891541, "),
        ("tile-bounds", "expected", "visited by tile 0 are m---, not "),
    ],
)
def test_a_changed_number_is_found(name: str, field: str, said: str) -> None:
    vector = committed.family(name).vectors[0]
    changed: Any = dataclasses.replace(vector, **{field: _other(getattr(vector, field))})
    assert any(sentence.startswith(said) for sentence in differences(changed))


@pytest.mark.parametrize("name", ["merge", "cache-edits"])
def test_a_changed_state_is_found(name: str) -> None:
    vector: Any = committed.family(name).vectors[0]
    states = vector.expected if isinstance(vector.expected, tuple) else (vector.expected,)
    changed = [dataclasses.replace(state, l=state.l + 1) for state in states]
    expected = changed[0] if name == "merge" else (states[0], *changed[1:])
    sentences = list(differences(dataclasses.replace(vector, expected=expected)))
    first = {"merge": "merged: ", "cache-edits": "after change 1: "}[name]
    assert sentences
    assert all(sentence.startswith(first) for sentence in sentences)
    assert any("log-sum-exp" in sentence for sentence in sentences)
