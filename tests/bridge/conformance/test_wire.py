"""What a judged process sends is data: read as such, whatever it is."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from bridge.conformance import abilities, wire
from bridge.conformance.abilities import CallableError
from bridge.conformance.declared import (
    Description,
    description_as_data,
    description_of,
    profile_as_data,
    profile_of,
)
from bridge.conformance.isolated import describe, run_isolated
from bridge.conformance.judge import VectorResult
from bridge.conformance.profile import CHOICES
from bridge.conformance.subject import Subject
from bridge.conformance.wire import Frame, Parser, WireError
from bridge.vectors.model import Family

PYTHON_FUNCTION = """
import os, json, pickle, struct, sys
def say(data):
    frame = sys._getframe(1)
    while "connection" not in frame.f_locals:
        frame = frame.f_back
    os.write(frame.f_locals["connection"].fileno(), data)
def frame(kind, tensors=(), numbers=b"", **fields):
    header = json.dumps({"kind": kind, "fields": fields, "tensors": list(tensors)}).encode()
    return struct.pack(">I", len(header)) + header + numbers
class Boom:
    def __reduce__(self):
        return (exec, (f"import os; open({RAN!r}, 'w').write(str(os.getpid()))",))
def f(query, key, value, scale=1.0):
    ACT
    return value
