"""The index in lean-dojo's data model: a `TracedRepo` of `TracedFile`s with their `TracedTheorem`s.

lean-dojo's own tracing needs GitHub, elan and a Lean that it knows; its data model needs none of
them. So the syntax trees are made here, from the names, positions, documentation and premises that
Lean stored and from the end of each statement in the text, and lean-dojo writes, reads and answers
from them. Terms have no places in the text, so neither have the premises.

The trace is a git repository of its own below `build/index`, of the Lean files alone: lean-dojo
copies the whole folder of a repository, environments and builds included.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import filelock

from bridge.index.entries import Entry, Index
from bridge.source.lean import Written, declarations
from bridge.toolchain import lakefile, modules

_KIND_OF_NODE = {
    "theorem": "CommandTheoremNode",
    "lemma": "CommandTheoremNode",
    "def": "CommandDefinitionNode",
    "abbrev": "CommandAbbrevNode",
    "instance": "CommandInstanceNode",
    "structure": "CommandStructureNode",
    "class": "CommandStructureNode",
    "inductive": "CommandInductiveNode",
    "class inductive": "CommandClassinductiveNode",
}


class TraceError(RuntimeError):
    """Why there is no trace. The message is one sentence."""


def folder_of(root: Path) -> Path:
    """The folder in which the trace of a project is kept."""
    return root / "build" / "index" / lakefile.read(root / "lakefile.lean").package


def trace(root: Path, index: Index, texts: Mapping[str, str]) -> Any:
    """The `TracedRepo` of the index, read back from its saved files; made again if the index or a
    file has changed. texts: the text of each module.

    Raises TraceError where lean-dojo is missing or cannot work.
    """
    folder = folder_of(root)
    dojo = _lean_dojo(folder.parent)
    stamp = folder.with_suffix(".stamp")
    entries = [(e.name, e.range, e.doc, e.uses, e.core) for e in index.entries.values()]
    digest = sha256(repr((Path(__file__).read_bytes(), entries, sorted(texts.items()))).encode())
    # Commands that ask for the index run beside each other.
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder.with_suffix(".lock")):
        kept = stamp.exists() and stamp.read_text("utf-8") == digest.hexdigest()
        if not kept:
            stamp.unlink(missing_ok=True)
            _copy_sources(root, folder, texts)
        repo = dojo.LeanGitRepo.from_path(folder)
        if not kept:
            _write(dojo, folder, repo, index, texts)
            stamp.write_text(digest.hexdigest(), "utf-8")
        return read(root, repo)


def read(root: Path, repo: Any | None = None) -> Any:
    """The `TracedRepo` that is kept. Raises TraceError if there is none."""
    folder = folder_of(root)
    dojo = _lean_dojo(folder.parent)
    if not (folder / ".git").exists():
        raise TraceError("there is no trace yet: run python -m bridge index first")
    import networkx
    from lean_dojo.data_extraction.traced_data import TracedFile

    repo = repo or dojo.LeanGitRepo.from_path(folder)
    graph = networkx.DiGraph()
    files = []
    for path in sorted(folder.rglob("*.trace.xml")):
        file = TracedFile.from_xml(folder, path, repo)
        files.append(file)
        graph.add_node(str(file.path), traced_file=file)
    for file in files:
        text = (folder / file.path).read_text("utf-8")
        for name in modules.header_imports(text):
            other = str(modules.file_of(Path(), name))
            if other in graph:
                graph.add_edge(str(file.path), other, module=name)
    traced = dojo.TracedRepo(repo, {}, folder, files, graph)
    for file in files:
        file.traced_repo = traced
    return traced


def disagreements(traced: Any, index: Index) -> list[str]:
    """The differences of lean-dojo's answers from the index: theorems, places and premises."""
    found = []
    answers = {}
    for theorem in traced.get_traced_theorems():
        module = ".".join(theorem.file_path.with_suffix("").parts)
        answers[module, theorem.theorem.full_name] = theorem
    for entry in index.entries.values():
        theorem = answers.pop((entry.module, entry.shown), None)
        if theorem is None:
            if entry.kind == "theorem" and not _is_made(entry, index):
                found.append(f"{entry.name} is no theorem of lean-dojo's trace")
            continue
        if tuple(theorem.end) != (entry.range[2], entry.range[3] + 1):
            found.append(f"{entry.name} ends at {theorem.end} in lean-dojo's trace")
        if set(theorem.get_premise_full_names()) != {*entry.uses, *entry.core}:
            found.append(f"{entry.name} has other premises in lean-dojo's trace")
    found += [f"{name} is in lean-dojo's trace alone" for _, name in sorted(answers)]
    return found


