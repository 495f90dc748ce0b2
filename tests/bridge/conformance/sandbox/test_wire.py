"""Tests that messages of a judged process are read as data, whatever they are."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import committed
import pytest
import torch
from test_cheats import able

from bridge.conformance.functions.features import CallableError
from bridge.conformance.judging.judge import VectorResult
from bridge.conformance.outcomes.outcome import Conditions, describe, outcomes
from bridge.conformance.outcomes.subject import Subject
from bridge.conformance.sandbox import wire
from bridge.conformance.sandbox.wire import Frame, Parser, WireError

PYTHON_FUNCTION = """
import os, json, pickle, struct, sys
def say(data):
    os.write(4, data)
def number():
    frame = sys._getframe(1)
    while "fields" not in frame.f_locals or "number" not in frame.f_locals["fields"]:
        frame = frame.f_back
    return frame.f_locals["fields"]["number"]
def frame(kind, tensors=(), numbers=b"", **fields):
    header = json.dumps({"kind": kind, "fields": fields, "tensors": list(tensors)}).encode()
    return struct.pack(">I", len(header)) + header + numbers
class Boom:
    def __reduce__(self):
        return (exec, (f"import os; open({RAN!r}, 'w').write(str(os.getpid()))",))
def told(**fields):
    return {"number": number(), "changed": [], "not_new": None, "borrowed": [], **fields}
def tensor(place, dtype="float32", shape=(1,)):
    return {"tensor": place, "dtype": dtype, "shape": list(shape), "device": "cpu",
            "layout": "torch.strided", "graph": False}
def f(query, key, value, scale=1.0):
    ACT
    return value
"""


def frame_of(header: Any, numbers: bytes = b"") -> bytes:
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
    "a pickle": (frame_of(b"\x80\x04\x95.\x00"), "a header that is not JSON"),
    "no text": (frame_of(b"\xff\xfe"), "a header that is not JSON"),
    "deep": (frame_of(b"[" * 100_000), "a header that is not JSON"),
    "NaN": (frame_of(b'{"kind": NaN}'), "a header that is not JSON"),
    "a long number": (frame_of(b"1" * 10_000), "a header that is not JSON"),
    "no object": (frame_of([1]), "a header that is .*: Expected `object`, got `array`"),
    "more": (frame_of({**one("float32", []), "x": 1}), "contains unknown field `x`"),
    "less": (frame_of({"kind": "answer", "fields": {}}), "missing required field `tensors`"),
    "no kind": (frame_of({**one("float32", []), "kind": 3}), r"no text of .* - at `\$\.kind`"),
    "a long kind": (
        frame_of({**one("float32", []), "kind": "x" * 9999}),
        "no text of at most 2000",
    ),
    "fields": (frame_of({**one("float32", []), "fields": 3}), r"`object`, got `int` .*\.fields`"),
    "dtype": (frame_of(one("int64", [1])), "dtype int64, none of float64, float32"),
    "dtype of a list": (frame_of(one(["float32"], [1])), r"dtype \['float32'\], none of"),
    "dtype, deep": (
        frame_of(
            b'{"kind": "", "fields": {}, "tensors": [["x", %b1%b, [1]]]}' % (b"[" * 900, b"]" * 900)
        ),
        "JSON|none of",
    ),
    "negative": (frame_of(one("float32", [-1])), r"`int` >= 0 - at `\$\.tensors\[0\]\[2\]\[0\]`"),
    "huge": (frame_of(one("float32", [1 << 60])), "`int` <= 268435456"),
    "huge, beyond 64 bits": (frame_of(one("float32", [1 << 400])), "`int` <= 268435456"),
    "huge together": (frame_of(one("float32", [1 << 20, 1 << 20])), "bytes of numbers; "),
    "huge but for one": (
        frame_of(one("float32", [1 << 28] * 7 + [0])),
        "whose sizes are too large together",
    ),
    "a fraction": (frame_of(one("float32", [1.5])), "`int`, got `float`"),
    "true": (frame_of(one("float32", [True])), "`int`, got `bool`"),
    "many sizes": (frame_of(one("float32", [1] * 99)), "`array` of length <= 8"),
    "no shape": (frame_of(one("float32", None)), "`array`, got `null`"),
    "no name": (frame_of(one("float32", [1], 3)), r"no text of .* - at `\$\.tensors\[0\]\[0\]`"),
    "no description": (frame_of({**one("float32", []), "tensors": ["x"]}), "`array`, got `str`"),
    "many tensors": (frame_of({**one("float32", []), "tensors": [1] * 2000}), "of length <= 1024"),
    "twice": (
        frame_of({**one("float32", []), "tensors": [["x", "float32", [1]]] * 2}, bytes(8)),
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
    whole = frame_of(one("float32", [2]), bytes(8))
    assert all(read(whole[:size]) is None for size in range(len(whole)))
    found = read(whole)
    assert found.tensors["x"].tolist() == [0.0, 0.0]


def test_a_header_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not again with each piece of the numbers, whose size the sender chooses."""
    read_headers: list[bytes] = []

    def header(data: bytes) -> Any:
        read_headers.append(data)
        return known(data)

    known = wire._header
    monkeypatch.setattr(wire, "_header", header)
    parser, frames = Parser(), []
    for byte in frame_of(one("float32", [2]), bytes(8)) * 2:
        parser.add(bytes([byte]))
        frames.append(parser.next())
    assert [x.tensors["x"].tolist() for x in frames if x is not None] == [[0.0, 0.0]] * 2
    assert len(read_headers) == 2


