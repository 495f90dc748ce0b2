from __future__ import annotations

from pathlib import Path

from bridge.report.cache import Cache, digest


def tree(folder: Path) -> Path:
    (folder / "a").mkdir(parents=True)
    (folder / "a" / "x.py").write_text("1")
    (folder / "b.py").write_text("2")
    return folder


def test_a_digest_depends_on_contents_names_and_facts_only(tmp_path: Path) -> None:
    one, two = tree(tmp_path / "one"), tree(tmp_path / "two")
    parts = ["a", "b.py"]
    same = digest(one, parts, "fact")
    assert digest(two, parts, "fact") == same
    assert digest(one, parts, "other fact") != same
    (two / "a" / "x.pyc").write_text("byte code")
    assert digest(two, parts, "fact") == same
    (two / "a" / "x.py").write_text("3")
    assert digest(two, parts, "fact") != same
    (one / "a" / "x.py").rename(one / "a" / "y.py")
    assert digest(one, parts, "fact") != same


def test_a_good_value_is_kept_and_a_bad_one_is_not(tmp_path: Path) -> None:
    cache, key = Cache(tmp_path / "cache"), "k" * 24
    calls: list[int] = []

    def compute() -> int:
        calls.append(0)
        return len(calls)

    assert cache.get("n", key, compute, lambda n: n > 1) == (1, False)
    assert cache.get("n", key, compute, lambda n: n > 1) == (2, False)
    assert cache.get("n", key, compute, lambda n: n > 1) == (2, True)
    assert cache.get("n", "j" * 24, compute, lambda n: True) == (3, False)
    # One value is kept for each name.
    assert cache.get("n", key, compute, lambda n: True) == (4, False)


def test_a_damaged_value_is_computed_again(tmp_path: Path) -> None:
    cache, key = Cache(tmp_path), "k" * 24
    cache.get("n", key, lambda: 1, lambda n: True)
    (tmp_path / f"n-{key}.json").write_text("{")
    assert cache.get("n", key, lambda: 2, lambda n: True) == (2, False)
