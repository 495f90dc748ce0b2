"""Measuring launch options, with times that are made up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from attention_checks import inputs
from kernel_checks import score_options

from pyimpl.backends.kernels.forward import launch
from pyimpl.backends.kernels.parts import tuning
from pyimpl.backends.kernels.parts.launch import Launch

DEFAULT = {"block_m": 64, "block_n": 32, "num_warps": 4, "num_stages": 2}
CPU = torch.device("cpu")


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tuning.cache_file()


def make(q_len: int = 40, **changes: object):
    query, key, value, _ = inputs((1, 1, q_len, 70, 16, 16), torch.float32)
    options = score_options(query, **changes)

    def launch_with(chosen: dict[str, int]) -> Launch:
        lse = query[..., 0]
        return launch(query, key, value, query, lse, options, capability=80, chosen=chosen)

    return launch_with


def fastest(made, seconds) -> Launch:
    return tuning.fastest(made, DEFAULT, CPU, seconds=seconds, device_name="GPU")


def narrow(one: Launch) -> float:
    return 1.0 if one.constants["BLOCK_N"] == 16 and one.num_stages == 2 else 2.0


def never(one: Launch) -> float:
    raise AssertionError("measured although the result is known")


def test_candidates() -> None:
    found = tuning.candidates(DEFAULT)
    assert found[0] == DEFAULT
    assert {"block_m": 64, "block_n": 16, "num_warps": 4, "num_stages": 3} in found
    assert {"block_m": 32, "block_n": 16, "num_warps": 2, "num_stages": 3} in found
    assert len(found) == 10
    small = {"block_m": 16, "block_n": 16, "num_warps": 2, "num_stages": 1}
    assert all(min(x["block_m"], x["block_n"]) >= 16 for x in tuning.candidates(small))
    assert all(x["num_warps"] >= 2 for x in tuning.candidates(small))


def test_the_fastest_is_taken_and_kept(cache: Path) -> None:
    first = fastest(make(), narrow)
    assert (first.constants["BLOCK_M"], first.constants["BLOCK_N"]) == (64, 16)
    assert fastest(make(), never).constants["BLOCK_N"] == 16
    # Up to the next power of two it is one kind; other lengths and other options are others.
    assert fastest(make(q_len=64), never).constants["BLOCK_N"] == 16
    for other in (make(q_len=65), make(softcap=2.0)):
        with pytest.raises(AssertionError, match="although"):
            fastest(other, never)
    assert len(json.loads(cache.read_text())) == 1
    assert [path.name for path in cache.parent.iterdir()] == ["tuning.json"]


@pytest.mark.parametrize("text", ["", "[]", "{"])
def test_a_cache_that_cannot_be_used(cache: Path, text: str) -> None:
    cache.parent.mkdir()
    cache.write_text(text)
    assert fastest(make(), narrow).constants["BLOCK_N"] == 16
    assert fastest(make(), never).constants["BLOCK_N"] == 16


def test_the_fastest_way(cache: Path) -> None:
    ran: list[str] = []
    ways = {name: (lambda name=name: ran.append(name)) for name in ("first", "second")}

    def way(seconds, launch: Launch) -> str:
        return tuning.fastest_way(ways, launch, CPU, seconds=seconds, device_name="GPU")

    def second(run) -> float:
        run()
        return {"first": 2.0, "second": 1.0}[ran[-1]]

    launch = make()(DEFAULT)
    assert way(second, launch) == "second"
    assert way(never, launch) == "second"
    assert ran == ["first", "second"]
    cache.write_text(cache.read_text().replace("second", "third"))
    assert way(second, launch) == "second", "a way that is none any more"
    assert fastest(make(), narrow).constants["BLOCK_N"] == 16, "the options have a key of their own"
    assert way(never, make(q_len=0)(DEFAULT)) == "first"


def test_options_that_are_no_candidates_any_more(cache: Path) -> None:
    fastest(make(), narrow)
    (key,) = json.loads(cache.read_text())
    cache.write_text(json.dumps({key: DEFAULT | {"num_warps": 3}}))
    assert fastest(make(), narrow).constants["BLOCK_N"] == 16


def test_a_folder_that_cannot_be_written(cache: Path) -> None:
    cache.parent.write_text("a file where the folder should be")
    assert fastest(make(), narrow).constants["BLOCK_N"] == 16


def test_only_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATTENTION_TUNE", raising=False)
    assert not tuning.is_wanted(torch.device("cuda"))
    monkeypatch.setenv("ATTENTION_TUNE", "1")
    assert not tuning.is_wanted(CPU)
    assert not tuning.is_wanted(torch.device("cuda")), "never interpreted"