def test_nothing_reaches_the_terminal_but_text() -> None:
    told = wire.read("a\x1b[2Jb\x00\ud800\n", wire.Text, "x")
    assert told == "a\ufffd[2Jb\ufffd\ufffd\n"
    assert wire.show("\x1b]0;title\x07" + "x" * 100) == "\ufffd]0;title\ufffd" + "x" * 49 + "…"


def hostile(folder: Path, act: str) -> Subject:
    """A function that does this when it is called, and makes the file `ran` where its pickle is
    read."""
    text = PYTHON_FUNCTION.replace("ACT", act).replace("{RAN!r}", repr(str(folder / "ran")))
    (folder / "hostile.py").write_text(text, "utf-8")
    return Subject(f"{folder / 'hostile.py'}:f", features=able())


def results(subject: Subject, count: int = 1) -> list[VectorResult]:
    some = committed.some("one-key", count)
    # By this seed the first call is made once, so that the answer to it is the first that is read.
    (outcome,) = outcomes(subject, some, ("float32",), Conditions(limit=3.0, seed=1))
    return list(outcome.result.vectors)


ACTS = {
    "a pickle": (
        "data = pickle.dumps(('start', [Boom()])); say(struct.pack('!i', len(data)) + data)",
        "a header that is not JSON",
    ),
    "a frame of a pickle": ("say(pickle.dumps(Boom()))", "a header of [0-9]+ bytes"),
    "a tensor that is not described": (
        "say(frame('returned', [['x', 'float32', [1]]], bytes(4), **told(result={'type': None})))",
        "tensors that are not those described",
    ),
    "a description without its tensor": (
        "say(frame('returned', **told(result=tensor('x'))))",
        "tensors that are not those described",
    ),
    "no description": ("say(frame('returned', **told(result=[1])))", "a result that is not desc"),
    "a long tuple": ("say(frame('returned', **told(result={'tuple': [1] * 9})))", "a tuple that"),
    "inputs that nobody gave": (
        "say(frame('returned', **told(changed=['x'], result={'type': None})))",
        "changed inputs that were not given",
    ),
    "another request's answer": (
        "say(frame('returned', **{**told(result={'type': None}), 'number': 1 << 40}))",
        "an answer to another request",
    ),
    "another kind": ("say(frame('opened', **told(parameters=None)))", "an answer that is opened"),
    "without end": ("while True: say(bytes(1 << 16))", "a header of 0 bytes"),
}


@pytest.mark.parametrize("name", ACTS)
def test_a_forged_answer_fails_and_runs_nothing(name: str, tmp_path: Path) -> None:
    act, sentence = ACTS[name]
    (result,) = results(hostile(tmp_path, act))
    assert result.status == "failed"
    assert result.reason.startswith("sent an invalid answer: ")
    with pytest.raises(WireError, match=sentence):
        raise WireError(result.reason)
    assert not (tmp_path / "ran").exists()


def test_an_answer_that_breaks_off(tmp_path: Path) -> None:
    act = "say(frame('returned', [['x', 'float32', [4]]], bytes(9))); os._exit(0)"
    (result,) = results(hostile(tmp_path, act))
    assert result.reason == "ended the process within an answer with status 0"


def test_an_answer_that_never_comes(tmp_path: Path) -> None:
    act = "import time; say(frame('returned', [['x', 'float32', [4]]], bytes(9))); time.sleep(1000)"
    (result,) = results(hostile(tmp_path, act))
    assert str(result.reason).startswith("did not return: used practically no processor time for 3")


def test_after_five_forged_answers_the_rest_is_not_run(tmp_path: Path) -> None:
    found = results(hostile(tmp_path, "say(bytes(4))"), 8)
    said = [str(result.reason) for result in found]
    assert all(result.status == "failed" for result in found)
    assert "was not run: 5 calls before it sent an invalid answer" in said


def test_a_file_that_forges_a_description(tmp_path: Path) -> None:
    hostile(tmp_path, "pass")
    file = tmp_path / "hostile.py"
    file.write_text(file.read_text("utf-8") + "say(pickle.dumps(Boom()))\n", "utf-8")
    with (
        pytest.raises(CallableError, match="importing it sent an invalid answer: a header of"),
        Conditions(limit=3.0).session(f"{file}:f") as session,
    ):
        describe(session, ("float32",))
    assert not (tmp_path / "ran").exists()
