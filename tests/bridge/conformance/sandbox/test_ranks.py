"""A function of shards: called by several processes, judged as one of whole tensors."""

from __future__ import annotations

import ast
import json
import re
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import committed
import jsonschema
import pytest
import torch
from test_cheats import failures

import bridge
from bridge import check
from bridge.conformance.drawing.fresh import Fresh
from bridge.conformance.functions.features import Features, presume
from bridge.conformance.inside.shards import LAYOUTS, Shards, Split, join
from bridge.conformance.judging.run import AMONG_DOCUMENTS
from bridge.conformance.outcomes.outcome import Conditions, Outcome, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.requests.request import Misuse
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.sandbox.session import Session
from bridge.vectors.model.attention import AttentionVector, Family
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from pyimpl.distributed import Shards as Others

FOLDER = Path(__file__).parent / "sharded"
EXAMPLES = Path(__file__).resolve().parents[4] / "examples"
CONDITIONS = Conditions(limit=20.0, required=True, seed=1)
ALL = ("float32", "bfloat16")


def able(*, multiple: int = 1, without: tuple[str, ...] = ()) -> Features:
    """The features of the functions of `ring.py`: small calls take longer than the vectors."""

    def function(
        query: Any, key: Any, value: Any, is_causal: bool = False, scale: float | None = None,
        cu_seqlens: Any = None,
    ) -> Any:  # fmt: skip
        return value

    found = presume(function, ALL, "it is known").without(without)
    return replace(found, multiple=multiple)


def judge_function(
    name: str,
    chosen: str | list[Family],
    layout: str = "contiguous",
    *,
    processes: int = 2,
    dtype: str = "float32",
    features: Features | None = None,
    rounding_model: str | None = None,
    conditions: Conditions = CONDITIONS,
) -> Outcome:
    file, _, function = name.rpartition(":")
    subject = Subject(
        f"{FOLDER / (file or 'ring')}.py:{function}",
        rounding_model,
        features=features or able(),
        shards=Shards(processes, layout),
    )
    some = committed.families(*chosen.split()) if isinstance(chosen, str) else chosen
    (outcome,) = outcomes(subject, some, (dtype,), conditions)
    return outcome


