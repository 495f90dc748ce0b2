"""The panels of the figure, and that it is drawn."""

from __future__ import annotations

from dataclasses import replace

import pytest
from bench_fakes import FakeClock, case, fake_bench, peer, refusing_peer

from bench import plot
from bench.cases import Case, Mask
from bench.measure import Measured
from bench.peers import OURS, Refused
from bench.timing import Rate

RATES = [Rate("matrix product", "float32", "", 1.0, 1e3), Rate("copy", "bytes", "", 1.0, 1e12)]
DECODE = case(operation="decode", q_len=1, mask=Mask("full"))


def measurements(cases: list[Case]) -> list[Measured]:
    peers = {"flex": peer(), "absent": refusing_peer(Refused("is not here"))}
    return list(fake_bench(FakeClock([1.0, 2.0]), peers).run(cases, 1e6))


def test_several_lengths_are_lines_over_them_one_panel_for_each_mask() -> None:
    run = measurements(
        [
            replace(case(), mask=mask, q_len=n, kv_len=n)
            for mask in (Mask("full"), Mask("causal", None, 0))
            for n in (4, 8)
        ]
    )
    full, causal = plot.panels(run, RATES)
    assert full.title == "forward, float32, head_dim 8\nfull"
    assert causal.title.endswith("causal")
    assert full.by_length
    assert full.ticks == ("4", "8")
    assert full.series.keys() == {OURS, "flex"}
    assert full.series[OURS] == tuple(one.results[0].tflops for one in run[:2])
    assert (full.unit, full.rate) == ("TFLOP/s", 1e-9)


def test_one_length_is_bars_over_the_masks() -> None:
    (panel,) = plot.panels(
        measurements([case(mask=Mask("full")), case(mask=Mask.of_name("window", 2))]), RATES
    )
    assert not panel.by_length
    assert panel.ticks == ("full", "window (2, 0)")
    assert panel.title.endswith("length 4")


def test_decode_is_in_bytes() -> None:
    run = measurements([DECODE])
    (panel,) = plot.panels(run, RATES)
    assert (panel.unit, panel.rate, panel.rate_name) == ("GB/s", 1e3, "copy")
    assert panel.series["flex"] == (run[0].results[1].gbps,)


def test_each_operation_has_its_panel_in_order() -> None:
    run = measurements(
        [DECODE, case(operation="backward"), case(operation="forward+backward"), case()]
    )
    shown = plot.panels(run, RATES)
    assert [panel.title.split(",")[0] for panel in shown] == [
        "forward", "forward+backward", "backward", "decode",
    ]  # fmt: skip
    assert [panel.unit for panel in shown] == ["TFLOP/s"] * 3 + ["GB/s"]


def test_head_sizes_stand_beside_each_other() -> None:
    run = measurements(
        [
            case(head_dim=d, mask=mask, q_len=n, kv_len=n)
            for d in (8, 16)
            for mask in (Mask("full"), Mask("causal", None, 0))
            for n in (4, 8)
        ]
    )
    assert [panel.head_dim for panel in plot.panels(run, RATES)] == [8, 16, 8, 16]


@pytest.mark.parametrize(
    ("suffix", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_it_is_drawn(suffix: str, start: bytes) -> None:
    pytest.importorskip("matplotlib")
    lengths = [case(head_dim=d, q_len=n, kv_len=n) for d in (8, 16) for n in (4, 8)]
    run = measurements([*lengths, DECODE])
    assert plot.draw(run, RATES, "title", suffix).startswith(start)


def test_a_run_in_which_nothing_was_timed_is_drawn_too() -> None:
    pytest.importorskip("matplotlib")
    nobody = fake_bench(FakeClock([1.0]), {}, ours=refusing_peer(Refused("takes nothing")))
    assert plot.draw(list(nobody.run([case()], 1.0)), RATES, "title", ".png")
