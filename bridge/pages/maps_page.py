"""`docs/maps.md`: the way to the six maps, with the contents of each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from bridge.audit import claims
from bridge.conformance.mutants.attention import MUTANTS
from bridge.pages import benchmarks
from bridge.pages.coverage_page import rows
from bridge.pages.map_data import Maps
from bridge.pages.render import render
from pyimpl.backends.kernels.offline.cases import KERNELS

PAGE = "docs/maps.md"


def page(root: Path, maps: Maps) -> str:
    """The text of the page."""
    manifest = claims.read(root)
    verdicts = Counter(claim.verdict for claim in manifest.claims)
    runs = benchmarks.read(root)
    return render(
        "maps.md.jinja",
        maps=maps,
        uses=sum(len(one.rests_on) for one in maps.theorems.values()),
        rows=rows(maps),
        kernels=len(KERNELS),
        verdicts={name: verdicts[name] for name in claims.VERDICTS if verdicts[name]},
        documents=manifest.documents,
        mutants=MUTANTS,
        files=len({mutant.file for mutant in MUTANTS}),
        runs=runs,
        gpu=any(run.gpu for run in runs),
    )
