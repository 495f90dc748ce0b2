"""Findings of one machine as tables of text: `PARTS`, each a part of the report, empty if there is
nothing to say."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from bench import report
from bench.cases import Case
from bench.hour.candidates import Candidate, candidate_of, case_of, default
from bench.hour.findings import Finding
from bench.hour.kernels import KERNELS
from bench.measure import Measured, Result
from bench.timing import Rate

Findings = Sequence[Finding]
COMMAND = "python -m bench.gpu_hour"

# The tile of a table of `launch_options`, in its order.
TILE = ("block_m", "block_n", "num_warps", "num_stages")
# Options that are faster by less are not proposed.
WORTH = 0.03
SHOWN = 5


def heading(findings: Findings) -> list[str]:
    """The date, the machine and the versions of each run."""
    starts = [x for x in findings if x["what"] == "start"]
    lines = []
    for start in starts:
        machine = report.Machine(**start["machine"])
        lines += report.heading(COMMAND, start["date"], machine)
    return lines


def wrong(findings: Findings) -> list[str]:
    """Answers outside of their tolerance, and bits that differ."""
    lines = []
    for x in findings:
        if x["what"] == "checked" and x["wrong"]:
            lines.append(f"  {candidate_of(x['candidate']).name}; on {x['on']}: {x['wrong']}")
        elif x["what"] == "race" and x["different"]:
            name = candidate_of(x["candidate"]).name
            lines.append(
                f"  {name}; on {x['on']}: other bits in {x['different']} of {x['runs']} runs"
            )
        elif x["what"] == "vectors" and x["failures"]:
            lines += [f"  vectors, {x['dtype']}: {failure}" for failure in x["failures"]]
        elif x["what"] == "peers":
            of = read_measured(x["measured"])
            lines += [
                f"  {result.name}, {of.case}: {result.reason}"
                for result in of.results
                if result.status == "wrong"
            ]
    return ["WRONG", *lines] if lines else []


def rates(findings: Findings) -> list[str]:
    """The machine's rates."""
    lines = [report.rate_line(Rate(**x["rate"])) for x in findings if x["what"] == "rate"]
    for x in findings:
        if x["what"] == "latency":
            lines.append(
                f"{x['call']}, {x['how']}, level-2 cache {x['cache']}: {1e3 * x['ms']:.1f} µs, "
                f"issued in {1e3 * x['issue_ms']:.1f} µs"
            )
    return lines


def checks(findings: Findings) -> list[str]:
    """The checks, by kernel: all that `wrong` does not name was right."""
    some = [x for x in findings if x["what"] == "checked"]
    lines = []
    for kernel in dict.fromkeys(x["candidate"]["kernel"] for x in some):
        of = [x for x in some if x["candidate"]["kernel"] == kernel]
        usual = {x["job"] for x in of if x["job"].startswith("correct ")}
        right = {x["job"] for x in of} - {x["job"] for x in of if x["wrong"]}
        tuned = {job for job in right if job.startswith("tune ")}
        # A result that is not finite has no such number.
        most = max((x["error_over_tolerance"] or 0.0 for x in of if not x["wrong"]), default=0.0)
        lines.append(
            f"  {kernel}: {len(usual & right)} of {len(usual)} cases as launch_options has them, "
            f"{len(tuned)} other choices; largest error {most:.2g} of the tolerance"
        )
    return ["Right, against float64", *lines] if lines else []


def last_times(findings: Findings) -> dict[Candidate, Finding]:
    """The last time of each candidate."""
    return {candidate_of(x["candidate"]): x for x in findings if x["what"] == "timed"}


def fastest(findings: Findings) -> list[str]:
    """For each kernel and case the default and the fastest options."""
    usual = _defaults(findings)
    registers = _registers(findings)
    groups: dict[tuple[str, Case], list[Candidate]] = {}
    times = last_times(findings)
    for one in times:
        if not one.variant:
            groups.setdefault((one.kernel, one.case), []).append(one)
    lines = []
    for (kernel, case), some in groups.items():
        some.sort(key=lambda one: float(times[one]["ms"]))
        unit, number = ("GB/s", "gbps") if case.operation == "decode" else ("TFLOP/s", "tflops")
        lines += ["", f"{kernel}: {case} ({len(some)} timed)"]
        own = usual.get((kernel, case))
        for one in dict.fromkeys([*some[:SHOWN], *(x for x in some if x == own)]):
            x = times[one]
            mark = ", as launch_options has it" if one == own else ""
            # The noted number is of all the work of the case.
            rate = x[number] * (1.0 if number == "gbps" else KERNELS[kernel].share)
            lines.append(
                f"  {x['ms']:9.4f} ms ± {x['spread']:4.1%}  {rate:7.4g} {unit}  "
                f"{_describe(one)}{registers.get(one, '')}{mark}"
            )
    return ["Launch options, fastest first", *lines] if lines else []


