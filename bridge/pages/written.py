"""Everything that is written without Lean, and committed, in one place."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from bridge.audit.theorems import sentences_by_id
from bridge.files import write_texts
from bridge.findings import store, verdicts
from bridge.pages import (
    benchmarks_page,
    chapters,
    claims_page,
    coverage_page,
    examples_page,
    findings_page,
    generated_tests,
    hand_written,
    kernel_coverage,
    map_data,
    maps_page,
    mutants_page,
    pictures,
    statements_page,
    theorem_map,
    theorems_page,
    trackers,
    vectors_page,
)
from bridge.pages.generated_tests import FOLDER
from bridge.report import timings
from bridge.report.timings import Timings
from bridge.source import lean_imports
from bridge.vectors.format.shape_check import schema_text, schemas
from bridge.vectors.load import load


def texts(root: Path) -> dict[str, str]:
    """By path from the root, the text that each file should have. Raises the loader's errors, and
    SourceError where a page shows something that the sources lack."""
    families = load(root / "tests" / "vectors")
    maps = map_data.read(root, families)
    sentences = sentences_by_id(root / "docs" / "theorems.toml")
    made = {
        **chapters.pages(root, families),
        **pictures.pictures(families),
        mutants_page.PAGE: mutants_page.page(),
        vectors_page.PAGE: vectors_page.page(families, trackers.items(root)),
        findings_page.PAGE: findings_page.page(
            store.read(root / store.FILE), sentences, verdicts.read(root)
        ),
        **examples_page.texts(root),
        claims_page.PAGE: claims_page.page(root, (family.name for family in families)),
        theorems_page.PAGE: theorems_page.page(root, maps),
        statements_page.PAGE: statements_page.page(root),
        maps_page.PAGE: maps_page.page(root, maps),
        coverage_page.PAGE: coverage_page.page(maps),
        kernel_coverage.PAGE: kernel_coverage.page(maps, families),
        **theorem_map.texts(maps),
        **benchmarks_page.texts(root),
        **{f"bridge/vectors/{name}": schema_text(schema) for name, schema in schemas().items()},
        **generated_tests.modules(root, families),
    }
    return {**made, **hand_written.texts(root, families, made)}


def write_all(root: Path) -> list[str]:
    """Write the files whose text differs, and remove tests, drawings and pages that have lost their
    source. Returns their paths."""
    # Lean builds the modules that these import, even if the pages cannot be made.
    changed = lean_imports.write(root)
    wanted = texts(root)
    changed += write_texts(root, wanted)
    for name in stale(root, wanted):
        (root / name).unlink()
        changed.append(name)
    return changed


def record(root: Path, command: str, found: Timings) -> None:
    """Record how long `verify` or `test` took, and write the pages that say it."""
    timings.write(root, command, found)
    write_all(root)


def stale(root: Path, wanted: Iterable[str]) -> list[str]:
    """Generated tests, drawings and pages of examples that nothing makes any more."""
    found = [*root.glob(f"{FOLDER}/test_*.py"), *root.glob(f"{theorem_map.FOLDER}/*.svg")]
    found += root.glob(f"{examples_page.PAGES}/*.md")
    names = (path.relative_to(root).as_posix() for path in found)
    return sorted(set(names) - set(wanted))
