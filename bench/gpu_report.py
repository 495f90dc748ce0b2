"""The findings of `python -m bench.gpu_hour`, as tables:

    python -m bench.gpu_report DIR/found.jsonl
    python -m bench.gpu_report DIR/found.jsonl --output bench/results/DATE-gpu-hour.txt
    python -m bench.gpu_report DIR/found.jsonl --json bench/results/DATE-gpu-hour.json
    python -m bench.gpu_report DIR/found.jsonl --plot build/gpu.png

Errors come first. The launch options that it proposes are those of a table of `launch_options`: the
same for all masks. The JSON is that of `bench --json`: the measurements beside peers, on the last
machine; decode as a CUDA graph where it was not timed otherwise.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench import plot
from bench.__main__ import Parser
from bench.hour import tables
from bench.hour.findings import Finding, Known, read
from bench.report import Machine, as_json
from bench.timing import Rate
from bridge.files import why_not_writable, write_whole


def report(findings: Sequence[Finding]) -> list[str]:
    """The lines of all runs, a part for each machine, sources and packages."""
    lines: list[str] = []
    for identity in _identities(findings):
        of = Known.of(findings, identity).findings
        lines += ["", *tables.heading(of)] if lines else tables.heading(of)
        for part in tables.PARTS:
            found = part(of)
            lines += ["", *found] if found else []
    return lines or ["nothing was found"]


def summary(findings: Sequence[Finding]) -> list[str]:
    """The last machine's, as short as the end of a terminal: the errors, the proposals, and how
    ours compares."""
    identities = _identities(findings)
    if not identities:
        return ["nothing was found"]
    of = Known.of(findings, identities[-1]).findings
    lines = []
    for part in (tables.wrong, tables.proposals, tables.relative):
        lines += ["", *part(of)] if part(of) else []
    return lines


def _identities(findings: Sequence[Finding]) -> list[list[str]]:
    found: list[list[str]] = []
    for finding in findings:
        if finding["what"] == "start" and finding["identity"] not in found:
            found.append(finding["identity"])
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line described at the top of this module; the exit status."""
    p = Parser(prog="python -m bench.gpu_report", description="Findings of bench.gpu_hour.")
    p.add_argument("file", type=Path, metavar="FILE", help="found.jsonl")
    p.add_argument("--output", type=Path, metavar="FILE", help="write the printed lines")
    p.add_argument("--json", type=Path, metavar="FILE", help="write the times beside peers")
    p.add_argument("--plot", type=Path, metavar="FILE", help=", ".join(plot.FORMATS))
    options = p.parse_args(sys.argv[1:] if arguments is None else arguments)
    try:
        findings = read(options.file)
    except OSError as error:
        p.error(f"argument FILE: {options.file} cannot be read: {error.strerror}")
    for name in ("output", "json", "plot"):
        path = getattr(options, name)
        if path is not None and (refusal := why_not_writable(path)) is not None:
            p.error(f"argument --{name}: {path} cannot be written: {refusal}")
    if options.plot is not None:
        if options.plot.suffix not in plot.FORMATS:
            p.error(f"argument --plot: {options.plot} must end in one of {', '.join(plot.FORMATS)}")
        if not plot.has_matplotlib():
            p.error("argument --plot: needs the package matplotlib, which is not installed")
    if options.json is not None and not _last(findings):
        p.error(f"argument --json: {options.file} has no findings to write")
    lines = report(findings)
    print(*lines, sep="\n")
    if options.output is not None:
        write_whole(options.output, "\n".join(lines) + "\n")
    if options.json is not None:
        write_whole(options.json, _json(_last(findings)))
    if options.plot is not None:
        _draw(_last(findings), options.plot)
    return 0


def _last(findings: Sequence[Finding]) -> Sequence[Finding]:
    """The findings of the last machine."""
    identities = _identities(findings)
    return Known.of(findings, identities[-1]).findings if identities else ()


def _rates(of: Sequence[Finding]) -> dict[str, Rate]:
    return {x["rate"]["dtype"]: Rate(**x["rate"]) for x in of if x["what"] == "rate"}


def _json(of: Sequence[Finding]) -> str:
    """The measurements beside peers, as `bench --json` writes them."""
    start = [x for x in of if x["what"] == "start"][-1]
    run = tables.measurements(of)
    timed = {one.case for one in run}
    run += [one for one in tables.measurements(of, captured=True) if one.case not in timed]
    machine = Machine(**start["machine"])
    return as_json(tables.COMMAND, start["date"], machine, _rates(of).values(), run)


def _draw(of: Sequence[Finding], path: Path) -> None:
    title = "\n".join(tables.heading(of)[:2]) if of else "nothing was found"
    content = plot.draw(tables.measurements(of), _rates(of).values(), title, path.suffix)
    write_whole(path, content)


if __name__ == "__main__":
    sys.exit(main())
