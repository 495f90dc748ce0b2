"""Definition, Workload, Solution and Trace of FlashInfer-Bench, read and validated by its models.

The package `flashinfer-bench` is imported when a file is read, and nothing of it but `data`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge.conformance.sandbox import wire

if TYPE_CHECKING:
    from flashinfer_bench.data import Definition, Solution, Trace, Workload

_INSTALL = (
    "pip install --no-deps flashinfer-bench==0.1.2 docstring-parser (its models alone are used, "
    "which need pydantic and PyTorch)"
)
# The languages that a process here can run.
_LANGUAGES = ("python", "triton")


class BenchError(ValueError):
    """A file that cannot be used. The message is a sentence that names it, with whatever of the
    file stands in it as text."""

    def __init__(self, sentence: str) -> None:
        super().__init__(wire.printable(sentence))


def models() -> Any:
    """The package's models. Raises BenchError where it is not installed."""
    try:
        from flashinfer_bench import data
    except ImportError as error:
        raise BenchError(f"flashinfer-bench is not here: {_INSTALL}") from error
    return data


def definition(path: Path) -> Definition:
    """The definition in a JSON file. Raises BenchError."""
    read: Definition = _validate(models().Definition, _json(path, path.read_text), path)
    _check_printable(path, read.name)
    return read


def solution(path: Path, of: Definition) -> Solution:
    """The solution in a JSON file: it runs here and solves this definition. Raises BenchError."""
    read: Solution = _validate(models().Solution, _json(path, path.read_text), path)
    for name in (read.name, read.spec.entry_point):
        _check_printable(path, name)
    if read.definition != of.name:
        raise BenchError(f"{path}: solves {read.definition!r}; the definition given is {of.name!r}")
    language = read.spec.language.value
    if language not in _LANGUAGES:
        raise BenchError(f"{path}: is written in {language}; {' and '.join(_LANGUAGES)} run here")
    return read


def workloads(path: Path, of: Definition) -> list[Workload]:
    """The workloads of this definition in a file of traces, one a line. Raises BenchError."""
    found: list[Workload] = []
    for number, line in enumerate(_text(path).splitlines(), 1):
        if line.strip():
            where = f"{path}, line {number}"
            trace: Trace = _validate(models().Trace, _json(where, lambda text=line: text), where)
            if trace.definition == of.name:
                found.append(trace.workload)
    if not found:
        raise BenchError(f"{path}: has no workload of {of.name}")
    return found


def write_sources(sources: Mapping[str, str], folder: Path) -> None:
    """Files, by their relative paths, which the models have looked at. Raises BenchError for one
    that no file can have."""
    for name, text in sources.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise BenchError(f"its source {wire.show(name)} cannot be written: {why}") from error


def _check_printable(path: Path, name: str) -> None:
    """Raises BenchError for a name that a report would not show as it is."""
    if not name.isprintable():
        raise BenchError(f"{path}: has the name {name!a}; printable characters are accepted")


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BenchError(f"{path}: cannot be read: {error}") from error


def _json(where: object, read: Any) -> Any:
    try:
        return json.loads(read() if not isinstance(where, Path) else _text(where))
    except (ValueError, RecursionError) as error:
        if isinstance(error, BenchError):
            raise
        raise BenchError(f"{where}: is no JSON: {error}") from error


def _validate(model: Any, data: Any, where: object) -> Any:
    from pydantic import ValidationError

    try:
        return model.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or model.__name__
        raise BenchError(
            f"{where}: is no {model.__name__} of FlashInfer-Bench: {place}: {first['msg']}"
        ) from error