def has_passed(outcome: Outcome) -> bool:
    return outcome.result.ok and outcome.without_walls is None


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("processes", [1, 2, 3, 4])
def test_the_layouts_are_those_of_others(layout: str, processes: int) -> None:
    """`pyimpl.distributed` has them from another definition."""
    for length in range(20):
        shards = Shards(processes, layout)
        places = shards.places(length)
        theirs = getattr(Others, layout)(length, processes).places
        assert all(torch.equal(a, b) for a, b in zip(places, theirs, strict=True))
        whole = torch.randn(1, 2, length, 3)
        split = Split(places, ())
        parts = [split.take({"0": whole}, r)["0"] for r in range(processes)]
        assert torch.equal(join(parts, places), whole)
        if length % shards.multiple == 0:
            assert {len(some) for some in places} == {length // processes}


@pytest.mark.parametrize(
    ("layout", "processes"),
    [
        ("contiguous", 2),
        ("zigzag", 2),
        pytest.param("striped", 3, marks=pytest.mark.thorough),
        pytest.param("zigzag", 4, marks=pytest.mark.thorough),
    ],
)
def test_a_ring_passes(layout: str, processes: int) -> None:
    outcome = judge_function(layout, "causal gradient", layout, processes=processes)
    assert has_passed(outcome)
    counts = outcome.result.families()
    assert (counts["causal"].passed, counts["gradient"].passed) == (18, 5)


MUTANTS = {
    "stale_keys": ("gradient", "d[qkv]"),
    "not_home": ("gradient", "d[kv]"),
    "odd_lengths": ("causal", "output"),
    "without_offset": ("causal", "output"),
    "wrong_shift": ("causal", "output"),
}


@pytest.mark.parametrize("fault", MUTANTS)
def test_a_mistake_that_others_made_is_seen(fault: str) -> None:
    chosen, part = MUTANTS[fault]
    layout = "zigzag" if fault == "wrong_shift" else "contiguous"
    alone = able(without=("documents",))
    found = failures(judge_function(fault, chosen, layout, features=alone))
    assert found
    for vector in found:
        assert vector.reason is None
        assert re.match(part, vector.worst.part)


@pytest.mark.parametrize(
    ("fault", "layout", "chosen"),
    [
        # axolotl issue 3608
        ("documents_ignored", "contiguous", "causal"),
        ("documents_backward", "contiguous", "gradient"),
        ("documents_of_shards", "zigzag", "causal"),
    ],
)
def test_a_mistake_with_documents_is_seen(fault: str, layout: str, chosen: str) -> None:
    """Where the sequence is one document they are right, or the reason would be another."""
    found = failures(judge_function(fault, chosen, layout))
    assert found
    assert all(str(vector.reason).startswith(AMONG_DOCUMENTS) for vector in found)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("wrong", [False, True])
def test_the_example_passes_and_with_a_mistake_fails(wrong: bool, tmp_path: Path) -> None:
    """`pyimpl.distributed`; and with keys in another layout than it believes."""
    text = (EXAMPLES / "ring_in_shards.py").read_text("utf-8")
    assert text.count("key_shards=Shards.zigzag(") == 1
    if wrong:
        text = text.replace("key_shards=Shards.zigzag(", "key_shards=Shards.striped(")
    (tmp_path / "example.py").write_text(text, "utf-8")
    some = committed.families("causal", "gradient")
    name = f"{tmp_path / 'example.py'}:attention"
    subject = Subject(name, features=able(), shards=Shards(2, "zigzag"))
    (outcome,) = outcomes(subject, some, ("float32",), CONDITIONS)
    assert has_passed(outcome) != wrong
    assert bool(failures(outcome)) == wrong


def test_partial_outputs_that_are_rounded_are_seen() -> None:
    """By a model that rounds the result alone; `generous` allows it."""
    more: dict[str, Any] = {"dtype": "bfloat16", "features": able(without=("gradients",))}
    strict: dict[str, Any] = {**more, "rounding_model": "float32-inside"}
    assert has_passed(judge_function("contiguous", "natural-scores", **strict))
    assert failures(judge_function("rounded", "natural-scores", **strict))
    assert has_passed(judge_function("rounded", "natural-scores", **more))


def test_what_it_takes_is_found_out() -> None:
    """By small calls, in shards of one length where it is not told the lengths."""
    subject = Subject(f"{FOLDER / 'ring.py'}:even_alone", shards=Shards(2, "contiguous"))
    chosen = committed.families("default-scale")
    (outcome,) = outcomes(subject, chosen, ("float32",), CONDITIONS)
    features = outcome.description.features
    assert features.presumed is None
    assert features.multiple == 2
    assert features.alignment == "top-left"
    assert features.supported == {"is-causal", "gradients"}
    assert has_passed(outcome)
    odd = {v.reason for v in outcome.result.vectors if v.status == "unsupported"}
    assert any("lengths that 2 does not divide" in str(reason) for reason in odd)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("right", None),
        ("ends", "ended the process with status 3 in process 1 of 2"),
        ("crashes", "ended the process: SIGSEGV in process 1 of 2"),
        ("hangs", "did not return: used practically no processor time for 2 s"),
        ("raises", "raised IndexError: in process 1 of 2: too far"),
        ("changes_its_key", "changed its input key"),
        ("returns_fewer_rows", "returned an output of shape (1, 1, 0, 2) in process 1 of 2, which"),
        ("returns_nothing", "returned something of another kind in one process than in another"),
        ("returns_half", "returned tensors of different dtypes or sizes in its processes"),
    ],
)
def test_one_process_that_does_otherwise_is_told(name: str, sentence: str | None) -> None:
    features = able(multiple=2, without=("gradients", "is-causal"))
    family = committed.family("natural-scores")
    one = replace(family, vectors=tuple(v for v in family.vectors if v.id == "natural-scores-011"))
    conditions = replace(CONDITIONS, limit=2.0 if name == "hangs" else 60.0)
    found = judge_function(f"ends:{name}", [one], features=features, conditions=conditions)
    (vector,) = found.result.vectors
    assert (vector.status == "passed") == (sentence is None)
    assert str(vector.reason).startswith(str(sentence))


