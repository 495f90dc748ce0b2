"""A case: who is timed, who is not and why, and the numbers that come of the times."""

from __future__ import annotations

import warnings

import pytest
import torch
from bench_fakes import FakeClock, case, fake_bench, peer, refusing_peer
from torch import Tensor

from bench import measure
from bench.cases import Inputs
from bench.measure import Measured, Result
from bench.peers import OURS, Refused
from bench.timing import Rate, Runner


def by_name(measured: Measured) -> dict[str, Result]:
    return {result.name: result for result in measured.results}


def test_the_ratio_is_the_median_of_those_of_neighbouring_runs() -> None:
    # Warm-up of both, then (ours, theirs) in three rounds: 2, 1.5 and 10 times our time.
    clock = FakeClock([9.0, 9.0, 1.0, 2.0, 4.0, 6.0, 1.0, 10.0])
    found = by_name(fake_bench(clock, {"other": peer()}).measure(case(), 1000.0))
    assert found["other"].speed_ratio == 2.0
    assert found["other"].ms == 6000.0
    assert found["other"].rounds == found[OURS].rounds == 3
    assert found[OURS].ms == 1000.0
    assert found[OURS].issue_ms == 500.0
    assert found[OURS].speed_ratio is None


def test_the_best_peer_is_the_one_that_is_fastest_relative_to_ours() -> None:
    # The second peer is measured while everything takes ten times as long.
    clock = FakeClock([1.0, 2.0] * 4 + [10.0, 5.0] * 4)
    found = fake_bench(clock, {"slow": peer(), "fast": peer()}).measure(case(), 1000.0)
    assert {name: r.speed_ratio for name, r in by_name(found).items()} == {
        OURS: None, "slow": 2.0, "fast": 0.5,
    }  # fmt: skip
    assert (found.best_peer, found.ratio_to_best) == ("fast", 0.5)
    assert by_name(found)[OURS].rounds == 6


def test_rates_come_from_the_work_and_the_median_time() -> None:
    which = case()
    rates = {
        "float32": Rate("matrix product", "float32", "", 1.0, 2.0 * which.flops),
        "bytes": Rate("copy", "bytes", "", 1.0, 4.0 * which.bytes),
    }
    bench = fake_bench(FakeClock([0.5]), {"other": peer()}, rates=rates)
    for result in bench.measure(which, 1000.0).results:
        assert result.tflops == pytest.approx(which.flops / 0.5 / 1e12)
        assert result.gbps == pytest.approx(which.bytes / 0.5 / 1e9)
        assert result.share_of_matmul == pytest.approx(1.0)
        assert result.share_of_copy == pytest.approx(0.5)


def test_a_wrong_peer_is_reported_and_not_timed() -> None:
    clock = FakeClock([1.0, 2.0])
    peers = {"wrong": peer(lambda out: out + 1.0), "right": peer()}
    found = fake_bench(clock, peers).measure(case(), 1000.0)
    wrong = by_name(found)["wrong"]
    assert wrong.status == "wrong"
    assert wrong.reason is not None
    assert wrong.reason.startswith("an error of 1, ")
    assert wrong.max_error == pytest.approx(1.0, abs=1e-5)
    assert wrong.error_over_tolerance is not None
    assert wrong.error_over_tolerance > 1.0
    assert wrong.ms is None
    assert found.best_peer == "right"
    assert clock.calls == 8


@pytest.mark.parametrize("operation", ["forward+backward", "backward"])
def test_gradients_are_judged_before_they_are_timed(operation: str) -> None:
    peers = {"wrong": peer(lambda x: x * 1.01), "right": peer()}
    which = case(operation=operation, q_len=40, kv_len=40)
    found = by_name(fake_bench(FakeClock([1.0]), peers).measure(which, 1000.0))
    assert [found[name].status for name in (OURS, "wrong", "right")] == ["timed", "wrong", "timed"]
    assert found["right"].rows_checked == 3 * 40
    assert found["right"].tflops == which.flops / 1e12


