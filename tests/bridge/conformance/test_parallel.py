"""Jobs in processes of their own run on the families that they are given."""

from __future__ import annotations

from bridge.conformance import parallel
from bridge.vectors.model import Family


def test_each_process_runs_the_families_that_it_is_given(families: list[Family]) -> None:
    chosen = [f for f in families if f.name in ("one-key", "ragged-tiles")]
    said: list[str] = []
    jobs = [("pyimpl-tiled", "float32", "cpu"), ("sdpa-math", "float64", "cpu")]
    results = parallel.run_each(jobs, said.append, chosen)
    assert [(r["adapter"], r["dtype"]) for r in results] == [job[:2] for job in jobs]
    for result in results:
        assert list(result["families"]) == ["one-key", "ragged-tiles"]
        assert result["ok"]
    (caught,) = parallel.plant_each([("last-tile-dropped", "cpu")], said.append, chosen)
    assert caught["caught_by"].startswith("ragged-tiles")
    assert {name for by in caught["families"].values() for name in by} <= {f.name for f in chosen}
    assert [line.split(":")[0] for line in said] == [
        "pyimpl-tiled float32 cpu", "sdpa-math float64 cpu", "last-tile-dropped cpu",
    ]  # fmt: skip
