"""Fresh vectors: right, repeatable, and seen by nobody before; errors that they alone catch."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import committed
import pytest
import torch
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from test_cheats import able
from torch import Tensor

from bridge.conform import conform
from bridge.conformance.adapters.builtin import builtin
from bridge.conformance.adapters.callables import CallableAdapter
from bridge.conformance.adapters.emulated import FlashEmulated
from bridge.conformance.adapters.own import PyimplReference
from bridge.conformance.adapters.whole_batches import whole_batch
from bridge.conformance.drawing import draw
from bridge.conformance.drawing.fresh import COUNT, FAMILIES, Fresh
from bridge.conformance.functions.features import presume, probe
from bridge.conformance.judging.run import run
from bridge.conformance.outcomes.outcome import Conditions, Outcome, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.requests.request import Misuse, Request, choose_committed
from bridge.conformance.sandbox.session import Session
from bridge.conformance.tensors.batch import Batch, Outputs, array
from bridge.conformance.tensors.gradient_inputs import inputs_of
from bridge.conformance.tolerances.rounding_model import generous
from bridge.report.page import page
from bridge.vectors.exact import attention as exact
from bridge.vectors.model.attention import AttentionVector, Family
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.sampled import SampledGradientVector, SampledVector

# Of this seed the first vector at a real size has 3,440 queries, no mask and head_dim 64.
LARGE = Fresh(19, 2, large=True, names=("fresh-large",))


def failing_vectors(adapter: FlashEmulated, families: Any, dtype: str = "float32") -> set[str]:
    return {vector.family for vector in run(adapter, families, dtype).failures}


@settings(max_examples=12)
@given(st.integers(0, 1 << 40))
def test_the_results_are_those_of_the_definition(seed: int) -> None:
    """By the second derivation, which knows nothing of the Spec's translation."""
    for family in Fresh(seed, 8).families:
        for vector in family.vectors:
            assert exact.disagreements(vector) == []


@pytest.mark.thorough
@settings(max_examples=12)
@given(st.integers(0, 1 << 40), st.integers(1, 20))
def test_a_vector_depends_on_the_seed_and_its_number_alone(seed: int, count: int) -> None:
    first, more = Fresh(seed, count), Fresh(seed, 21)
    assert first.list_names() == more.list_names()[:count]
    known = inputs(more)
    assert inputs(first) == {id: known[id] for _, id in first.list_names()}
    (id,) = (id for _, id in first.list_names()[-1:])
    assert inputs(replace(first, ids=(id,))) == {id: known[id]}


@settings(max_examples=12)
@given(st.integers(0, 1 << 40), st.integers(0, 1 << 40))
def test_another_seed_draws_others(one: int, other: int) -> None:
    assert (inputs(Fresh(one, 4)) == inputs(Fresh(other, 4))) == (one == other)


def inputs(drawn: Fresh) -> dict[str, Any]:
    def plain(x: Any) -> Any:
        return x.tolist() if hasattr(x, "tolist") else x

    return {
        vector.id: [
            *(plain(getattr(vector, name)) for name in ("q", "k", "v", "scale")),
            getattr(vector, "masks", None) or getattr(vector, "mask", None),
        ]
        for family in drawn.families
        for vector in family.vectors
    }


def test_every_kind_of_mask_is_drawn() -> None:
    drawn = [v for f in Fresh(1, 300, names=("fresh",)).families for v in f.vectors]
    assert {v.mask.kind for v in drawn if isinstance(v, AttentionVector)} == set(draw.KINDS)


@pytest.mark.parametrize("name", ["pyimpl-reference", "sdpa-math", "flash-emulated"])
def test_right_functions_pass(name: str) -> None:
    result = run(builtin(name), Fresh(2, 40).families, "float32")
    assert [v.id for v in result.failures] == []
    judged = {v.family for v in result.vectors if v.status == "passed"}
    assert {"fresh", "fresh-batch", "fresh-precise", "fresh-natural"} <= judged
    assert ("fresh-gradient" in judged) == (name != "flash-emulated")
    if name == "pyimpl-reference":
        assert "fresh-options" in judged