def test_a_peer_that_raises_is_recorded_with_its_reason() -> None:
    peers = {
        "refusing": refusing_peer(Refused("takes nothing")),
        "failing": refusing_peer(RuntimeError("no kernel\nC++ stack")),
        "full": refusing_peer(torch.OutOfMemoryError("CUDA out of memory.")),
        "full-cpu": refusing_peer(RuntimeError("DefaultCPUAllocator: can't allocate memory")),
        "silent": refusing_peer(AssertionError()),
        "right": peer(),
    }
    found = fake_bench(FakeClock([1.0, 2.0]), peers).measure(case(), 1000.0)
    said = {r.name: (r.status, r.reason) for r in found.results}
    assert said == {
        OURS: ("timed", None),
        "refusing": ("refused", "takes nothing"),
        "failing": ("refused", "RuntimeError: no kernel"),
        "full": ("out of memory", "OutOfMemoryError: CUDA out of memory."),
        "full-cpu": ("out of memory", "RuntimeError: DefaultCPUAllocator: can't allocate memory"),
        "silent": ("refused", "AssertionError"),
        "right": ("timed", None),
    }
    assert (found.best_peer, found.ratio_to_best) == ("right", 2.0)


def test_warnings_beside_an_error_are_part_of_the_reason() -> None:
    def warning(inputs: Inputs) -> Runner:
        warnings.warn("needs sm80 (Triggered internally at /x.cpp:1.)", stacklevel=1)
        raise RuntimeError("No available kernel")

    found = fake_bench(FakeClock([1.0]), {"old": warning}).measure(case(), 1000.0)
    assert by_name(found)["old"].reason == "RuntimeError: No available kernel; needs sm80"


def test_memory_that_ends_while_timing_is_recorded() -> None:
    calls = iter(range(100))

    def once(out: Tensor) -> Tensor:
        if next(calls) > 0:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        return out

    found = by_name(fake_bench(FakeClock([1.0]), {"large": peer(once)}).measure(case(), 1000.0))
    assert found["large"].status == "out of memory"
    assert found["large"].ms is None
    assert found[OURS].status == "timed"
    assert found[OURS].ms == 1000.0


def test_where_ours_is_wrong_the_peers_are_timed_without_it() -> None:
    bench = fake_bench(FakeClock([2.0]), {"other": peer()}, ours=peer(lambda out: out * 2.0))
    found = bench.measure(case(), 1000.0)
    assert [r.status for r in found.results] == ["wrong", "timed"]
    assert by_name(found)["other"].ms == 2000.0
    assert found.best_peer is None
    assert found.ratio_to_best is None


def test_ours_is_timed_where_there_is_no_peer() -> None:
    bench = fake_bench(FakeClock([2.0]), {"other": refusing_peer(Refused("takes nothing"))})
    found = bench.measure(case(), 1000.0)
    assert by_name(found)[OURS].ms == 2000.0
    assert found.best_peer is None


def test_inputs_that_do_not_fit_are_recorded_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(*_: object) -> Inputs:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(measure, "make_inputs", none)
    found = fake_bench(FakeClock([1.0]), {"other": peer()}).measure(case(), 1000.0)
    assert [r.status for r in found.results] == ["out of memory"] * 2


def test_the_cases_share_the_time_and_what_is_not_reached_is_said() -> None:
    # 300 s for three cases: 100 s a pair, of which 8 s go by in each round.
    clock = FakeClock([4.0])
    bench = fake_bench(clock, {"other": peer()}, rounds=1000)
    found = list(bench.run([case()] * 3, 300.0))
    rounds = [by_name(one)["other"].rounds for one in found]
    assert all(r is not None and 10 <= r <= 13 for r in rounds)
    assert clock.time <= 330.0


def test_a_case_after_the_limit_is_not_begun() -> None:
    bench = fake_bench(FakeClock([4.0]), {"other": peer(), "next": peer()})
    first, second = bench.run([case()] * 2, 20.0)
    assert [r.status for r in first.results] == ["timed", "timed", "not run"]
    assert {r.status for r in second.results} == {"not run"}
    assert {r.reason for r in second.results} == {"the limit of time was reached"}
