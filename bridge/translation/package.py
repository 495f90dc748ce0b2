"""The modules of `bridge/spec`: a file for each Lean file, put together and formatted."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bridge.reach import reach_all
from bridge.templates import template
from bridge.translation import build, names, patterns, recursion
from bridge.translation.errors import NotAProgramError, UntranslatableError
from bridge.translation.hints import Hints, is_alias
from bridge.translation.library import INTERVAL, SPEC, UNFOLDED, Library
from bridge.translation.terms import Binding, Constant, Definition, Term, Type, parts
from bridge.translation.writer import Writer

FOLDER = "bridge/spec"
_CORE = ("Arithmetic", "Dual", "Score", "Value", "div", "int_div", "log2", "mod", "get_or",
         "get_or_none", "erase_index", "set_index")  # fmt: skip
_STANDARD = {
    "dataclass": "from dataclasses import dataclass",
    "Enum": "from enum import Enum",
    "reduce": "from functools import reduce",
    "Callable": "from collections.abc import Callable",
    "Any": "from typing import Any",
    "TypeAlias": "from typing import TypeAlias",
}
_WIDTH = 100
_LEFT_OUT = (
    "`{}` is not here: it is a statement about all there is of a kind, which nothing decides."
)


@dataclass(frozen=True)
class Source:
    """The place of a declaration: its Lean file and line, with its docstring."""

    file: str
    line: int
    doc: str


def module_of(file: str) -> str:
    """Attention/Spec/ScoreMods.lean → score_mods."""
    return names.snake(Path(file).stem)


def texts(library: Library, sources: Mapping[str, Source], root: Path) -> dict[str, str]:
    """By path from the root, the text of each module.

    Raises UntranslatableError for a definition that has no translation.
    """
    kept = _reach_all(library)
    docs = {name: source.doc for name, source in sources.items()}
    homes = {
        title: module_of(sources[name].file) for name in kept for title in _titles(library, name)
    }
    by_file: dict[str, list[str]] = {}
    for name in sorted(kept, key=lambda name: (sources[name].file, sources[name].line)):
        by_file.setdefault(sources[name].file, []).append(name)
    found: dict[str, str] = {}
    for file, members in by_file.items():
        items, left_out = [], []
        for name in members:
            try:
                items.append(_item(library, name, docs))
            except NotAProgramError:
                left_out.append(name)
            except UntranslatableError as error:
                raise error.within(name) from error
        module = module_of(file)
        if f"{FOLDER}/{module}.py" in found or module == "core":
            raise UntranslatableError(f"two files would become {module}.py")
        found[f"{FOLDER}/{module}.py"] = template("bridge.translation", "module.py.jinja").render(
            about=_about(root / file),
            left_out=["\n".join(textwrap.wrap(_LEFT_OUT.format(n), _WIDTH)) for n in left_out],
            file=file,
            imports=_imports(items, module, homes),
            items=items,
        )
    return _format(found, root)


def _reach_all(library: Library) -> list[str]:
    """All definitions of the Spec and of the intervals, and those that these use."""
    wanted = (SPEC, INTERVAL)
    start = [d.name for d in library.programs() if d.name.startswith(wanted)]
    start += [name for name in library.types if f"{name}.".startswith(wanted)]
    start += [d.name for d in library.definitions.values() if is_alias(d)]

    def behind(name: str) -> list[str]:
        known = library.definitions.get(name)
        return [] if known is None else _uses(library, known.body)

    return [name for name in reach_all(start, behind) if name not in UNFOLDED]


def _uses(library: Library, t: Term) -> list[str]:
    """The definitions that a term computes with."""
    own = [t.name] if isinstance(t, Constant) and t.name in library.definitions else []
    programs = [n for n in own if library.definitions[n].result_kind in ("term", "proposition")]
    return programs + [name for part in parts(t) for name in _uses(library, part)]


def _titles(library: Library, name: str) -> list[str]:
    """The Python names that a declaration brings."""
    if name in library.types:
        type_ = library.types[name]
        title = names.class_(name)
        if type_.structure or type_.enumeration:
            return [title]
        return [title, *(names.constructor(c.name) for c in type_.constructors)]
    if library.definitions[name].result_kind == "type":
        return [names.class_(name)]
    return [library.function_name(name)]


# Items


def _item(library: Library, name: str, docs: Mapping[str, str]) -> str:
    if name in library.types:
        return _class(library, library.types[name], docs)
    definition, doc = library.definitions[name], docs[name]
    if definition.result_kind == "type":
        return _alias(library, definition, doc)
    return function(library, definition, doc)


def _docstring(doc: str, name: str) -> str:
    parts_of = re.split(r"\n\n|\n(?=Source:)", doc.strip())
    paragraphs = [" ".join(part.split()) for part in parts_of]
    paragraphs.append(f"Lean: `{name}`.")
    wrapped = ["\n".join(textwrap.wrap(p, _WIDTH - 8)) for p in paragraphs]
    inner = textwrap.indent("\n\n".join(wrapped) + "\n", "    ").lstrip()
    return f'    """{inner}    """'.replace("\\", "\\\\")


def function(library: Library, definition: Definition, doc: str) -> str:
    """The function that a definition becomes, not yet formatted."""
    slots = library.slots(definition.name)
    hints = Hints(library, {p.id: p.name for p in definition.parameters if p.kind == "type"})
    used = {library.function_name(n) for n in _uses(library, definition.body)}
    writer = Writer(library, definition, {*used, "num"}, hints.of)
    paired = list(zip(definition.parameters, slots, strict=True))
    keywords = [(p, slot) for p, slot in paired if slot.how == "keyword"]
    for parameter, slot in keywords:
        writer.taken.add(slot.name)
        writer.stands_for(parameter, build.name(slot.name))
    positional = []
    for parameter, slot in paired:
        if slot.how == "positional":
            wanted = None if parameter.named else patterns.name_from(definition.body, parameter)
            positional.append(f"{writer.bind(parameter, wanted)}: {hints.of(parameter.type)}")
    named = [f"{slot.name}: {_keyword_hint(hints, parameter)}" for parameter, slot in keywords]
    if library.uses_numbers(definition.name):
        named.append("num: Arithmetic")
    parameters = ", ".join([*positional, *(["*", *named] if named else [])])
    result = "bool" if definition.result_kind == "proposition" else hints.of(definition.result)
    title = library.function_name(definition.name)
    body = textwrap.indent("\n".join(map(build.text, recursion.body(writer))), "    ")
    said = _docstring(doc, definition.name)
    return f"def {title}({parameters}) -> {result}:\n{said}\n{body}"


def _keyword_hint(hints: Hints, parameter: Binding) -> str:
    return hints.of(parameter.type) if parameter.kind == "term" else "Value"


def _alias(library: Library, definition: Definition, doc: str) -> str:
    hints = Hints(library, {p.id: p.name for p in definition.parameters if p.kind == "type"})
    title = names.class_(definition.name)
    return f"{_comment(doc, definition.name)}\n{title}: TypeAlias = {hints.of(definition.body)}"


def _class(library: Library, type_: Type, docs: Mapping[str, str]) -> str:
    title = names.class_(type_.name)
    if type_.structure:
        return _dataclass(library, type_, 0, title, docs)
    if type_.enumeration:
        members = "\n".join(
            f'    {names.member(c.name)} = "{c.name.rsplit(".", 1)[-1]}"'
            for c in type_.constructors
        )
        said = _docstring(docs[type_.name], type_.name)
        return f"class {title}(Enum):\n{said}\n\n{members}"
    classes = [
        _dataclass(library, type_, n, names.constructor(c.name), docs)
        for n, c in enumerate(type_.constructors)
    ]
    union = " | ".join(names.constructor(c.name) for c in type_.constructors)
    comment = _comment(docs[type_.name], type_.name)
    return "\n\n\n".join([*classes, f"{comment}\n{title}: TypeAlias = {union}"])


def _dataclass(
    library: Library, type_: Type, place: int, title: str, docs: Mapping[str, str]
) -> str:
    constructor = type_.constructors[place]
    hints = Hints(library, {p.id: p.name for p in constructor.parameters if p.kind == "type"})
    name = type_.name if type_.structure else constructor.name
    fields = [f for f in constructor.fields if f.kind == "term"]
    lines = [f"    {names.identifier(f.name)}: {hints.of(f.type)}" for f in fields]
    said = [docs[name]]
    said += [f"{f.name}: {_lower_first(d)}" for f in fields if (d := docs.get(f"{name}.{f.name}"))]
    text = _docstring("\n\n".join(said), name)
    return "@dataclass(frozen=True)\n" + f"class {title}:\n{text}\n\n" + "\n".join(lines)


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _comment(doc: str, name: str) -> str:
    said = textwrap.wrap(f"{' '.join(doc.split())} Lean: `{name}`.", _WIDTH - 2)
    return "\n".join(f"# {line}" for line in said)


# Files


def _about(path: Path) -> str:
    """The heading of a Lean file."""
    found = re.search(r"/-!\s*#\s*(.+?)(?:\s*-/|\n)", path.read_text("utf-8"))
    return f"{found.group(1).strip().rstrip('.') if found else path.stem}."


def _free(item: str) -> set[str]:
    """The names that an item reads and does not bind. A variable may have the name of a function of
    another file; the writer gives it that of none that the item calls."""
    nodes = list(ast.walk(ast.parse(item)))
    variables = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {v.id for v in variables if isinstance(v.ctx, ast.Store)}
    bound |= {node.arg for node in nodes if isinstance(node, ast.arg)}
    return {v.id for v in variables if isinstance(v.ctx, ast.Load)} - bound


def _imports(items: list[str], module: str, homes: Mapping[str, str]) -> str:
    used = set().union(*map(_free, items))
    lines = [line for name, line in _STANDARD.items() if name in used]
    lines += [f"from bridge.spec.core import {name}" for name in _CORE if name in used]
    lines += [
        f"from bridge.spec.{home} import {title}"
        for title, home in homes.items()
        if title in used and home != module
    ]
    return "\n".join(lines)


def _format(modules: Mapping[str, str], root: Path) -> dict[str, str]:
    """The modules as the linter and the formatter want them."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        (folder / "pyproject.toml").write_bytes((root / "pyproject.toml").read_bytes())
        for path, text in modules.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text, "utf-8")
        for name in ("__init__.py", "core.py"):
            (folder / FOLDER / name).write_bytes((root / FOLDER / name).read_bytes())
        ruff = [sys.executable, "-m", "ruff", "--quiet"]
        for command in (["check", "--fix", "--select=I"], ["format"]):
            subprocess.run([*ruff, *command, "."], cwd=folder, check=True)
        return {path: (folder / path).read_text("utf-8") for path in modules}
