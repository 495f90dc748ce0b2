"""A worker's jobs for a candidate: checked before it is timed, and the findings if it is wrong."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import triton
from hour_fakes import BACKWARD, CASE, candidate, fields_of, kernel
from torch import Tensor

from bench.hour import jobs, worker
from bench.hour.candidates import LARGE, SMALL, default, ragged_case, tuned_cases
from bench.hour.device import StandIn
from bench.hour.jobs import Work
from bench.hour.kernels import KERNELS
from bench.hour.prepared import Kernel, Options, Prepared
from bench.timing import Runner
from pyimpl.backends.kernels.offline.compile import SHARED_MEMORY

ROOT = Path(__file__).parents[3]


@pytest.fixture
def work() -> Work:
    return Work(StandIn())


def fake(monkeypatch: pytest.MonkeyPatch, of: Kernel) -> None:
    monkeypatch.setitem(KERNELS, "fake", of)


def run_job(work: Work, kind: str, fields: dict[str, Any]) -> tuple[list[dict[str, Any]], str]:
    """The findings, through JSON, and the status."""
    out = io.StringIO()
    # As it comes from the other process.
    status, reason = worker.run_job(
        work, json.loads(json.dumps({"kind": kind, "given": fields})), out
    )
    found = [json.loads(line) for line in out.getvalue().splitlines()]
    return found, status if reason is None else f"{status}: {reason}"


def test_a_right_candidate_is_judged_twice_and_timed(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, kernel())
    found, status = run_job(work, "candidate", fields_of(candidate()))
    assert (status, [x["what"] for x in found]) == ("ok", ["checked", "checked", "timed"])
    small = ragged_case(CASE, SMALL)
    # Every row of the small one, some of its own.
    assert found[0]["rows"] == small.heads * small.q_len > 8
    assert found[1]["rows"] == 8
    assert found[2]["tflops"] == pytest.approx(CASE.flops / (found[2]["ms"] / 1e3) / 1e12)
    assert found[2]["candidate"]["options"] == {"block_m": 64}


@pytest.mark.parametrize("only", ["small", "own"])
def test_a_wrong_candidate_is_reported_and_not_timed(
    only: str, work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = ragged_case(CASE, SMALL)
    rows = small.q_len if only == "small" else CASE.q_len

    def change(out: Tensor, chosen: Options) -> None:
        if out.shape[2] == rows:
            out[0, -1, -1] += 0.5

    fake(monkeypatch, kernel(change))
    found, status = run_job(work, "candidate", fields_of(candidate()))
    assert status == "wrong"
    assert [x["what"] for x in found] == ["checked"] * (1 if only == "small" else 2)
    assert found[-1]["wrong"].startswith("an error of 0.5, ")


def test_what_is_not_written_is_seen(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, kernel())
    prepared = KERNELS["fake"].prepare(work.of(CASE, False)[0], {}, 90)
    prepared.poison()
    assert all(x is not None and bool(x.isnan().all()) for x in prepared.outputs)
    # A kernel that leaves one row as it was.
    kept: list[Tensor] = []

    def change(out: Tensor, chosen: Options) -> None:
        out[0, 0, 3] = kept[0] if kept else float("nan")

    fake(monkeypatch, kernel(change))
    found, status = run_job(work, "candidate", fields_of(candidate()))
    assert status == "wrong"
    assert found[0]["wrong"] == "the output is not finite everywhere"


@pytest.mark.parametrize("computed", [(0,), (1, 2), (0, 1, 2)])
def test_gradients_that_a_kernel_does_not_compute_are_not_judged(
    computed: tuple[int, ...], work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, kernel(computed=computed))
    assert run_job(work, "candidate", fields_of(candidate(case=BACKWARD)))[1] == "ok"
    fake(monkeypatch, kernel(lambda out, _: out.mul_(1.01), computed=computed))
    found, status = run_job(work, "candidate", fields_of(candidate(case=BACKWARD)))
    assert status == "wrong"
    assert "times the tolerance" in found[0]["wrong"]


def test_a_kernel_with_something_left_out_is_timed_and_not_judged(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake(monkeypatch, kernel(lambda out, _: out.zero_()))
    fields = fields_of(candidate())
    fields["candidate"]["variant"] = "no maximum"
    found, status = run_job(work, "candidate", fields)
    assert (status, [x["what"] for x in found]) == ("ok", ["timed"])


def test_what_a_candidate_raises_is_its_status(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    from triton.runtime.errors import OutOfResources

    def refusing_kernel(error: Exception) -> Kernel:
        def prepare(*_: object) -> Any:
            raise error

        return Kernel("forward", lambda case, capability: {}, prepare)

    fake(monkeypatch, refusing_kernel(ValueError("no\nmore")))
    assert run_job(work, "candidate", fields_of(candidate())) == ([], "failed: ValueError: no")
    fake(monkeypatch, refusing_kernel(OutOfResources(300000, 232448, "shared memory")))
    _, status = run_job(work, "candidate", fields_of(candidate()))
    assert status.startswith("refused: OutOfResources: out of resource: shared memory")


def test_a_device_that_came_to_harm_ends_its_process(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_cuda_error() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    monkeypatch.setattr(work.device, "synchronize", raise_cuda_error)
    fake(monkeypatch, kernel())
    _, status = run_job(work, "candidate", fields_of(candidate()))
    assert status.startswith("crashed: RuntimeError: CUDA error: an illegal")


def test_what_cannot_be_captured_is_timed_as_it_is(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(runner: Runner) -> Runner:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(work.device, "capture", refuse)
    fake(monkeypatch, kernel())
    found, status = run_job(work, "candidate", fields_of(candidate()))
    assert (status, found[-1]["what"]) == ("ok", "timed")
    assert found[-1]["not_captured"].endswith("stream is capturing")
    assert work.spent
    found, _ = run_job(work, "candidate", fields_of(candidate(), capture=False))
    assert found[-1]["not_captured"] is None


def test_other_bits_are_a_race(work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    fake(monkeypatch, kernel())
    found, status = run_job(work, "race", fields_of(candidate()))
    assert (status, [x["different"] for x in found]) == ("ok", [0, 0])
    runs: list[int] = []

    def change(out: Tensor, chosen: Options) -> None:
        runs.append(1)
        if len(runs) == 3:
            out[0, 0, 0, 0] = torch.nextafter(out[0, 0, 0, 0], torch.tensor(9.0))

    fake(monkeypatch, kernel(change))
    found, status = run_job(work, "race", fields_of(candidate()))
    assert (status, [x["different"] for x in found]) == ("wrong", [1, 0])
    assert [x["runs"] for x in found] == [3, 3]


@pytest.mark.parametrize("name", [name for name, one in KERNELS.items() if one.interpreted])
def test_todays_kernels_are_right(name: str, work: Work) -> None:
    """In the interpreter, the full mask or the first case."""
    one = default(name, tuned_cases(name, SMALL)[0], 90)
    found, status = run_job(work, "candidate", fields_of(one, timed=False))
    assert (status, [x["wrong"] for x in found]) == ("ok", [None, None])


@pytest.mark.parametrize("name", KERNELS)
def test_the_small_case_runs_the_same_compiled_kernels(name: str) -> None:
    """A kernel that is compiled for one of them runs for the other too."""
    of = KERNELS[name]
    for case in tuned_cases(name, LARGE):
        options = of.default(case, 90)
        pair = [
            {
                (launch.kernel.__name__, str(launch.specialisation()), launch.num_warps)
                for launch in of.prepare(jobs.make_inputs(x, jobs.META), options, 90).launches
            }
            for x in (case, ragged_case(case, LARGE))
        ]
        assert pair[0] == pair[1]


def test_peers_are_measured_by_the_benchmark(work: Work) -> None:
    case = tuned_cases("forward", SMALL)[1]
    fields = {
        "case": candidate(case=case).plain["case"], "peers": ["sdpa-flash", "flash-attn"],
        "captured": False, "seconds": 1.0, "rounds": 3, "rates": {},
    }  # fmt: skip
    (found,), status = run_job(work, "peers", fields)
    results = {x["name"]: x for x in found["measured"]["results"]}
    assert status == "ok"
    assert {name: x["status"] for name, x in results.items()} == {
        "pyimpl": "timed", "sdpa-flash": "timed", "flash-attn": "refused",
    }  # fmt: skip
    assert found["measured"]["best_peer"] == "sdpa-flash"
    assert not work.spent
    run_job(work, "peers", {**fields, "captured": True})
    assert work.spent


def test_vectors_are_judged(work: Work) -> None:
    (found,), status = run_job(work, "vectors", {"family": "softcap", "dtype": "float32"})
    assert status == "ok"
    assert found["counts"]["passed"] > 0
    assert found["counts"]["failed"] == 0


COMPILE = """
import io, json, sys
from bench.hour import worker
from bench.hour.candidates import SMALL, default, tuned_cases
from bench.hour.jobs import Work
from dataclasses import asdict