def proposals(findings: Findings) -> list[str]:
    """For each kernel and head size the options that are fastest over all masks together."""
    times, usual = last_times(findings), _defaults(findings)
    lines = []
    for kernel, head_dim in dict.fromkeys((x.kernel, x.case.head_dim) for x in times):
        cases = {
            x.case
            for x in times
            if (x.kernel, x.case.head_dim, x.variant) == (kernel, head_dim, "")
        }
        own = {case: usual[kernel, case] for case in cases if (kernel, case) in usual}
        if not cases or len(own) < len(cases) or any(one not in times for one in own.values()):
            continue
        options = [{x.options for x in times if (x.kernel, x.case, x.variant) == (kernel, c, "")}
                   for c in cases]  # fmt: skip
        gains = {
            chosen: math.exp(
                sum(
                    math.log(times[own[c]]["ms"] / times[Candidate(kernel, c, chosen)]["ms"])
                    for c in cases
                )
                / len(cases)
            )
            for chosen in set.intersection(*options)
        }
        best = max(gains, key=lambda chosen: gains[chosen])
        one = next(iter(own.values()))
        if gains[best] < 1.0 + WORTH:
            lines.append(
                f"  {kernel}, head_dim {head_dim}: {_describe(one)} stays, of {len(gains)}"
            )
            continue
        each = ", ".join(
            f"{case.mask} {times[own[case]]['ms'] / times[Candidate(kernel, case, best)]['ms']:.2f}"
            for case in sorted(cases, key=str)
        )
        new = Candidate(kernel, one.case, best)
        lines.append(
            f"  {kernel}, head_dim {head_dim}: {_describe(new)} instead of {_describe(one)}: "
            f"{gains[best]:.2f} times as fast ({each}), of {len(gains)}"
        )
    lines += _ways(times)
    return (
        ["Proposed for launch_options (block_m, block_n, num_warps, num_stages)", *lines]
        if lines
        else []
    )


def why(findings: Findings) -> list[str]:
    """The time that is saved where something is left out."""
    times = last_times(findings)
    lines = []
    for one, x in times.items():
        if not one.variant:
            continue
        line = f"  {one.kernel}, head_dim {one.case.head_dim}: {one.variant}: {x['ms']:.4f} "
        whole = times.get(Candidate(one.kernel, one.case, one.options))
        if whole is None:
            lines.append(f"{line}ms, the whole was not timed")
            continue
        saved = 1.0 - x["ms"] / whole["ms"]
        word = "less" if saved >= 0 else "more"
        lines.append(f"{line}of {whole['ms']:.4f} ms, {abs(saved):.0%} {word}")
    return ["With one thing left out", *lines] if lines else []


def races(findings: Findings) -> list[str]:
    """How often the bits were compared."""
    runs = [x for x in findings if x["what"] == "race"]
    if not runs:
        return []
    different = sum(bool(x["different"]) for x in runs)
    return [
        f"The same inputs again: {len(runs)} pairs of kernel and case, {different} with other bits"
    ]


def peers(findings: Findings) -> list[str]:
    """The tables of `bench`, and the same as CUDA graphs."""
    lines: list[str] = []
    for captured in (False, True):
        run = measurements(findings, captured)
        if run:
            lines += [""] * bool(lines) + (["As CUDA graphs"] if captured else [])
        operation = None
        for one in run:
            if one.case.operation != operation:
                operation = one.case.operation
                lines.append(report.headings(operation, True))
            lines += report.case_lines(one, True)
        lines += report.summary(run, True) if run else []
    return lines


def relative(findings: Findings) -> list[str]:
    """Ours relative to the best peer, case by case."""
    run = measurements(findings)
    return report.summary(run, True)[1:] if run else []