def test_every_option_is_drawn() -> None:
    drawn = [v for f in Fresh(1, 200, names=("fresh-options",)).families for v in f.vectors]
    found = [v.options for v in drawn if isinstance(v, AttentionVector)]
    for option in ("softcap", "alibi", "bias", "sink"):
        assert {option} in found
    assert any(len(options) == 2 for options in found)


def test_a_function_without_a_scale_is_judged_on_fresh_vectors_too() -> None:
    features = presume(lambda query, key, value: value, ("float32",), "its signature")

    def no_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return value.new_zeros(*query.shape[:-1], value.shape[-1])

    adapter = CallableAdapter("zeros", no_attention, features.without(["gradients"]), generous)
    result = run(adapter, Fresh(7).families, "float32")
    assert {v.family for v in result.failures} == {"fresh-natural", "fresh-precise"}


def test_values_of_24_bits_are_for_formats_that_hold_them() -> None:
    result = run(FlashEmulated(), Fresh(2, 8).families, "bfloat16")
    reasons = {v.reason for v in result.vectors if v.family == "fresh-precise"}
    assert reasons == {"its inputs are not exact in bfloat16"}


def rounding(name: str) -> Callable[[], FlashEmulated]:
    """A function that rounds this input to 16 bits."""

    class RoundsAnInput(FlashEmulated):
        def run(self, batch: Batch) -> Outputs:
            rounded: Tensor = getattr(batch, name).bfloat16().float()
            return super().run(replace(batch, **{name: rounded}))

    return RoundsAnInput


class MixesUpTheBatch(FlashEmulated):
    """Right for one head of each entry of the batch, and for one entry."""

    def run(self, batch: Batch) -> Outputs:
        batch_size, heads = batch.key.shape[:2]
        if batch_size > 1 and heads > 1:
            batch = replace(batch, value=batch.value.flip(0))
        return super().run(batch)


class ZeroWhereItIsLarge(FlashEmulated):
    def run(self, batch: Batch) -> Outputs:
        found = super().run(batch)
        return Outputs(found.out * 0, found.lse) if batch.key.shape[-2] > 1100 else found


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("make", "caught"),
    [
        (rounding("query"), "fresh-precise"),
        (rounding("key"), "fresh-precise"),
        (rounding("value"), "fresh-precise"),
        (MixesUpTheBatch, "fresh-batch"),
    ],
)
def test_what_the_files_do_not_show(make: Callable[[], FlashEmulated], caught: str) -> None:
    some = committed.families("small-random", "ragged-tiles", "drawn")
    assert failing_vectors(make(), some) == set()
    assert failing_vectors(make(), Fresh(7).families) == {caught}


@pytest.mark.thorough
def test_a_real_size_shows_what_small_ones_do_not() -> None:
    (family,) = LARGE.families
    (vector,) = family.vectors
    assert isinstance(vector, SampledVector)
    assert vector.k.shape[2] > 3000
    assert len(vector.rows) < 10
    long = committed.families("long-keys")
    assert failing_vectors(ZeroWhereItIsLarge(), [*long, *Fresh(4).families]) == set()
    assert failing_vectors(ZeroWhereItIsLarge(), [family]) == {"fresh-large"}
    assert failing_vectors(FlashEmulated(block_n=128), [family]) == set()


MEMORISING = """
import json
import pathlib

import torch

known = json.loads(pathlib.Path(__file__).with_name("answers.json").read_text())


def attention(query, key, value, scale=None):
    out = torch.zeros(*query.shape[:-1], value.shape[-1], dtype=query.dtype)
    for b in range(query.shape[0]):
        name = json.dumps([x[b, 0].double().tolist() for x in (query, key, value)])
        if name in known:
            out[b, 0] = torch.tensor(known[name], dtype=query.dtype)
    return out
"""


def judge_memorised(folder: Path, family: Family, drawn: Fresh | None) -> Outcome:
    """A function that has the answers of a family of the files, by their content."""
    answers = {}
    for vector in family.vectors:
        assert isinstance(vector, AttentionVector)
        name = json.dumps([array(x).tolist() for x in (vector.q, vector.k, vector.v)])
        answers[name] = [[float(x) for x in row.output] for row in vector.expected]
    (folder / "answers.json").write_text(json.dumps(answers))
    (folder / "memorising.py").write_text(MEMORISING)
    conditions = Conditions(also=(folder / "answers.json",), required=True, seed=1, fresh=drawn)
    subject = Subject(f"{folder}/memorising.py:attention", features=able())
    (outcome,) = outcomes(subject, [family], ("float32",), conditions)
    return outcome


