"""Whatever is in a file, the loader gives vectors or one clear sentence: no other exception, no
long wait, no memory beyond a small multiple of the file."""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from vector_edits import document, read_committed, refusal

from bridge.vectors.format import files
from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import default_directory, family_of, load_file

Document = dict[str, Any]
# A small family of each operation, and of each model of attention.
NAMES = (
    "cache-edits", "cascade", "combine", "decoder-stack", "document", "encoder-layer",
    "grouped-query", "layer-norm", "log-sum-exp", "merge", "multi-head-layer", "paged",
    "score-mods", "shards-zigzag", "tangent-score-mods", "tile-bounds", "transformer-positions",
    "varlen", "window",
)  # fmt: skip


def in_order(read: Callable[[], object]) -> None:
    """It is read, or refused with a sentence."""
    sentence = "."
    try:
        read()
    except VectorError as error:
        sentence = str(error)
    assert sentence.isprintable()
    assert len(sentence) < 400


TEXTS = {
    "nothing": (b"", "is not JSON"),
    "half a file": (read_committed("merge")[:3000], "is not JSON"),
    "NaN": (b'{"format": NaN}', "has the number NaN, but numbers here are strings or small"),
    "infinity": (b"[-Infinity]", "has the number -Infinity"),
    "a float": (b"[1.5]", "has the number 1.5"),
    "a huge exponent": (b"[1e999999999]", "has the number 1e999999999"),
    "a huge integer": (b"[" + b"9" * 1_000_000 + b"]", "has the number 99999"),
    "deep lists": (b"[" * 1_000_000, "is nested more than 64 deep"),
    "deep objects": (b'{"a":' * 200_000, "is nested more than 64 deep"),
    "lists a little too deep": (b"[" * 65 + b"]" * 65, "is nested more than 64 deep"),
    "many keys alike": (b'{"a": 1' + b', "a": 1' * 50_000 + b"}", "field a: occurs twice"),
    "a key that is no line": (b'{"a\\n": 1, "a\\n": 2}', "field a\\n: occurs twice"),
    "many values": (b"[" + b"0," * 100_000 + b"0]", "has more than 100000 lists, objects and"),
    "half a character": (b'["\\ud800"]', "has text that is not Unicode"),
    "no text": (b"\xff\xfe\x00\x00", "is not UTF-8 text"),
    "a byte-order mark": (b"\xef\xbb\xbf{}", "is not JSON"),
    "too much": (b" " * (files.MAX_BYTES + 1), f"is larger than {files.MAX_BYTES} bytes"),
    "a string": (b'"attention-vectors-2"', "is not an object"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_bytes_that_are_no_vector_file(name: str, tmp_path: Path) -> None:
    content, reason = TEXTS[name]
    path = tmp_path / "merge.json"
    path.write_bytes(content)
    assert refusal(lambda: load_file(path)).startswith(f"merge.json: {reason}")


def test_what_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    os.mkfifo(tmp_path / "pipe.json")
    (tmp_path / "endless.json").symlink_to("/dev/zero")
    (tmp_path / "round.json").symlink_to(tmp_path / "round.json")
    assert "cannot be read: Is a directory" in refusal(lambda: load_file(tmp_path / "folder.json"))
    for name in ("pipe", "endless"):
        sentence = refusal(lambda name=name: load_file(tmp_path / f"{name}.json"))
        assert sentence == f"{name}.json: is not a regular file."
    assert "cannot be read: Too many levels" in refusal(lambda: load_file(tmp_path / "round.json"))
    assert "cannot be read: No such file" in refusal(lambda: load_file(tmp_path / "none.json"))


def test_a_link_to_a_vector_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "merge.json").symlink_to(default_directory() / "merge.json")
    assert load_file(tmp_path / "merge.json").name == "merge"


def change(name: str, **fields: Any) -> Document:
    loaded = document(name, 2)
    loaded["vectors"][0].update(fields)
    return loaded


def row(weight: str = "1", **more: Any) -> Document:
    output = {"denominator": "1", "numerators": ["1"]}
    return {"max": "0", "denominator": weight, "output": output, **more}


ONE = {"head_dim": 1, "value_dim": 1, "scale": "1"}
TALL = [["0"]] * 4096


def mask_rows(rows: int) -> Document:
    nothing = {"max": None, "denominator": "0", "output": {"denominator": "1", "numerators": ["0"]}}
    mask = {"kind": "boolean", "rows": ["0" * 4096] * rows}
    return change(
        "window", **ONE, q_len=rows, kv_len=4096, q=[["0"]] * rows, k=TALL, v=TALL, mask=mask,
        expected=[nothing] * rows,
    )  # fmt: skip


def double(levels: int) -> Any:
    """A tree whose 2^levels leaves are all block 0."""
    return [double(levels - 1)] * 2 if levels else 0


ONE_BY_ONE = {"weight": [["0"]], "bias": ["0"]}
LINEAR = {"weight": [["0"] * 64] * 64, "bias": ["0"] * 64}
HEADS = dict.fromkeys(("query", "key", "value", "output"), ONE_BY_ONE)
NORMS = {
    f"{name}_norm": {"gain": ["1"], "bias": ["0"]}
    for name in ("attention", "cross", "feed_forward")
}
DECODER = {
    "attention": HEADS, "cross": HEADS, **NORMS,
    "feed_forward": {"hidden": ONE_BY_ONE, "output": ONE_BY_ONE},
}  # fmt: skip

# Small files that come to much.
BOMBS: dict[str, tuple[Document, str]] = {
    "a power with a long exponent": (
        change("log-sum-exp", value_dim=1, expected=[row(log2_sum_exp="9" * 4000)] * 2),
        "beyond 65536, of which weights would be too long.",
    ),
    "denominators without a common factor": (
        change(
            "merge", value_dim=1000,
            blocks=[[{"score": "0", "value": ["1"] * 1000}]] * 4,
            expected={"m": "0", "l": "1", "o": [f"1/{10**1900 + 2 * i + 1}" for i in range(1000)]},
        ),
        "is no sum of powers of 2.",
    ),
    "a score with a long weight": (
        change("cache-edits", keys=[{"score": str(2**100), "value": ["0", "0"]}]),
        "field keys[0].score: 1267650600228229401496703205376 is beyond 65536",
    ),
    "one page many times": (
        change(
            "paged", **(ONE | {"value_dim": 256}), page_size=4096, num_pages=1, k=[TALL],
            v=[[["1"] * 256] * 4096], q=[["0"]] * 32, tables=[[0]] * 32, lengths=[4096] * 32,
            expected=[row()] * 32,
        ),
        "comes to more than 4194304 products",
    ),
    "a prefix for many": (
        change(
            "cascade", **ONE, q=[["0"]] * 1024, prefix_k=TALL, prefix_v=TALL,
            suffix_k=[[]] * 1024, suffix_v=[[]] * 1024, expected=[row()] * 1024,
        ),
        "comes to more than 4194304 products",
    ),
    "one block many times": (
        change(
            "merge", value_dim=1, blocks=[[{"score": "0", "value": ["1"]}] * 2000],
            tree=double(12), expected={"m": "0", "l": "1", "o": ["1"]},
        ),
        "comes to more than 4194304 products",
    ),
    "many pairs": (mask_rows(1024), "comes to more than 4194304 products"),
    "many edits": (
        change(
            "cache-edits", value_dim=1, keys=[{"score": "0", "value": ["1"]}] * 4096,
            edits=[{"kind": "append", "score": "0", "value": ["1"]}] * 1024,
        ),
        "comes to more than 4194304 products",
    ),
    "many tiles": (
        change("tile-bounds", q_len=4096, kv_len=4096, block_m=1, block_n=1),
        "comes to more than 4194304 products",
    ),
    "many rows through a wide map": (
        change("linear", x=[["0"] * 64] * 2048, parameters=LINEAR),
        "comes to more than 4194304 products of a number and a parameter",
    ),
    "many rows that attend to each other": (
        change("multi-head-layer", x=[["0"]] * 4096, num_heads=1, parameters=HEADS),
        "comes to more than 4194304 products of a number and a parameter",
    ),
    "many targets": (
        change(
            "decoder-layer", x=[["0"]] * 4096, context=[["0"]], num_heads=1,
            parameters=[DECODER],
        ),
        "comes to more than 4194304 products of a number and a parameter",
    ),
    "a size that is a float": (change("window", q_len=1.0), "has the number 1.0"),
    "a size that is true": (change("window", q_len=True), "field q_len: true is not an integer"),
    "a name that is long": (change("window", **{"x" * 10**6: 1}), "…: is not known."),
    "an id that is no line": (change("window", id="window-\n1"), "window-\\n1: field id: "),
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_small_files_that_come_to_much(name: str) -> None:
    bomb, reason = BOMBS[name]
    assert reason in refusal(lambda: family_of(bomb, f"{bomb['family']}.json"))


settings_here = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@settings_here
@given(name=st.sampled_from(NAMES), data=st.data())
def test_damaged_bytes(name: str, data: st.DataObject, tmp_path_factory: Any) -> None:
    """Cut short, with bytes changed, or with a piece of it twice."""
    content = bytearray(read_committed(name))
    start = data.draw(st.integers(0, len(content) - 1))
    how = data.draw(st.sampled_from(["cut", "replace", "insert", "repeat"]))
    if how == "cut":
        del content[start:]
    elif how == "repeat":
        content[start:start] = content[start : start + data.draw(st.integers(1, 400))]
    else:
        new = data.draw(st.binary(min_size=1, max_size=6))
        content[start : start + (len(new) if how == "replace" else 0)] = new
    path = tmp_path_factory.mktemp("damaged") / f"{name}.json"
    path.write_bytes(content)
    in_order(lambda: load_file(path))


HOSTILE = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(
        ["9" * 4000, "-" + "9" * 4001, "1/" + "3" * 3000, "0", "-0", "01", "1/2", "1e5", "NaN",
         "default", 2**63, -1, 10**30, [], {}, [[]], [["1"]], "\ud800", "\n", "1\n", "x" * 10**5]
    ),
    st.recursive(st.just("1"), lambda inner: st.lists(inner, max_size=3), max_leaves=9),
)  # fmt: skip


@settings_here
@given(name=st.sampled_from(NAMES), data=st.data())
def test_any_value_replaced_removed_or_doubled(name: str, data: st.DataObject) -> None:
    loaded = document(name, data.draw(st.integers(0, 3)))
    for _ in range(data.draw(st.integers(1, 3))):
        target: Any = loaded if data.draw(st.integers(0, 9)) == 0 else loaded["vectors"]
        while True:
            keys = list(target) if isinstance(target, dict) else list(range(len(target)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            inner = target[key]
            deeper = isinstance(inner, (dict, list)) and inner
            if deeper and (target is loaded["vectors"] or data.draw(st.integers(0, 3))):
                target = inner
                continue
            how = data.draw(st.sampled_from(["replace", "remove", "double", "add"]))
            if how == "remove":
                del target[key]
            elif how == "double" and isinstance(target, list):
                target.append(copy.deepcopy(inner))
            elif how == "add" and isinstance(target, dict):
                target[data.draw(st.text(max_size=5))] = data.draw(HOSTILE)
            else:
                target[key] = data.draw(HOSTILE)
            break
        if not isinstance(loaded.get("vectors"), list) or not loaded["vectors"]:
            break
    in_order(lambda: family_of(loaded, f"{name}.json"))


@settings_here
@given(content=st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8")))
def test_any_bytes_are_refused(content: bytes, tmp_path_factory: Any) -> None:
    path = tmp_path_factory.mktemp("bytes") / "merge.json"
    path.write_bytes(content)
    refusal(lambda: load_file(path))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=20,
)


@settings_here
@given(content=JSON)
def test_any_json_is_refused(content: Any) -> None:
    refusal(lambda: family_of(content, "merge.json"))
    refusal(lambda: family_of(document("merge", 2) | {"vectors": [content]}, "merge.json"))


def test_a_long_number_is_cut_in_the_sentence() -> None:
    wrong = document("window", 2)
    wrong["vectors"][0]["q"][0][0] = "1/" + "9" * 300
    sentence = refusal(lambda: family_of(wrong, "window.json"))
    assert "is not exact in bfloat16" in sentence
