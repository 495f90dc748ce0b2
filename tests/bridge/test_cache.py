from __future__ import annotations

from pathlib import Path

from bridge.audit import statements
from bridge.cache import Cache, digest, imported_files

ROOT = Path(__file__).resolve().parents[2]


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


def test_the_files_of_a_module_are_its_own_and_those_that_it_imports(tmp_path: Path) -> None:
    (tmp_path / "p" / "q").mkdir(parents=True)
    sources = {
        "p/a.py": "import p.b\nfrom p import c, name\nimport json\n",
        "p/b.py": "def f():\n    from p.q.d import g\n",
        "p/c.py": "import p.a\n",
        "p/q/d.py": "",
        "p/other.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).write_text(text)
    assert imported_files(tmp_path, "p.a") == ["p/a.py", "p/b.py", "p/c.py", "p/q/d.py"]
    assert imported_files(tmp_path, "p.c") == imported_files(tmp_path, "p.a")
    assert imported_files(tmp_path, "p.other") == ["p/other.py"]
    assert imported_files(tmp_path, "p.a", without=["p.q", "p.c"]) == ["p/a.py", "p/b.py"]


def test_of_other_packages_the_modules_that_are_named_count(tmp_path: Path) -> None:
    sources = {
        "p/a.py": "import q\nfrom q import b, f\nfrom q.c import g\n",
        "q/__init__.py": "from q import d\n",
        "q/b.py": "from p import other\n",
        "q/c/__init__.py": "from q.c.e import g\n",
        "q/c/e.py": "",
        "q/d.py": "",
        "p/other.py": "",
    }
    for name, text in sources.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert imported_files(tmp_path, "p.a") == ["p/a.py"]
    found = ["p/a.py", "p/other.py", "q/b.py", "q/c/__init__.py", "q/c/e.py"]
    assert imported_files(tmp_path, "p.a", also=["q"]) == found


def test_the_kernel_depends_on_its_helpers_and_not_on_the_tile_loop() -> None:
    files = imported_files(ROOT, "pyimpl.backends.kernels.forward")
    assert {
        "pyimpl/backends/kernels/forward.py",
        "pyimpl/backends/kernels/parts/numerics.py",
    } <= set(files)
    assert "pyimpl/backends/tiled.py" not in files


def test_statements_are_kept_for_the_sources_that_they_are_of(tmp_path: Path) -> None:
    (tmp_path / "Attention").mkdir()
    lean = tmp_path / "Attention" / "A.lean"
    lean.write_text("theorem a : P := p\n", "utf-8")
    (tmp_path / "Attention.lean").write_text("public import Attention.A\n", "utf-8")
    assert statements.read_kept(tmp_path) == {}
    statements.keep(tmp_path, {"A.a": "A.a : P"})
    assert statements.read_kept(tmp_path) == {"A.a": "A.a : P"}
    lean.write_text("theorem a : Q := q\n", "utf-8")
    assert statements.read_kept(tmp_path) == {}