def attempts() -> list[str]:
    tree = ast.parse((FOLDER / "reaching.py").read_text("utf-8"))
    return [x.name for x in tree.body if isinstance(x, ast.FunctionDef) and x.decorator_list]


def test_nothing_is_reached_but_each_other(tmp_path: Path) -> None:
    file, port = tmp_path / "reaching.py", tmp_path / "port"
    file.write_text((FOLDER / "reaching.py").read_text("utf-8"))
    names = attempts()
    one = torch.ones(1, 1, 2, len(names))
    shards = Shards(1, "contiguous")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port.write_text(str(server.getsockname()[1]))
        name = f"{file}:attention"
        with Session(name, also=(port,), required=True, shards=shards) as session:
            session.open()
            worked = Remote(session)(one, one, one)[0, 0, 0].tolist()
    found = [name for name, x in zip(names, worked, strict=True) if x]
    assert found == ["talks_over_the_loopback"]


@pytest.mark.thorough
def test_without_walls_it_runs_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "ways", (False,))
    conditions = replace(CONDITIONS, required=False)
    outcome = judge_function("contiguous", "causal", conditions=conditions)
    assert outcome.without_walls is not None
    assert outcome.result.ok


@pytest.mark.thorough  # it looks for the likely cause
def test_the_report_says_how_it_was_judged() -> None:
    verdict = check(
        f"{FOLDER / 'ring.py'}:wrong_shift", processes=2, layout="zigzag", families=["causal"],
        dtypes=["float32"], without=["gradients"],
    )  # fmt: skip
    assert not verdict
    assert "A function of shards: 2 processes, zigzag." in str(verdict)
    assert "--processes 2 --layout zigzag" in verdict.html()
    (outcome,) = verdict.outcomes
    assert outcome.to_json()["shards"] == {"processes": 2, "layout": "zigzag"}
    schema = json.loads((Path(bridge.__file__).parent / "report/conform.schema.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(json.loads(verdict.json()))


def test_fresh_vectors_have_lengths_for_the_layout() -> None:
    drawn = Fresh(5, multiple=4)
    lengths = {}
    for vector in (vector for family in drawn.families for vector in family.vectors):
        if isinstance(vector, ComesToAttention):
            (one, *_) = vector.problems()
        else:
            assert isinstance(vector, AttentionVector | GradientVector)
            one = vector if isinstance(vector, AttentionVector) else vector.attentions()[0]
        lengths[vector.id] = one.q_len, one.kv_len
    assert len(lengths) == 24
    fits = {id: q_len % 4 == kv_len % 4 == 0 for id, (q_len, kv_len) in lengths.items()}
    assert all(fits[id] for n, (_, id) in enumerate(drawn.list_names()) if n < 12)
    assert not all(fits.values())


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"processes": 0}, "processes: 0 is given; 1 to 8 are accepted"),
        ({"processes": 9}, "processes: 9 is given; 1 to 8 are accepted"),
        ({"layout": "zigzag"}, "layout: is given without a number of processes"),
        ({"processes": 2, "layout": "round"}, "layout: 'round' is not a layout of shards"),
        ({"processes": 2, "operation": "decode"}, "operation: is given with processes"),
        ({"processes": 2, "problem": __file__}, "problem: is given with processes"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(Misuse, match=sentence):
        check(f"{FOLDER / 'ring.py'}:contiguous", **options)
    with pytest.raises(Misuse, match="is built in"):
        check("flex", processes=2)
