"""`docs/vectors.md`: complete, and its example runs."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any, get_args

import committed
import msgspec
import pytest

from bridge import limits
from bridge.limits import Limit
from bridge.pages import vectors_page
from bridge.vectors.format import shape_operations as operations
from bridge.vectors.format import shapes
from bridge.vectors.format.shape_check import VECTORS
from bridge.vectors.format.shape_index import Entry
from bridge.vectors.load import default_directory, write_index

ROOT = Path(__file__).resolve().parents[3]
TEXT = (ROOT / vectors_page.PAGE).read_text("utf-8")
EDITS = (operations.Append, operations.Delete, operations.Replace, operations.Slide)


def names_in(text: str) -> set[str]:
    """The words in backticks, and the fields that a path in them names."""
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`\n]+)`", text))))


def fields(*shapes: Any) -> set[str]:
    """Those of all these structs, or unions of structs."""
    each = [one for shape in shapes for one in get_args(shape) or [shape]]
    return {field.encode_name for one in each for field in msgspec.structs.fields(one)}


@pytest.mark.parametrize("operation", VECTORS)
def test_every_field_of_every_operation_is_explained(operation: str) -> None:
    section = TEXT.partition(f"\n### {operation}\n")[2].partition("\n##")[0]
    common = TEXT.partition("\n## A file\n")[2].partition("\n## ")[0]
    assert section
    always = fields(shapes.Vector)
    assert always <= names_in(common)
    assert fields(*VECTORS[operation].values()) - always <= names_in(section)


def test_every_kind_of_mask_and_edit_and_every_field_of_a_row_is_explained() -> None:
    words = names_in(TEXT)
    for kind in get_args(shapes.Mask):
        assert f"| `{kind.__struct_config__.tag}` |" in TEXT
    for edit in EDITS:
        assert f"`{edit.__struct_config__.tag}`" in TEXT
    rows = (shapes.Row, shapes.EnclosedRow, operations.State, operations.Key)
    assert fields(*rows, *get_args(shapes.Mask), *EDITS) <= words
    for field in fields(Entry):
        assert f".{field}`" in TEXT or f"[].{field}`" in TEXT


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("node") is None:
        pytest.skip("needs node")
    (text,) = re.findall(r"```javascript\n(.*?)```", TEXT, re.DOTALL)
    path = tmp_path_factory.mktemp("example") / "example.mjs"
    path.write_text(text, "utf-8")
    return path


def run(program: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return limits.run(["node", program, folder], Limit(240, 120))


def test_the_example_checks_the_vectors(program: Path) -> None:
    done = run(program, default_directory())
    assert done.returncode == 0, done.stderr
    wanted = [
        f"{v.id}: {v.q_len} rows"
        for v in committed.vectors("attention")
        if v.model == "exact" and v.kv_len <= 20
        if v.mask.kind in ("none", "causal", "boolean")
    ]
    assert done.stdout.splitlines() == wanted
    assert len(wanted) > 150


@pytest.mark.parametrize("place", ["max", "denominator", "numerators"])
def test_the_example_finds_one_wrong_number(program: Path, place: str, tmp_path: Path) -> None:
    document = json.loads((default_directory() / "causal.json").read_text("utf-8"))
    row = document["vectors"][3]["expected"][-1]
    if place == "numerators":
        row["output"]["numerators"][0] = str(int(row["output"]["numerators"][0]) + 1)
    elif place == "max":
        row["max"] = str(int(row["max"]) + 1)
    else:
        row["denominator"] = str(2 * int(row["denominator"].partition("/")[0]) + 1)
    (tmp_path / "causal.json").write_text(json.dumps(document), "utf-8")
    write_index(tmp_path)
    done = run(program, tmp_path)
    assert done.returncode != 0
    assert document["vectors"][3]["id"] + ", row" in done.stderr


def test_another_format_is_refused_by_the_example(program: Path, tmp_path: Path) -> None:
    (tmp_path / "index.json").write_text('{"vectors_format": "attention-vectors-3"}', "utf-8")
    assert "attention-vectors-3" in run(program, tmp_path).stderr