def source_of(traced: Any, entry: Entry) -> str | None:
    """A declaration as it stands in its file, a theorem without its proof, by lean-dojo; None for
    one that has no command of its own."""
    file = traced.get_traced_file(entry.file)
    if entry.kind == "theorem":
        theorem = file.get_traced_theorem(entry.shown)
        return None if theorem is None else str(theorem.get_theorem_statement())
    for premise in file.get_premise_definitions():
        if premise["full_name"] == entry.shown:
            return str(premise["code"])
    return None


def _is_made(entry: Entry, index: Index) -> bool:
    """Whether it is a theorem without a command of its own: an instance's or a field's."""
    return entry.shown.rpartition(".")[0] in index.entries


def _lean_dojo(cache: Path) -> Any:
    if sys.version_info >= (3, 13):
        raise TraceError("lean-dojo needs Python older than 3.13, so there is no trace")
    # Read when it is imported: no requests, no processes, and its copies below build.
    os.environ["CACHE_DIR"] = str(cache / "lean-dojo")
    os.environ["DISABLE_REMOTE_CACHE"] = "1"
    os.environ["NUM_PROCS"] = "1"
    os.environ.pop("GITHUB_ACCESS_TOKEN", None)
    try:
        import lean_dojo
    except ImportError as error:
        raise TraceError(
            f"lean-dojo cannot be imported, so there is no trace: {error}; make setup installs it"
        ) from error
    except (AssertionError, OSError, subprocess.CalledProcessError) as error:
        raise TraceError(
            "lean-dojo needs git 2.25 or newer on PATH, so there is no trace"
        ) from error
    return lean_dojo


