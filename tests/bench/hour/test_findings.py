"""The file of findings: the lines that are in it at once, those that a killed run leaves, and the
facts that are known from earlier runs."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from bench.hour.findings import FILE, Known, Record, read

IDENTITY = ["GPU", "3.6.0", "2.11.0", "sources"]


def test_a_finding_is_in_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "new" / FILE
    record = Record(path, now=iter([10.0, 12.5]).__next__)
    record.add("timed", ms=float("inf"), name="µ")
    (found,) = read(path)
    assert found == {"run": 1, "what": "timed", "at": 2.5, "ms": None, "name": "µ"}


def test_a_line_that_was_being_written_is_left_out_and_the_next_is_whole(tmp_path: Path) -> None:
    path = tmp_path / FILE
    Record(path).add("timed", name="first")
    whole = path.read_bytes()
    # Also in the middle of a letter of two bytes.
    path.write_bytes(whole + '{"run": 1, "what": "timed", "name": "µ'.encode()[:-1])
    assert [x["name"] for x in read(path)] == ["first"]
    record = Record(path)
    assert record.run == 2
    record.add("timed", name="second")
    assert [x["name"] for x in read(path)] == ["first", "second"]
    assert path.read_bytes().startswith(whole)


def test_lines_that_are_no_findings_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / FILE
    path.write_text('[]\n{}\n"what"\n7\n{"what": "start", "run": 3}\n', "utf-8")
    assert read(path) == [{"what": "start", "run": 3}]
    assert Record(path).run == 4


def test_earlier_findings_begin_a_new_file_and_no_old_one(tmp_path: Path) -> None:
    earlier = [{"run": 1, "what": "timed", "at": 0.0, "job": "a"}]
    first = Record(tmp_path / FILE, earlier)
    first.add("job", job="b")
    assert [(x["run"], x["job"]) for x in read(tmp_path / FILE)] == [(1, "a"), (2, "b")]
    Record(tmp_path / FILE, earlier)
    assert len(read(tmp_path / FILE)) == 2


def test_threads_do_not_mix_their_lines(tmp_path: Path) -> None:
    record = Record(tmp_path / FILE)

    def add(name: str) -> None:
        for _ in range(50):
            record.add("timed", name=name * 500)

    threads = [threading.Thread(target=add, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = (tmp_path / FILE).read_bytes().splitlines()
    assert len(lines) == 200
    assert all(len(set(json.loads(line)["name"])) == 1 for line in lines)


def test_known_is_what_the_same_machine_sources_and_packages_found() -> None:
    findings = [
        {"run": 1, "what": "start", "identity": IDENTITY},
        {"run": 1, "what": "job", "job": "a", "status": "ok"},
        {"run": 1, "what": "job", "job": "b", "status": "crashed"},
        {"run": 1, "what": "timed", "job": "c", "ms": 1.0},
        {"run": 2, "what": "start", "identity": ["another GPU", *IDENTITY[1:]]},
        {"run": 2, "what": "job", "job": "d", "status": "ok"},
        {"run": 3, "what": "job", "job": "e", "status": "ok"},
    ]
    known = Known.of(findings, IDENTITY)
    # Of "c" nothing says that it came to its end.
    assert known.jobs == {"a", "b"}
    assert {x["run"] for x in known.findings} == {1}
    assert Known.of(findings, ["none"]).jobs == set()