def vectors(findings: Findings) -> list[str]:
    """How many vectors were right, by dtype."""
    lines = []
    found = [x for x in findings if x["what"] == "vectors"]
    for dtype in dict.fromkeys(x["dtype"] for x in found):
        some = [x for x in found if x["dtype"] == dtype]
        counts = {n: sum(x["counts"][n] for x in some) for n in some[0]["counts"]}
        said = ", ".join(f"{n} {name}" for name, n in counts.items())
        lines.append(f"  {dtype}: {len(some)} families, {said}")
    return ["Vectors", *lines] if lines else []


def gaps(findings: Findings) -> list[str]:
    """The jobs that were not done, or came to no good end."""
    lines = []
    for x in findings:
        if x["what"] == "stage" and x["left"]:
            lines.append(
                f"  run {x['run']}, {x['stage']}: {x['left']} left out when its time was over"
            )
        if x["what"] == "error":
            lines.append(f"  {x['of']}: {x['reason']}")
        if x["what"] == "job" and x["status"] not in ("ok", "wrong"):
            lines.append(f"  {x['status']}: {x['job']}: {x['reason']}")
    return ["Not done", *lines] if lines else []


PARTS: tuple[Callable[[Findings], list[str]], ...] = (
    wrong, rates, checks, proposals, fastest, why, races, peers, vectors, gaps,
)  # fmt: skip


def measurements(findings: Findings, captured: bool = False) -> list[Measured]:
    """The measurements beside peers, each case once: with all its peers."""
    found: dict[Case, Measured] = {}
    for x in findings:
        if x["what"] == "peers" and x["captured"] == captured:
            one = read_measured(x["measured"])
            known = found.get(one.case)
            found[one.case] = one if known is None else _together(known, one)
    return list(found.values())


def read_measured(plain: dict[str, Any]) -> Measured:
    """Out of JSON."""
    results = tuple(Result(**x) for x in plain["results"])
    return Measured(case_of(plain["case"]), results, plain["best_peer"], plain["ratio_to_best"])


def _together(one: Measured, other: Measured) -> Measured:
    """The peers of both; ours as the first has it."""
    names = {x.name for x in one.results}
    results = (*one.results, *(x for x in other.results if x.name not in names))
    best = min((one, other), key=lambda x: math.inf if x.ratio_to_best is None else x.ratio_to_best)
    return Measured(one.case, results, best.best_peer, best.ratio_to_best)


def _defaults(findings: Findings) -> dict[tuple[str, Case], Candidate]:
    """The options of `launch_options` for each kernel and case that was timed."""
    capability = next((x["capability"] for x in findings if x["what"] == "start"), 90)
    keys = dict.fromkeys((x.kernel, x.case) for x in last_times(findings) if not x.variant)
    return {key: default(*key, capability) for key in keys if key[0] in KERNELS}


def _registers(findings: Findings) -> dict[Candidate, str]:
    found = {}
    for x in findings:
        if x["what"] == "compiled":
            some = [k for k in x["kernels"].values() if "registers" in k]
            if some:
                most = max(some, key=lambda k: int(k["registers"]))
                found[candidate_of(x["candidate"])] = (
                    f", {most['registers']} registers, {most['spilled']} B spilled"
                )
    return found


def _describe(one: Candidate) -> str:
    options = dict(one.options)
    tile = "(" + ", ".join(str(options.pop(name)) for name in TILE if name in options) + ")"
    return " ".join([tile, *(f"{name}={number}" for name, number in options.items())])


def _ways(times: dict[Candidate, Finding]) -> Iterator[str]:
    """Two loops for the gradients, or one with atomic additions."""

    def best(kernel: str, case: Case) -> float:
        some = [x["ms"] for one, x in times.items()
                if (one.kernel, one.case, one.variant) == (kernel, case, "")]  # fmt: skip
        return min(some, default=math.nan)

    for case in dict.fromkeys(x.case for x in times if x.kernel == "sums" and not x.variant):
        two, one = best("keys", case) + best("queries", case), best("sums", case)
        if not math.isnan(two):
            yield (
                f"  backward, head_dim {case.head_dim}, {case.mask}: two loops {two:.4f} ms, "
                f"one with atomic additions {one:.4f} ms"
            )
