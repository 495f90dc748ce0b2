"""The jobs to do: the most wanted first, nothing twice, and nothing that is known."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bench.hour.candidates import (
    FEW,
    LARGE,
    MOST,
    SMALL,
    Candidate,
    best_of,
    candidate_of,
    default,
    defaults,
    fits,
    to_tune,
    tuned_cases,
)
from bench.hour.findings import Finding, Known
from bench.hour.kernels import KERNELS
from bench.hour.plan import (
    STAGES,
    Plan,
    Settings,
    compilation_of,
    compile_name,
    table,
)
from bench.hour.what_if import WHAT_IFS

OVERLAYS = {name: f"/{name}" for name in WHAT_IFS}
IDENTITY = ["GPU"]
START: Finding = {"run": 1, "what": "start", "identity": IDENTITY}


def plan(*findings: Finding, **changes: Any) -> Plan:
    known = Known.of([START, *findings], IDENTITY)
    return Plan(replace(Settings(families=("softcap",)), **changes), known, OVERLAYS)


def end_of(name: str, status: str = "ok") -> Finding:
    return {"run": 1, "what": "job", "job": name, "status": status}


def timing(one: Candidate, ms: float) -> Finding:
    return {"run": 1, "what": "timed", "candidate": one.plain, "ms": ms}


def test_the_defaults_come_first_and_every_kernel_has_its_turn() -> None:
    found = to_tune(LARGE, 90, {})
    assert len(found) == len(set(found)) == MOST
    groups = [(one.kernel, one.case) for one in found]
    several = len(set(groups))
    assert several == 7 * 3 * 2 + 2 * 2 + 2 * 3
    assert found[:several] == [default(*group, 90) for group in groups[:several]]
    # The next ones are neighbours, a few of each in turns.
    assert set(groups[several : several + FEW * several]) == set(groups[:several])
    assert set(groups) == {(name, case) for name in KERNELS for case in tuned_cases(name, LARGE)}


@pytest.mark.parametrize(
    ("kernel", "head_dim", "mask", "options", "needed"),
    [
        # Candidates that an H100 refused, with the shared memory that it said they need.
        ("forward", 128, "full", (128, 256, 8, 2), 294912),
        ("forward", 256, "causal", (256, 64, 8, 2), 262144),
        ("forward", 256, "full", (128, 128, 8, 2), 327680),
        ("queries", 128, "full", (128, 128, 8, 3), 262144),
        ("queries", 256, "full", (256, 32, 8, 2), 327680),
        ("queries", 256, "causal", (128, 64, 8, 2), 262144),
    ],
)
def test_what_cannot_fit_is_not_proposed(
    kernel: str, head_dim: int, mask: str, options: tuple[int, ...], needed: int
) -> None:
    (case,) = [
        x for x in tuned_cases(kernel, LARGE) if x.head_dim == head_dim and x.mask.name == mask
    ]
    names = ("block_m", "block_n", "num_warps", "num_stages")
    chosen = dict(zip(names, options, strict=True))
    least = KERNELS[kernel].least_shared(case, chosen)
    assert 232448 < least <= needed
    one = Candidate(kernel, case, tuple(sorted(chosen.items())))
    assert not fits(one, 90)
    assert one not in to_tune(LARGE, 90, {}, [kernel], 10_000)
    assert all(fits(x, 90) for x in to_tune(LARGE, 90, {}))


def test_the_keys_at_256_have_candidates_that_spill_less() -> None:
    found = {
        tuple(dict(x.options)[n] for n in ("block_m", "block_n", "num_warps", "num_stages"))
        for x in plan().tuned
        if x.kernel == "keys" and x.case.head_dim == 256 and x.case.mask.name == "full"
    }
    # 184, 56, 280, 864 and 1040 bytes; 488 as `launch_options` has it.
    wanted = {(16, 64, 8, 2), (64, 32, 8, 1), (64, 32, 8, 2), (32, 64, 8, 1), (32, 128, 16, 1)}
    assert wanted < found
    assert all(m >= 16 and n >= 16 and 2 <= warps <= 16 and s >= 1 for m, n, warps, s in found)


def test_the_best_of_earlier_runs_is_the_centre() -> None:
    case = tuned_cases("forward", LARGE)[0]
    usual = default("forward", case, 90)
    options = dict(usual.options) | {"block_m": 128, "num_warps": 8}
    best = Candidate("forward", case, tuple(sorted(options.items())))
    findings = [
        timing(usual, 2.0),
        timing(best, 1.0),
        timing(replace(best, variant="no maximum"), 0.1),
    ]
    assert best_of(findings) == {("forward", case): options}
    tuned = to_tune(LARGE, 90, best_of(findings), ["forward"])
    some = [x for x in tuned if x.case == case][:4]
    assert some[:2] == [usual, best]
    assert sum(dict(some[2].options)[n] != options[n] for n in options) <= 2


def test_a_candidate_survives_json() -> None:
    for one in to_tune(SMALL, 90, {})[:40]:
        assert candidate_of(one.plain) == one
    assert len({one.name for one in to_tune(LARGE, 90, {})}) == MOST


def test_what_is_known_is_not_done_again() -> None:
    first = plan()
    for stage in STAGES:
        jobs = first.jobs(stage.name, {})
        assert jobs
        assert len({job.name for job in jobs}) == len(jobs)
        again = plan(*(end_of(job.name) for job in jobs[1:])).jobs(stage.name, {})
        assert [job.name for job in again] == [jobs[0].name]


def test_what_is_known_is_not_compiled_again() -> None:
    first = plan()
    compiled = [job.name for job in first.compilations()]
    assert len(set(compiled)) == len(compiled)
    wanted = {compilation_of(job) for stage in STAGES for job in first.jobs(stage.name, {})}
    assert set(compiled) <= wanted
    jobs = [job for stage in ("correct", "tune", "why") for job in first.jobs(stage, {})]
    assert plan(*(end_of(job.name) for job in jobs)).compilations() == []
    # One that was judged and not yet timed is wanted still.
    assert len(plan(*(end_of(job.name) for job in first.jobs("correct", {}))).compilations()) > 100


@pytest.mark.parametrize("status", ["failed", "late", "crashed"])
def test_what_could_not_be_compiled_is_not_tried_again(status: str) -> None:
    one = plan().tuned[0]
    found = plan(end_of(compile_name(one), status))
    assert one not in found.tuned
    assert one not in found.defaults
    assert compile_name(one) not in {job.name for job in found.compilations()}
    assert one in plan(end_of(compile_name(one))).tuned


def test_what_another_machine_found_is_not_known() -> None:
    job = plan().jobs("ceilings", {})[0]
    known = Known.of([START, end_of(job.name)], ["another"])
    assert Plan(Settings(), known, OVERLAYS).jobs("ceilings", {}) == [job]


def test_the_stages_follow_each_other() -> None:
    shares = [stage.until for stage in STAGES]
    assert shares == sorted(shares)
    assert shares[-1] < 1.0


def test_the_table_says_what_will_be_cut() -> None:
    lines = table(plan(cores=14), 560)
    assert "candidates to compile" in lines[0]
    assert "in 14 processes" in lines[0]
    assert [line.split()[0] for line in lines[2:]] == [stage.name for stage in STAGES]
    assert "will be cut" not in lines[2]
    assert all("will be cut" in line for line in table(plan(cores=14), 30)[3:8])


def test_of_some_kernels_only() -> None:
    found = plan(kernels=("decode",))
    assert {one.kernel for one in (*found.defaults, *found.tuned)} == {"decode"}
    assert found.variants == []
    assert found.jobs("races", {})


def test_what_leaves_something_out_is_timed_beside_the_whole() -> None:
    variants = plan().variants
    names = [job.name for job in plan().jobs("why", {})]
    assert names == [f"why {one.name}" for one in variants]
    for one in variants:
        whole = replace(one, variant="")
        assert variants.index(whole) <= variants.index(one)
    assert {one.kernel for one in variants} >= {"forward", "hopper", "hopper-keys"}


def test_a_kernel_is_for_its_devices_and_dtypes() -> None:
    usual = [one for one in defaults(LARGE, 90) if one.kernel == "hopper"]
    assert {one.case.dtype for one in usual} == {"bfloat16", "float16"}
    tuned = [one for one in to_tune(LARGE, 90, {}, most=10_000) if one.kernel == "hopper"]
    assert {one.case.head_dim for one in tuned} == {64, 128, 256}
    for one in tuned:
        chosen = dict(one.options)
        assert 32 <= chosen["block_n"] <= 256
        assert fits(one, 90)
    for other in (80, 100):
        assert all(
            one.kernel != "hopper" for one in (*defaults(LARGE, other), *to_tune(LARGE, other, {}))
        )
