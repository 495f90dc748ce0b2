"""The index beside the vectors: current, and its refusals."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from vector_edits import refusal

from bridge.toolchain import ToolchainError
from bridge.vectors import generate, lean_files
from bridge.vectors import load as loader
from bridge.vectors.format import files
from bridge.vectors.format.fields import VectorError
from bridge.vectors.load import default_directory, load, load_file, write_index
from bridge.vectors.model.attention import Family

NAMES = ("cache-window", "combine", "one-key")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of three families with its index."""
    for name in NAMES:
        shutil.copyfile(default_directory() / f"{name}.json", tmp_path / f"{name}.json")
    write_index(tmp_path)
    return tmp_path


def edit_index(folder: Path, edit: Callable[[dict[str, Any]], object]) -> Path:
    path = folder / "index.json"
    document = json.loads(path.read_text("utf-8"))
    edit(document)
    path.write_text(json.dumps(document), "utf-8")
    return folder


def test_the_committed_index_is_current(tmp_path: Path) -> None:
    """Every committed file is checked in full here; elsewhere its hash is trusted."""
    for path in default_directory().glob("*.json"):
        if path.name != "index.json":
            shutil.copyfile(path, tmp_path / path.name)
    write_index(tmp_path)
    made = (tmp_path / "index.json").read_bytes()
    assert made == (default_directory() / "index.json").read_bytes()
    document = json.loads(made)
    assert document["vectors"] == sum(e["vectors"] for e in document["families"])


def test_a_folder_with_its_index_loads(folder: Path) -> None:
    assert [family.name for family in load(folder)] == list(NAMES)


def test_no_other_file_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    plain = files.read_bytes
    monkeypatch.setattr(files, "read_bytes", lambda path: (read.append(path.name), plain(path))[1])
    (family,) = load(folder, ["combine"])
    assert (family.name, len(family.vectors)) == ("combine", 12)
    assert "combine.json" in read
    assert not {"cache-window.json", "one-key.json"} & set(read)
    with pytest.raises(VectorError, match=r"there is no family 'two'; index\.json lists those"):
        load(folder, ["combine", "two"])


