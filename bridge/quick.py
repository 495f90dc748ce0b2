"""The tests of `make quick`: those that import changed files, the nearest first."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from bridge.cache import Cache, digest
from bridge.command import Problem

# How many test files are run at the most, and the seconds after which no test begins
# (`tests/quick_runs.py`). To collect 40 files takes 5 s; most run in less than 4 s each.
MOST_FILES = 40
SECONDS = 50
# Those that `tests/conftest.py` and the files themselves mark.
MARKERS = "not thorough and not lean and not long"
_KEPT = "quick"


@dataclass(frozen=True)
class Base:
    """The files with which the tests passed: the digest of each, and the test files left
    meanwhile."""

    files: Mapping[str, str]
    left: tuple[str, ...] = ()


@dataclass(frozen=True)
class Selection:
    """The changed files, the test files to run, those left to `make test`, and the changed files
    that no test reaches."""

    changed: tuple[str, ...] = ()
    chosen: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()

    def sentences(self) -> list[str]:
        """A line for each of these."""
        if not self.changed:
            found = ["Nothing has changed since the tests passed: none are run."]
        else:
            found = [
                f"Changed, {_files(self.changed)}: {_list_names(self.changed)}",
                f"Tests, {_files(self.chosen)}, the nearest first: {_list_names(self.chosen)}",
            ]
        if self.unread:
            found.append(f"No test reads {_list_names(self.unread)}.")
        if self.left:
            found.append(f"Left to make test: {_files(self.left)} of tests.")
        return found


@dataclass
class Readers:
    """By file, the Python files that import it or name it; as paths from `root`."""

    root: Path
    direct: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    sources: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, root: Path) -> Readers:
        """Those of the Python files below `root`, by ruff's graph of imports."""
        found = cls(root)
        for name, imported in _imports(root).items():
            found.sources[name] = (root / name).read_text("utf-8")
            for one in imported:
                found.direct[one].add(name)
        for name in found.sources:
            for folder in PurePosixPath(name).parents:
                conftest = f"{folder}/conftest.py"
                if conftest in found.sources and conftest != name:
                    found.direct[conftest].add(name)
        return found

    def first(self, name: str) -> set[str]:
        """Those that read one file themselves: that import it, or else whose text has its name or
        that of its nearest folder for which there are any."""
        if self.direct[name] or _is_test(name):
            return self.direct[name]
        path = PurePosixPath(name)
        words = [(path.name,), *((f'"{one.name}"', f"{one.name}/") for one in path.parents)]
        for wanted in words[:-1]:
            if found := {n for n, text in self.sources.items() if any(w in text for w in wanted)}:
                return found - {name}
        return set()

    def tests(self, changed: Collection[str]) -> list[str]:
        """The test files that read these files, through others too; the nearest first, and of those
        equally near the ones named after a changed file."""
        distance = dict.fromkeys(changed, 0)
        for package in (PurePosixPath(name) for name in changed):
            if package.name == "__init__.py":
                # Whoever imports a module imports its package.
                inside = (n for n in self.sources if PurePosixPath(n).parent == package.parent)
                distance |= dict.fromkeys(inside, 0)
        nearest = sorted(distance)
        for name in nearest:
            for reader in sorted(self.first(name) - distance.keys()):
                nearest.append(reader)
                distance[reader] = distance[name] + 1
        stems = {PurePosixPath(name).stem for name in changed}

        def order(name: str) -> tuple[int, bool, str]:
            namesake = PurePosixPath(name).stem.removeprefix("test_") in stems
            return distance[name], not namesake, name

        return sorted(filter(_is_test, self.sources.keys() & distance), key=order)


def select(root: Path, files: Mapping[str, str], base: Base | None) -> Selection:
    """The tests of changed files. files: the digests of the files of the project. base: the files
    with which the tests passed last; without it, those that git knows count. Raises Problem without
    either."""
    left = base.left if base is not None else ()
    changed = _changes_since(files, base.files) if base is not None else _changes_in_git(root)
    if not changed:
        return Selection(left=left)
    readers = Readers.of(root)
    reached = readers.tests(changed)
    chosen = tuple(reached[:MOST_FILES])
    return Selection(
        changed=tuple(changed),
        chosen=chosen,
        left=tuple(sorted({*left, *reached[MOST_FILES:]} & readers.sources.keys() - {*chosen})),
        unread=tuple(one for one in changed if not readers.tests([one])),
    )


def command(selection: Selection, record: Path) -> tuple[str, ...]:
    """The arguments of pytest for the chosen files; `record`: the file that the ones which time
    did not allow are written to."""
    plugin = ("-p", "tests.quick_runs", f"--within={SECONDS}", f"--left={record}")
    return (*plugin, "-m", MARKERS, *selection.chosen)


def last(cache: Cache, facts: Iterable[str]) -> Base | None:
    """The files with which the tests passed last, in this environment."""
    found = cache.find(_KEPT, digest(cache.folder, (), *facts))
    return Base(found["files"], tuple(found["left"])) if found is not None else None


def keep(cache: Cache, facts: Iterable[str], base: Base) -> None:
    """Keep the files with which the tests have passed."""
    value = {"files": dict(base.files), "left": base.left}
    cache.keep(_KEPT, digest(cache.folder, (), *facts), value)


def _files(names: Collection[str]) -> str:
    return "1 file" if len(names) == 1 else f"{len(names)} files"


def _list_names(names: Collection[str], most: int = 6) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join([*names][:most]) + more if names else "none"


def _is_test(name: str) -> bool:
    return name.startswith("tests/") and PurePosixPath(name).name.startswith("test_")


def _imports(root: Path) -> dict[str, list[str]]:
    """By Python file, the files below `root` that it imports. Tests find the modules that they
    share by pytest's `pythonpath`."""
    with (root / "pyproject.toml").open("rb") as file:
        folders = tomllib.load(file)["tool"]["pytest"]["ini_options"]["pythonpath"]
    done = subprocess.run(
        [sys.executable, "-m", "ruff", "analyze", "graph", "--quiet",
         "--detect-string-imports", "--min-dots", "1", "--config",
         f"src = {json.dumps(folders)}", "."],
        cwd=root, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode != 0:
        raise Problem(f"ruff finds no graph of imports: {done.stderr.strip()}")
    found: dict[str, list[str]] = json.loads(done.stdout)
    return found


def _changes_since(files: Mapping[str, str], before: Mapping[str, str]) -> list[str]:
    return sorted(n for n in {*files, *before} if files.get(n) != before.get(n))


def _changes_in_git(root: Path) -> list[str]:
    """The files that differ from where this branch left main, and those git does not know."""

    def ask(*arguments: str) -> list[str] | None:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True)
        return None if done.returncode != 0 else [n for n in done.stdout.split("\0") if n]

    for main in ("main", "origin/main", "HEAD"):
        if (found := ask("merge-base", "HEAD", main)) is not None:
            changed = ask("diff", "--name-only", "-z", found[0].strip())
            untracked = ask("ls-files", "-z", "--others", "--exclude-standard")
            if changed is not None and untracked is not None:
                return sorted({*changed, *untracked})
    raise Problem("there is neither a run of the tests that passed nor git; run make test first")