def _copy_sources(root: Path, folder: Path, texts: Mapping[str, str]) -> None:
    """A repository of the Lean files with one commit, whose hash depends on nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(folder.parent / "lean-dojo", ignore_errors=True)
    for name, text in texts.items():
        path = modules.file_of(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
    for name in ("lakefile.lean", "lean-toolchain"):
        shutil.copyfile(root / name, folder / name)
    (folder / ".gitignore").write_text("/.lake/\n", "utf-8")
    date = "2000-01-01T00:00:00Z"
    who = {"NAME": "index", "EMAIL": "index@localhost", "DATE": date}
    variables = {f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()}
    environment = {**os.environ, **variables, "GIT_CONFIG_GLOBAL": os.devnull}
    for command in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "The traced files"]):
        try:
            subprocess.run(
                ["git", "-C", str(folder), *command], check=True, env=environment, text=True,
                capture_output=True,
            )  # fmt: skip
        except (OSError, subprocess.CalledProcessError) as error:
            raise TraceError(f"git {command[0]} fails in {folder}, so there is no trace") from error


def _write(dojo: Any, folder: Path, repo: Any, index: Index, texts: Mapping[str, str]) -> None:
    from lean_dojo.utils import to_xml_path

    by_name: dict[Any, Entry] = {}
    for entry in index.entries.values():
        by_name[entry.module, entry.shown, entry.range[:2]] = entry
        if entry.kind == "instance":
            # One without a name in the text is known by its place.
            by_name[entry.module, None, entry.range[:2]] = entry
    for module, text in texts.items():
        path = modules.file_of(Path(), module)
        pairs = [
            (by_name[module, w.name, w.first], w)
            for w in declarations(text)
            if w.keyword in _KIND_OF_NODE and (module, w.name, w.first) in by_name
        ]
        file = _Tree(dojo, folder, path, index).file(repo, pairs)
        xml = folder / to_xml_path(folder, path, repo)
        xml.parent.mkdir(parents=True, exist_ok=True)
        xml.write_text(file.to_xml(), "utf-8")


class _Tree:
    """The syntax tree of a file, as far as lean-dojo asks for it."""

    def __init__(self, dojo: Any, folder: Path, path: Path, index: Index) -> None:
        from lean_dojo.data_extraction import ast, lean, traced_data

        self.ast, self.lean, self.data = ast, lean, traced_data
        self.folder, self.index = folder, index
        self.source = dojo.LeanFile(folder, path)

    def pos(self, place: tuple[int, int]) -> Any:
        return self.lean.Pos(place[0], place[1] + 1)

    def node(
        self, kind: str, start: Any, end: Any, children: list[Any], *more: Any, **others: Any
    ) -> Any:
        return getattr(self.ast, kind)(self.source, start, end, children, *more, **others)

    def file(self, repo: Any, pairs: list[tuple[Entry, Written]]) -> Any:
        comments: list[Any] = []
        children = [self.declaration(entry, written, comments) for entry, written in pairs]
        start, end = self.source.start_pos, self.source.end_pos
        tree = self.node("FileNode", start, end, children)
        return self.data.TracedFile(self.folder, repo, self.source, tree, comments)

    def declaration(self, entry: Entry, written: Written, comments: list[Any]) -> Any:
        assert written.keyword_at is not None
        start, end = self.pos(entry.range[:2]), self.pos(entry.range[2:])
        keyword = self.pos(written.keyword_at)
        before: list[Any] = []
        if written.doc is not None:
            # It begins where the declaration does, and ends some lines on.
            length = len(f"/--{written.doc}-/")
            closed = self.source.offset(start, length)
            before.append(self.node("CommandDoccommentNode", start, closed, [], f"{written.doc}-/"))
            comments.append(self.data.Comment(start, closed, f"{written.doc}-/"))
        if entry.private:
            before.append(self.node("CommandPrivateNode", None, None, []))
        kind = _KIND_OF_NODE[written.keyword]
        parts = [self.node("CommandDeclmodifiersNode", start, keyword, before)]
        # False would come back from XML as a string, and so as true.
        more: dict[str, Any] = {}
        if kind == "CommandTheoremNode":
            more = {"full_name": entry.shown, "_is_private_decl": entry.private or None}
        name = written.name or entry.shown
        children = self.body(entry, written, keyword, end)
        parts.append(self.node(kind, keyword, end, children, name, **more))
        return self.node("CommandDeclarationNode", start, end, parts, name, entry.shown)

    def body(self, entry: Entry, written: Written, start: Any, end: Any) -> list[Any]:
        """Keyword, name, the names that the statement uses, and the value with its further uses."""
        assert written.value_at is not None
        statement = set(entry.uses_in_statement)
        value = self.pos(written.value_at)
        first = [self.premise(name) for name in entry.uses if name in statement]
        rest = [self.premise(n) for n in (*entry.uses, *entry.core) if n not in statement]
        kind = "TermBytacticNode" if self.is_tactic(value, end) else "NullNode"
        proof = self.node(kind, value, end, rest)
        return [
            self.atom(start, written.keyword),
            self.node("CommandDeclidNode", None, None, []),
            self.node("CommandDeclsigNode", None, value, first),
            self.node("CommandDeclvalsimpleNode", value, end, [self.atom(value, ":="), proof]),
        ]

    def is_tactic(self, value: Any, end: Any) -> bool:
        text: str = self.source[value:end]
        return text.removeprefix(":=").split()[:1] == ["by"]

    def atom(self, at: Any, text: str) -> Any:
        return self.node("AtomNode", at, at, [], "", "", text)

    def premise(self, name: str) -> Any:
        """A name that a declaration uses, with where it is declared."""
        entry = self.index.entries.get(name)
        node = self.node("IdentNode", None, None, [], "", "", name, name, full_name=name)
        if entry is not None:
            places = {
                "mod_name": entry.module,
                "def_path": entry.file,
                "def_start": self.pos(entry.range[:2]),
                "def_end": self.pos(entry.range[2:]),
            }
            for key, value in places.items():
                object.__setattr__(node, key, value)
        return node