"""


def framed(header: Any, numbers: bytes = b"") -> bytes:
    data = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack(">I", len(data)) + data + numbers


def one(dtype: Any, shape: Any, name: Any = "x") -> dict[str, Any]:
    return {"kind": "answer", "fields": {}, "tensors": [[name, dtype, shape]]}


def read(data: bytes) -> Frame | None:
    parser = Parser()
    parser.add(data)
    return parser.next()


@pytest.mark.parametrize("dtype", wire.DTYPES)
def test_numbers_arrive_as_they_were(dtype: str) -> None:
    numbers = torch.tensor([[1.5, -0.0, float("nan")], [float("inf"), 3e-5, 7.0]]).to(
        wire.DTYPES[dtype]
    )
    apart = numbers.as_strided((1, 1), (6, 6))
    sent = {"a b": numbers.T, "none": numbers[:0], "one": numbers[0, 0], "apart": apart}
    out, into = os.pipe()
    wire.write(into, "kind", {"text": "é\n", "list": [1, None]}, sent)
    wire.write(into, "next", {})
    parser = Parser()
    for byte in os.read(out, 1 << 16):
        before = parser.next()
        assert before is None or before.kind == "kind"
        if before is not None:
            found = before
        parser.add(bytes([byte]))
    last = parser.next()
    assert last is not None
    assert (found.kind, last.kind) == ("kind", "next")
    assert found.fields == {"text": "é\n", "list": [1, None]}
    assert found.tensors.keys() == sent.keys()
    for name, tensor in sent.items():
        got = found.tensors[name]
        assert (got.shape, got.dtype) == (tensor.shape, tensor.dtype)
        assert got.double().nan_to_num(-9).equal(tensor.double().nan_to_num(-9))
    assert not parser.inside


HOSTILE = {
    "no header": (struct.pack(">I", 0), "a header of 0 bytes"),
    "a huge header": (struct.pack(">I", (1 << 32) - 1), "a header of 4294967295 bytes"),
    "a pickle": (framed(b"\x80\x04\x95.\x00"), "a header that is not JSON"),
    "no text": (framed(b"\xff\xfe"), "a header that is not JSON"),
    "deep": (framed(b"[" * 100_000), "a header that is not JSON"),
    "NaN": (framed(b'{"kind": NaN}'), "a header that is not JSON"),
    "a long number": (framed(b"1" * 10_000), "a header that is not JSON"),
    "no object": (framed([1]), "a header that has not kind, fields and tensors alone"),
    "more": (framed({**one("float32", []), "x": 1}), "has not kind, fields and tensors alone"),
    "no kind": (framed({**one("float32", []), "kind": 3}), "a kind that is no text"),
    "a long kind": (framed({**one("float32", []), "kind": "x" * 9999}), "a kind that is no text"),
    "fields": (framed({**one("float32", []), "fields": 3}), "of another type"),
    "dtype": (framed(one("int64", [1])), "a tensor of dtype int64; float64, float32"),
    "dtype of a list": (framed(one(["float32"], [1])), "a tensor of dtype"),
    "negative": (framed(one("float32", [-1])), r"a tensor of shape \[-1\]; sizes of 0 and more"),
    "huge": (framed(one("float32", [1 << 60])), "a tensor of shape"),
    "huge together": (framed(one("float32", [1 << 20, 1 << 20])), "bytes of numbers; "),
    "a fraction": (framed(one("float32", [1.5])), "a tensor of shape"),
    "true": (framed(one("float32", [True])), "a tensor of shape"),
    "many sizes": (framed(one("float32", [1] * 99)), "at most 8 sizes are accepted"),
    "no shape": (framed(one("float32", None)), "a tensor of shape None"),
    "no name": (framed(one("float32", [1], 3)), "the name of a tensor that is no text"),
    "no description": (framed({**one("float32", []), "tensors": ["x"]}), "by name, dtype and"),
    "many tensors": (framed({**one("float32", []), "tensors": [1] * 2000}), "2000 tensors; 1024"),
    "twice": (
        framed({**one("float32", []), "tensors": [["x", "float32", [1]]] * 2}, bytes(8)),
        "two tensors of one name",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_is_no_frame_gets_a_sentence(name: str) -> None:
    data, sentence = HOSTILE[name]
    with pytest.raises(WireError, match=sentence) as caught:
        read(data)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


def test_a_frame_that_is_not_whole_is_waited_for() -> None:
    whole = framed(one("float32", [2]), bytes(8))
    assert all(read(whole[:size]) is None for size in range(len(whole)))
    found = read(whole)
    assert found is not None
    assert found.tensors["x"].tolist() == [0.0, 0.0]


def test_nothing_reaches_the_terminal_but_text() -> None:
    assert wire.text("a\x1b[2Jb\x00\ud800\n", "x") == "a\ufffd[2Jb\ufffd\ufffd\n"
    assert wire.shown("\x1b]0;title\x07" + "x" * 100) == "\ufffd]0;title\ufffd" + "x" * 49 + "…"


def able() -> abilities.Abilities:
    def function(query: object, key: object, value: object, scale: float = 1.0) -> object:
        return value

    return abilities.presume(function, ("float32",), "it is hostile")


def test_a_description_arrives_as_it_was() -> None:
    for description in (Description(("float16",)), Description(("float32",), able())):
        data = json.loads(json.dumps(description_as_data(description)))
        assert description_of(data, description.abilities is not None) == description


EDITS = {
    ("dtypes",): (["float32", "int8"], "dtypes that is int8, none of float64"),
    ("abilities",): (None, "abilities of an adapter, or none of a function"),
    ("abilities", "takes"): (["fly"], "abilities that is fly"),
    ("abilities", "lacks"): ({"x" * 99: "y"}, "lacking abilities that are not by names"),
    ("abilities", "alignment"): ("left", "an alignment that is left"),
    ("abilities", "lse_by"): ("tuple", "abilities that have a log-sum-exp and no way to it"),
    ("abilities", "gqa_flag"): (1, "gqa_flag that is neither true nor false: 1"),
    ("abilities", "width"): (0, "a width that is no number from 1 to 65536: 0"),
    ("abilities", "presumed"): (["x"], "a presumption that is no text"),
}


@pytest.mark.parametrize("place", EDITS, ids=".".join)
def test_a_description_of_another_form(place: tuple[str, ...]) -> None:
    data: Any = json.loads(json.dumps(description_as_data(Description(("float32",), able()))))
    value, sentence = EDITS[place]
    inner = data
    for part in place[:-1]:
        inner = inner[part]
    inner[place[-1]] = value
    with pytest.raises(WireError, match=sentence):
        description_of(data, True)
    del inner[place[-1]]
    with pytest.raises(WireError, match="that has not the fields"):
        description_of(data, True)


@pytest.mark.parametrize("name", CHOICES)
def test_a_profile_arrives_as_it_was(name: str) -> None:
    for dtype in wire.DTYPES:
        profile = CHOICES[name](dtype)
        data = json.loads(json.dumps(profile_as_data(profile)))
        assert profile_of(data) == profile
        for field, value in (
            ("exp_error", -1), ("input", None), ("output", [1]), ("block_n", 0), ("denominator", 7)
        ):  # fmt: skip
            with pytest.raises(WireError):
                profile_of({**data, field: value})


def hostile(folder: Path, act: str) -> Subject:
    """A function that does this when it is called, and makes the file `ran` where its pickle is
    read."""
    text = PYTHON_FUNCTION.replace("ACT", act).replace("{RAN!r}", repr(str(folder / "ran")))
    (folder / "hostile.py").write_text(text, "utf-8")
    return Subject(f"{folder / 'hostile.py'}:f", abilities=able())


def results(subject: Subject, families: list[Family], count: int = 1) -> list[VectorResult]:
    from dataclasses import replace

    family = next(f for f in families if f.name == "one-key")
    some = [replace(family, vectors=family.vectors[:count])]
    return list(run_isolated(subject, some, "float32", "cpu", 3.0).vectors)


ACTS = {
    "a pickle": (
        "data = pickle.dumps(('start', [Boom()])); say(struct.pack('!i', len(data)) + data)",
        "a header that is not JSON",
    ),
    "a frame of a pickle": ("say(pickle.dumps(Boom()))", "a header of [0-9]+ bytes"),
    "another dtype": (
        "say(frame('answer', [['0 output', 'float64', [1]]], bytes(8), count=1, problem=None, "
        "lse_reasons=[[None]]))",
        r"0 output of shape \(1,\) and torch.float64; shape \(1, 1, [0-9]+, [0-9]+\) and float32",
    ),
    "no numbers": (
        "say(frame('answer', count=1, problem=None, lse_reasons=[[None]]))",
        "no tensor 0 output",
    ),
    "numbers that nobody asked for": (
        "say(frame('answer', [['0 output', 'float32', list(value.shape)], ['x', 'float32', [1]]], "
        "bytes(4 * value.numel() + 4), count=1, problem=None, lse_reasons=[[None]]))",
        "a tensor x that was not asked for|0 output of shape",
    ),
    "an early end of a job": ("say(frame('done', job=0))", "done where answer was to come"),
    "another job": ("say(frame('start', job=1))", "start where answer was to come"),
    "many answers": (
        "say(frame('answer', count=99, problem='x', lse_reasons=[]))",
        "a count that is no number from 1 to 1: 99",
    ),
    "without end": ("while True: say(bytes(1 << 16))", "a header of 0 bytes"),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_forged_answer_fails_and_runs_nothing(
    name: str, families: list[Family], tmp_path: Path
) -> None:
    act, sentence = ACTS[name]
    (result,) = results(hostile(tmp_path, act), families)
    assert result.status == "failed"
    assert result.reason is not None
    assert result.reason.startswith("sent what is no answer: ")
    with pytest.raises(WireError, match=sentence):
        raise WireError(result.reason)
    assert not (tmp_path / "ran").exists()


def test_an_answer_that_breaks_off(families: list[Family], tmp_path: Path) -> None:
    act = "say(frame('answer', [['x', 'float32', [4]]], bytes(9))); os._exit(0)"
    (result,) = results(hostile(tmp_path, act), families)
    assert result.reason == "ended the process within an answer with status 0"


def test_an_answer_that_never_comes(families: list[Family], tmp_path: Path) -> None:
    act = "import time; say(frame('answer', [['x', 'float32', [4]]], bytes(9))); time.sleep(1000)"
    (result,) = results(hostile(tmp_path, act), families)
    assert str(result.reason).startswith("did not return: used practically no processor time for 3")


def test_after_five_forged_answers_the_rest_is_not_run(
    families: list[Family], tmp_path: Path
) -> None:
    found = results(hostile(tmp_path, "say(bytes(4))"), families, 8)
    said = [str(result.reason) for result in found]
    assert all(result.status == "failed" for result in found)
    assert "was not run: 5 calls before it sent what is no answer" in said


def test_word_of_small_calls_without_end(tmp_path: Path) -> None:
    subject = hostile(tmp_path, "while True: say(frame('imported'))")
    found = describe(Subject(subject.name), "cpu", ("float32",), 3.0).abilities
    assert found is not None
    said = "sent what is no answer: word of more than 10000 small calls"
    assert found.presumed == f"a small call {said}"


def test_a_file_that_forges_a_description(tmp_path: Path) -> None:
    hostile(tmp_path, "pass")
    file = tmp_path / "hostile.py"
    file.write_text(file.read_text("utf-8") + "say(pickle.dumps(Boom()))\n", "utf-8")
    with pytest.raises(CallableError, match="importing it sent what is no answer: a header of"):
        describe(Subject(f"{file}:f"), "cpu", ("float32",), 3.0)
    assert not (tmp_path / "ran").exists()
