"""Compiled kernels in few files, brought to another machine."""

from __future__ import annotations

import zipfile
from pathlib import Path

from hour_fakes import write_kernel
from triton.runtime.cache import FileCacheManager

from bench.hour.cache import pack, unpack


def test_kernels_are_found_by_triton_where_they_are_unpacked(tmp_path: Path, monkeypatch) -> None:
    write_kernel(tmp_path / "here", "AAAA", 1000)
    (tmp_path / "here" / "BBBB").mkdir()  # not finished
    (tmp_path / "here" / "BBBB" / "k.cubin").write_bytes(b"half")
    out = tmp_path / "out"
    out.mkdir()
    assert [path.name for path in pack(tmp_path / "here", out)] == ["cache-0.zip"]
    assert unpack(out, tmp_path / "there") == 1
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "there"))
    group = FileCacheManager("AAAA").get_group("k.json")
    assert group == {
        name: str(tmp_path / "there" / "AAAA" / name) for name in ("k.cubin", "k.json")
    }  # fmt: skip
    binary = (tmp_path / "there" / "AAAA" / "k.cubin").read_bytes()
    assert binary == (tmp_path / "here" / "AAAA" / "k.cubin").read_bytes()


def test_files_are_as_small_and_as_few_as_they_must_be(tmp_path: Path) -> None:
    for n, name in enumerate("ABCDEFG"):
        write_kernel(tmp_path / "cache", name * 4, 4000, age=float(n))
    written = pack(tmp_path / "cache", tmp_path, largest=10000, most=2)
    assert [path.name for path in written] == ["cache-0.zip", "cache-1.zip"]
    assert all(path.stat().st_size <= 10000 for path in written)
    # The newest are kept.
    assert unpack(tmp_path, tmp_path / "there") == 4
    assert sorted(path.name for path in (tmp_path / "there").iterdir()) == [
        "AAAA", "BBBB", "CCCC", "DDDD",
    ]  # fmt: skip


def test_nothing_to_pack(tmp_path: Path) -> None:
    assert pack(tmp_path / "nowhere", tmp_path) == []
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_kernel_is_not_unpacked(tmp_path: Path) -> None:
    (tmp_path / "cache-0.zip").write_bytes(b"half a file")
    with zipfile.ZipFile(tmp_path / "cache-1.zip", "w") as archive:
        for name in ("../AAAA/k.json", "/AAAA/k.json", "AAAA/../k.json", "AAAA/k.so", "a/b/k.json"):
            archive.writestr(name, "{}")
    assert unpack(tmp_path, tmp_path / "there") == 0
    assert not (tmp_path / "there").exists()