def test_the_shape_of_this_project_s_files_is_not_checked_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that of all others is, whatever an index beside them says of their hashes."""
    checked: list[str] = []
    plain = loader.family_of

    def family_of(document: Any, filename: str) -> Family:
        checked.append(filename)
        return plain(document, filename)

    monkeypatch.setattr(loader, "family_of", family_of)
    loader._family.cache_clear()
    whole = load(folder)
    assert checked == []
    path = folder / "one-key.json"
    path.write_bytes(path.read_bytes().replace(b'["-2"', b'["02"', 1))
    edit_index(folder, lambda d: d["families"][2].update(sha256=files.sha256(path.read_bytes())))
    with pytest.raises(VectorError, match=r"one-key-000: field q\[0\]\[0\]: \"02"):
        load(folder)
    assert checked == ["one-key.json"]
    assert [load_file(default_directory() / f"{name}.json") for name in NAMES] == whole


def program(made: list[str]) -> lean_files.RunMain:
    """A stand-in for the Lean program: it makes the families that nothing claims."""

    def run_main(module: str, arguments: list[str]) -> None:
        assert module == lean_files.MODULE
        for name in NAMES:
            try:
                Path(arguments[1], name).mkdir()
            except FileExistsError:
                continue
            made.append(name)
            shutil.copyfile(
                default_directory() / f"{name}.json", Path(arguments[0], f"{name}.json")
            )

    return run_main


def test_generating_again_gives_the_same_bytes(tmp_path: Path) -> None:
    made: list[str] = []
    run_main = program(made)
    committed = tmp_path / "vectors"
    assert generate.replace(run_main, committed) == [
        "cache-window.json", "combine.json", "index.json", "one-key.json",
    ]  # fmt: skip
    # However many processes there are, each family is made by one.
    assert sorted(made) == sorted(NAMES)
    assert generate.replace(run_main, committed) == []
    written = lean_files.texts(run_main)
    texts = {**written, "index.json": generate.index_of(written)}
    assert generate.differences(texts, committed) == []
    (committed / "index.json").write_bytes(b"{}")
    assert generate.differences(texts, committed) == [
        "index.json differs from the Lean definitions' output, first in line 1"
    ]


def test_how_many_families_are_written_is_told(tmp_path: Path) -> None:
    made: list[str] = []
    told: list[int] = []
    generate.generate(program(made), tmp_path, told.append)
    assert told == sorted(told)
    assert told[-1] == len(NAMES)


def test_one_family_alone(folder: Path) -> None:
    made: list[str] = []
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    path = folder / "combine.json"
    path.write_bytes(path.read_bytes().replace(b"vectors", b"vektors"))
    assert generate.replace_family(program(made), folder, "combine") == ["combine.json"]
    assert made == ["combine"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    assert generate.replace_family(program(made), folder, "combine") == []
    # A family that has no file yet is made beside it.
    (folder / "one-key.json").unlink()
    assert generate.replace_family(program(made), folder, "combine") == ["one-key.json"]
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole


def test_a_family_that_is_not_made(folder: Path) -> None:
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(VectorError, match=r"^new: the Lean definitions make no family of this"):
        generate.replace_family(program([]), folder, "new")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole


def test_one_process_that_fails_is_enough(tmp_path: Path) -> None:
    def run_main(module: str, arguments: list[str]) -> None:
        raise ToolchainError("a score is too large")

    with pytest.raises(ToolchainError, match="a score is too large"):
        generate.generate(run_main, tmp_path)
    assert list(tmp_path.iterdir()) == []


def first(document: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = document["families"][0]
    return found


DAMAGE: dict[str, tuple[Callable[[dict[str, Any]], object], str]] = {
    "another version": (
        lambda d: d.update(format="attention-vectors-index-2", families={}),
        "index.json: field format: is attention-vectors-index-2, but this version reads "
        "attention-vectors-index-1.",
    ),
    "vectors of another version": (
        lambda d: d.update(vectors_format="attention-vectors-3"),
        "index.json: field vectors_format: is attention-vectors-3, but this version reads "
        "attention-vectors-2.",
    ),
    "no version": (lambda d: d.pop("format"), "index.json: lacks field format."),
    "a wrong hash": (
        lambda d: first(d).update(sha256="0" * 64),
        "cache-window.json: its SHA-256 is not that of index.json: it was changed, or",
    ),
    "a number that is none": (
        lambda d: first(d).update(vectors="10"),
        'index.json: field families[0].vectors: "10" is not an integer.',
    ),
    "a wrong number": (
        lambda d: (first(d).update(vectors=11), d.update(vectors=35)),
        "index.json: cache-window.json: field vectors: is 11, but the file says 10.",
    ),
    "a wrong sum": (
        lambda d: d.update(vectors=1),
        "index.json: field vectors: is 1, but its families have 34.",
    ),
    "another theorem": (
        lambda d: first(d).update(theorems=[]),
        "index.json: cache-window.json: field theorems: is [], but the file says ['kv-window'].",
    ),
    "a family twice": (
        lambda d: d["families"].append(first(d)),
        "index.json: cache-window.json is listed twice.",
    ),
    "a family too few": (
        lambda d: d["families"].pop(),
        "one-key.json: is not in index.json.",
    ),
    "a path instead of a name": (
        lambda d: first(d).update(file="../cache-window.json"),
        'index.json: field families[0].file: "../cache-window.json" is not a slug and .json.',
    ),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_refused_in_one_sentence(name: str, folder: Path) -> None:
    edit, sentence = DAMAGE[name]
    assert refusal(lambda: load(edit_index(folder, edit))).startswith(sentence)


def test_a_missing_file_is_named(folder: Path) -> None:
    (folder / "combine.json").unlink()
    with pytest.raises(VectorError, match=r"combine\.json: is in index\.json, but not in its fol"):
        load(folder)


def test_a_missing_index_is_named(folder: Path) -> None:
    (folder / "index.json").unlink()
    with pytest.raises(VectorError, match=r"there is no index\.json here, which lists the vector"):
        load(folder)


def test_a_file_changed_in_one_place_is_noticed(folder: Path) -> None:
    path = folder / "one-key.json"
    path.write_bytes(path.read_bytes().replace(b"weight", b"height", 1))
    with pytest.raises(VectorError, match=r"one-key\.json: its SHA-256 is not that of index\.json"):
        load(folder)