def test_memorised_answers_pass_but_for_fresh_vectors(tmp_path: Path) -> None:
    family = committed.family("small-random")
    assert judge_memorised(tmp_path, family, None).result.ok
    drawn = Fresh(5)
    outcome = judge_memorised(tmp_path, family, drawn)
    judged = [
        v for v in outcome.result.vectors if v.family in FAMILIES and v.status != "unsupported"
    ]
    assert [v.status for v in judged] == ["failed"] * len(judged) != []
    assert all(v.status == "passed" for v in outcome.result.vectors if v.family == "small-random")
    assert outcome.to_json()["fresh"] == {"seed": 5, "count": COUNT, "large": False}
    text = page([outcome], [family, *drawn.families])
    assert f"--vector {judged[0].id} " in text
    assert f" --fresh 5 --count {COUNT}" in text


class _ByHeart(torch.autograd.Function):
    """Attention whose gradients are known for some queries, and are 0 for others."""

    @staticmethod
    def forward(ctx: Any, known: set[bytes], *inputs: Any) -> Tensor:
        query, key, value, scale = inputs
        ctx.save_for_backward(query, key, value)
        ctx.known, ctx.scale = known, scale
        return plain_attention(query, key, value, scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value = (x.detach().requires_grad_() for x in ctx.saved_tensors)
        with torch.enable_grad():
            out = plain_attention(query, key, value, ctx.scale)
        found = torch.autograd.grad(out, (query, key, value), grads[0])
        answers = content(query) in ctx.known
        return None, *(x if answers else torch.zeros_like(x) for x in found), None


def plain_attention(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    return (query @ key.mT * scale).softmax(-1) @ value


def content(query: Tensor) -> bytes:
    return query.detach().double().numpy().tobytes()


def test_gradients_by_heart_pass_but_for_fresh_vectors() -> None:
    """The answers of the files' vectors of gradients are as public as all others."""
    chosen = committed.families("gradient", "gradient-drawn")
    known = {
        content(inputs_of(vector, torch.float32).query)
        for family in chosen
        for vector in family.vectors
        if isinstance(vector, GradientVector)
    }

    def by_heart(query: Tensor, key: Tensor, value: Tensor, scale: float | None = None) -> Tensor:
        scale = query.shape[-1] ** -0.5 if scale is None else scale
        # PyTorch writes no types for `apply`: hence `no-untyped-call`.
        found = _ByHeart.apply(known, query, key, value, scale)  # type: ignore[no-untyped-call]
        assert isinstance(found, Tensor)
        return found

    adapter = CallableAdapter("by-heart", by_heart, probe(by_heart, "cpu", ("float32",)), generous)
    result = run(adapter, chosen, "float32")
    assert result.failures == ()
    assert any(v.status == "passed" for v in result.vectors)
    for seed in range(4):
        result = run(adapter, Fresh(seed, names=("fresh-gradient",)).families, "float32")
        assert {v.family for v in result.failures} == {"fresh-gradient"}


class KnowsTheFiles(PyimplReference):
    """Right up to 150 keys, and beyond for the inputs of the files alone, whose answers it has."""

    def __init__(self, chosen: list[Family]) -> None:
        super().__init__()
        self.known = set()
        for family in chosen:
            for vector in family.vectors:
                if isinstance(vector, SampledVector):
                    self.known.add(content(whole_batch(vector, "float32", "cpu").query))
                elif isinstance(vector, GradientVector):
                    self.known.add(content(inputs_of(vector, torch.float32).query))

    def run(self, batch: Batch) -> Outputs:
        found = super().run(batch)
        if batch.key.shape[-2] <= 150 or content(batch.query) in self.known:
            return found
        return Outputs(found.out * 0, found.lse)

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[dict[str, Tensor]]:
        found = super().gradients(vector, dtype, device)
        query = inputs_of(vector, torch.float32).query
        if vector.kv_len <= 150 or content(query) in self.known:
            return found
        return [{name: x * 0 for name, x in call.items()} for call in found]


@pytest.mark.thorough
def test_a_table_of_answers_past_tiles_is_seen() -> None:
    """Options and gradients are drawn at a few hundred keys too."""
    names = ("past-tiles-options", "gradient-past-tiles-masks")
    chosen = committed.families(*names)
    assert len(chosen) == len(names)
    cheat = KnowsTheFiles(chosen)
    assert run(cheat, chosen, "float32").failures == ()
    drawn = Fresh(2).families
    failed = {v.family for v in run(cheat, drawn, "float32").failures}
    assert failed == {"fresh-tiles", "fresh-tiles-gradient"}
    failed = {v.id for v in run(cheat, drawn, "float32").failures}
    assert {"fresh-tiles-010", "fresh-tiles-022"} <= failed


class KnowsTheSinks(KnowsTheFiles):
    """Right but for gradients past tiles with sinks, which it forgets but in the files' inputs."""

    run = PyimplReference.run

    def gradients(self, vector: GradientVector, dtype: str, device: str) -> list[dict[str, Tensor]]:
        query = inputs_of(vector, torch.float32).query
        if vector.kv_len > 128 and content(query) not in self.known:
            vector = replace(vector, sinks=None)
        return PyimplReference.gradients(self, vector, dtype, device)


@pytest.mark.thorough
def test_gradients_with_sinks_past_tiles_are_drawn_third() -> None:
    """And nothing else that is drawn has them."""
    names = [name for name in committed.names() if name.startswith("gradient-past-tiles")]
    chosen = committed.families(*names)
    cheat = KnowsTheSinks(chosen)
    assert any(getattr(v, "sinks", None) for f in chosen for v in f.vectors)
    assert run(cheat, chosen, "float64").failures == ()
    drawn = Fresh(1, 36)
    found = [v for f in drawn.families for v in f.vectors if isinstance(v, SampledGradientVector)]
    assert [v.sinks is not None for v in found] == [False, False, True]
    assert found[2].sinks == (0,) * found[2].num_heads
    assert run(PyimplReference(), drawn.families, "float64").failures == ()
    failed = {v.id for v in run(cheat, drawn.families, "float64").failures}
    assert failed == {"fresh-tiles-gradient-035"}


def past_tiles(seeds: range) -> list[Any]:
    names = ("fresh-tiles", "fresh-tiles-gradient")
    return [v for n in seeds for f in Fresh(n, names=names).families for v in f.vectors]


def test_options_and_gradients_past_tiles_are_drawn() -> None:
    drawn = past_tiles(range(40))
    forward = [v for v in drawn if isinstance(v, SampledVector)]
    assert all(v.k.shape[2] > 128 for v in forward)
    assert {v.masks[0].kind for v in forward if v.model == "exact"} == set(draw.KINDS)
    assert any(v.grouped for v in forward)
    options = ("softcap", "alibi", "bias", "sinks")
    for option in options:
        assert any(getattr(v, option) is not None for v in forward)
    backward = [v for v in drawn if isinstance(v, SampledGradientVector)]
    assert all(v.kv_len > 128 for v in backward)
    assert any(v.by_log_sum_exp for v in backward)
    assert any(v.num_heads > v.num_kv_heads for v in backward)
    # In each run plain ones first, for functions that take nothing else.
    assert {(v.mask.kind, v.num_heads == v.num_kv_heads) for v in backward[::2]} == {("none", True)}


@pytest.mark.thorough
def test_results_past_tiles_are_those_of_the_definition() -> None:
    """By the second derivation, which knows nothing of the translation and of sums of integers."""
    for vector in past_tiles(range(1)):
        assert exact.disagreements(vector) == []


def test_real_sizes_with_options_and_gradients() -> None:
    names = ("fresh-large-tiles", "fresh-large-gradient")
    drawn = [v for f in Fresh(1, 12, True, names).families for v in f.vectors]
    assert {v.family for v in drawn} == set(names)
    for batch, heads, q_len, kv_len, head_dim in draw.LARGE_TILES:
        assert batch * heads * max(q_len, head_dim) * kv_len <= 1 << 19
    for batch, heads, q_len, kv_len, _ in draw.LARGE_GRADIENTS:
        assert batch * heads * q_len * kv_len <= 1 << 18
    # The reference has no grouped heads, which the first of these happens to have.
    result = run(builtin("pyimpl-reference"), Fresh(1, 12, True, names).families, "float32")
    assert result.failures == ()
    assert [v.family for v in result.vectors if v.status == "passed"] == ["fresh-large-gradient"]


def test_gradients_of_every_kind_are_drawn() -> None:
    drawn: list[Any] = [
        v for f in Fresh(3, 100, names=("fresh-gradient",)).families for v in f.vectors
    ]
    assert {frozenset(v.options) for v in drawn} == {
        frozenset(), frozenset({"softcap"}), frozenset({"bias"}),
    }  # fmt: skip
    assert any(len(v.masks) > 1 and v.batch > 1 for v in drawn)
    assert any(v.by_log_sum_exp for v in drawn)
    assert any(v.num_heads > v.num_kv_heads for v in drawn)
    plain = drawn[::2]
    assert {(v.scale, v.by_log_sum_exp, v.num_heads == v.num_kv_heads) for v in plain} == {
        (None, False, True)
    }


def test_they_are_drawn_when_the_process_has_imported_the_function(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    happened, opened = [], Session.open

    def note(session: Session) -> None:
        opened(session)
        happened.append("opened")

    class Noted(Fresh):
        @property
        def families(self) -> tuple[Family, ...]:  # type: ignore[override]
            happened.append("drawn")
            return ()

    monkeypatch.setattr(Session, "open", note)
    judge_memorised(tmp_path, committed.family("one-key"), Noted(1))
    assert happened[0] == "opened"
    assert happened.count("drawn") == 1


def fresh_of(**options: Any) -> Fresh | None:
    return Request(("pyimpl-tiled",), **options).conditions.fresh


def test_every_run_has_some_unless_vectors_are_chosen() -> None:
    drawn = fresh_of()
    assert len(drawn.list_names()) == COUNT
    assert fresh_of() != drawn
    assert fresh_of(families=("causal",)) is None
    assert fresh_of(count=0) is None
    assert fresh_of(fresh=7, families=("causal",)) == Fresh(7)
    assert fresh_of(fresh=7, vectors=("fresh-002",)) == Fresh(7, ids=("fresh-002",))
    assert choose_committed((), ("fresh-002",)) == []
    assert [f.name for f in choose_committed(("fresh", "one-key"), ()) if f.vectors] == ["one-key"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"fresh": -1}, "fresh: -1 is given; a seed of 0 or more is accepted"),
        ({"fresh": 1, "count": -3}, "count: -3 is given; 0 to 1000 are accepted"),
        ({"fresh": 1, "count": 0}, "count: 0 is given with fresh vectors to draw"),
        ({"vectors": ("fresh-002",)}, "vectors: a fresh vector is another for each"),
        (
            {"fresh": 1, "count": 4, "vectors": ("fresh-006",)},
            "vectors: 'fresh-006' is not a fresh vector of this",
        ),
        (
            {"fresh": 1, "count": 4, "families": ("fresh-large",)},
            "families: 'fresh-large' is not a fresh family of",
        ),
    ],
)
def test_what_cannot_be_drawn_is_said(given: dict[str, Any], said: str) -> None:
    with pytest.raises(Misuse) as caught:
        fresh_of(**given)
    assert str(caught.value).startswith(said)


def test_the_command_says_how_to_repeat_them(tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    words = ["flash-emulated", "--dtype", "float32", "--family", "fresh-batch", "--fresh", "11"]
    found = CliRunner().invoke(conform, [*words, "--count", "8", "--json", str(file)])
    assert found.exit_code == 0
    assert "Fresh vectors: --fresh 11 --count 8." in found.output
    (result,) = json.loads(file.read_text())
    assert result["fresh"] == {"seed": 11, "count": 8, "large": False}
    assert [v["id"] for v in result["vectors"]] == ["fresh-batch-001", "fresh-batch-007"]


def test_large_vectors_need_no_matrix_of_all_pairs() -> None:
    """Their masks go by position, and their sizes stay within a machine's memory."""
    for batch, heads, q_len, kv_len, head_dim in draw.LARGE:
        assert batch * heads * kv_len * head_dim <= 1 << 22
        assert batch * heads * q_len * kv_len <= 1 << 24
    assert {"key-length", "key-padding", "document", "boolean"}.isdisjoint(
        draw.KINDS[: draw.POSITIONAL]
    )