one = default("decode", tuned_cases("decode", SMALL)[0], 90)
given = {"candidate": one.plain, "sizes": asdict(SMALL), "capability": 90}
for _ in range(2):
    out = io.StringIO()
    print(json.dumps([worker.run_job(Work(), {"kind": "compile", "given": given}, out)]))
    print(out.getvalue(), end="")
"""


@pytest.mark.thorough
def test_compiling_needs_no_device_and_is_kept(tmp_path: Path) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    environment |= {"TRITON_CACHE_DIR": str(tmp_path), "TRITON_STORE_BINARY_ONLY": "1"}
    ended = subprocess.run(
        [sys.executable, "-c", COMPILE],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    first, found, _, again = map(json.loads, ended.stdout.splitlines())
    assert first == [["ok", None]]
    assert found["what"] == "compiled"
    assert all(x["shared"] > 0 and x["registers"] > 0 for x in found["kernels"].values())
    assert found["kernels"] == again["kernels"]
    assert again["seconds"] < found["seconds"]
    assert len(list(tmp_path.glob("*/*.cubin"))) == len(found["kernels"])


def test_what_needs_too_much_shared_memory_is_refused_before_there_is_a_device(
    work: Work, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = SimpleNamespace(shared=SHARED_MEMORY[90])
    launch: Any = SimpleNamespace(
        compile=lambda: SimpleNamespace(hash="h", metadata=metadata, asm={"cubin": b""})
    )
    monkeypatch.setattr(triton.runtime.driver, "set_active", lambda driver: None)
    prepared = Prepared((launch,), lambda: None, ())
    fake(monkeypatch, Kernel("forward", lambda case, capability: {}, lambda *_: prepared))
    assert run_job(work, "compile", fields_of(candidate()))[1] == "ok"
    metadata.shared += 1
    found, status = run_job(work, "compile", fields_of(candidate()))
    assert (status, [x["what"] for x in found]) == ("refused", ["compiled"])


# The hashes after `first`, and after all of them were made again in the other order.
HASHES = """
import sys, triton
from pyimpl.backends.kernels import backward_keys, forward
import bench.hour.kernels as kernels
def hashes(): return [forward._forward_kernel.cache_key, backward_keys.keys_kernel.cache_key]
settled = hashes()
def anew():
    for module in [x for n, x in sys.modules.items() if n.startswith("pyimpl.backends.kernels")]:
        for one in vars(module).values():
            if isinstance(one, triton.JITFunction):
                one.hash, one.used_global_vals = None, {}
anew(); backward_keys.keys_kernel.cache_key; other = hashes()
anew(); kernels.settle_hashes(); backward_keys.keys_kernel.cache_key
print(settled != other, settled == hashes())
"""


@pytest.mark.thorough
def test_all_processes_agree_on_the_names_in_the_cache_of_triton() -> None:
    environment = {n: x for n, x in os.environ.items() if n != "TRITON_INTERPRET"}
    ended = subprocess.run(
        [sys.executable, "-c", HASHES], cwd=ROOT, env=environment, capture_output=True, text=True
    )
    # Where the first is False, `settle_hashes` is needed no more.
    assert ended.stdout.split() == ["True", "True"], ended.stderr
