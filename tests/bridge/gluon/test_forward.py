"""The Gluon forward kernel in the simulator: right in every schedule, and bugs planted in it are
seen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import committed
import numpy as np
import pytest
import torch
from gluon_cases import (
    FAMILIES,
    FULL,
    GRADIENT_FAMILIES,
    case,
    causal,
    check_family,
    ragged,
    taken_families,
    windowed,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from planted import PLANTED
from planted_bug import Planted

from bridge.conformance.judging.judge import judge
from bridge.conformance.tensors.batch import Batch, Outputs
from bridge.conformance.tolerances.rounding_model import RoundingModel
from bridge.gluon.kernels import FORWARD, GluonKernels
from bridge.gluon.load import Loader
from bridge.gluon.rounded import Float32
from bridge.gluon.vectors import differences, not_run
from bridge.ttir.memory import Memory
from bridge.vectors.model.attention import AttentionVector, Mask
from bridge.vectors.model.operations import GroupedQueryVector
from pyimpl.internal.scores import ScoreOptions

# Of each of these families a vector in `make test`.
QUICK = (
    "causal", "causal-bottom-right", "window", "grouped-query", "ragged-tiles", "maximum-moves",
    "unequal-lengths", "wide-heads", "long-keys",
)  # fmt: skip
# Few buffers, in which bugs show soon.
FEW = {"stages": 2, "in_turns": 0, "items": 1, "out": 0}
CHOSEN = {
    "as the launch has it": {},
    "in turns": {"in_turns": 1, "stages": 2},
    "a program for each item": {"waves": 0},
    "one buffer": {"stages": 1},
    "the output by threads": {"out": 0, "items": 1},
    "the output from the queries' buffers": {"out": 1, "items": 1},
    "of two items, from their own": {"out": 1, "items": 2},
    "of two items, in turns": {"out": 2, "items": 2, "in_turns": 1},
}


@pytest.mark.sampled(8)
@pytest.mark.parametrize("chosen", CHOSEN.values(), ids=CHOSEN.keys())
def test_it_is_the_spec_in_many_schedules(chosen: dict[str, int]) -> None:
    for seed in range(4):
        for vector in (windowed(), ragged()):
            how: dict[str, Any] = {"seed": seed, "processors": 1 + seed, "chosen": chosen}
            assert list(differences(vector, **how)) == []


@settings(max_examples=12)
@given(data=st.data())
def test_it_is_the_spec_for_all_lengths_and_options(data: st.DataObject) -> None:
    q_len, kv_len = data.draw(st.integers(1, 40)), data.draw(st.integers(1, 70))
    bounds = st.none() | st.integers(0, 40)
    mask = data.draw(
        st.sampled_from([FULL, causal(q_len, kv_len), causal(q_len, kv_len, True)])
        | st.builds(lambda left, right: Mask("window", left=left, right=right), bounds, bounds)
    )
    heads = data.draw(st.sampled_from([(1, 1), (2, 1), (2, 2)]))
    vector = case(q_len, kv_len, mask, heads, seed=data.draw(st.integers(0, 99)))
    chosen = {
        "stages": data.draw(st.integers(1, 3)),
        "in_turns": data.draw(st.integers(0, 1)),
        "waves": data.draw(st.integers(0, 1)),
        "items": data.draw(st.integers(1, 3)),
        "out": data.draw(st.integers(0, 2)),
    }
    seed, processors = data.draw(st.integers(0, 999)), data.draw(st.integers(1, 3))
    assert list(differences(vector, chosen=chosen, seed=seed, processors=processors)) == []


@pytest.mark.sampled(8)
@pytest.mark.parametrize("bug", PLANTED.values(), ids=PLANTED)
def test_what_is_planted_is_seen(bug: Planted) -> None:
    chosen = FEW | dict(bug.chosen)
    bug.check(4, processors=1, module=bug.module, chosen=chosen)


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", ["values-released-too-early", "queries-not-awaited"])
def test_numbers_alone_show_it_in_some_schedules(name: str) -> None:
    """Copies land late and products read late, so that these bugs have their consequences too
    where no order is asked for; the same seed has the same."""

    vector = ragged() if name == "queries-not-awaited" else windowed()

    def find_bugs(seed: int) -> list[str]:
        how: dict[str, Any] = {"module": PLANTED[name].module, "chosen": FEW, "in_order": False}
        return list(differences(vector, seed=seed, **how))

    wrong = [find_bugs(seed) for seed in range(6)]
    assert any(wrong)
    assert find_bugs(5) == wrong[5]


def test_a_text_that_is_not_there_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match=r"forward_kernel.py has no text 'never there' to change"):
        Loader([("never there", "")]).module(FORWARD)


@pytest.mark.parametrize("name", QUICK)
def test_a_vector_of_a_family_has_no_difference(name: str) -> None:
    check_family(name, 1)


@pytest.mark.thorough
@pytest.mark.parametrize("name", FAMILIES)
def test_all_vectors_that_it_takes_have_no_difference(name: str) -> None:
    check_family(name)


def test_of_each_vector_it_is_said_whether_it_runs() -> None:
    run = Counter(x.operation for x in committed.vectors() if not_run(x) is None)
    assert set(run) == {"attention", "grouped-query", "gradient"}
    assert run["attention"] + run["grouped-query"] >= 300
    assert run["gradient"] >= 100
    assert set(QUICK) <= set(FAMILIES)


def test_the_families_are_those_with_vectors_that_it_takes() -> None:
    assert taken_families(of_gradients=False) == FAMILIES
    assert taken_families(of_gradients=True) == GRADIENT_FAMILIES


def test_a_vector_that_is_not_run_is_refused_with_the_reason() -> None:
    with pytest.raises(ValueError, match="key-padding-000 cannot run: the Gluon kernel takes no"):
        list(differences(committed.vector("key-padding-000")))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("made", [windowed, ragged], ids=["window", "ragged"])
def test_rounded_it_is_within_the_tolerance(
    dtype: torch.dtype, made: Callable[[], GroupedQueryVector]
) -> None:
    vector = made()
    ratios = [
        result.ratio
        for part in vector.attentions()
        for result in [_judge(part, dtype, GluonKernels(Memory(Float32()), dtype))]
        if result.status == "passed"
    ]
    assert len(ratios) == vector.num_heads
    assert any(ratio > 0 for ratio in ratios if ratio is not None)
    (first, *_) = vector.attentions()
    wrong = GluonKernels(Memory(Float32()), dtype, module=PLANTED["stale-weights"].module)
    assert _judge(first, dtype, wrong).status == "failed"


def _judge(vector: AttentionVector, dtype: torch.dtype, kernels: GluonKernels) -> Any:
    q, k, v = (
        torch.tensor([[[[float(x) for x in row] for row in rows]]], dtype=dtype)[0]
        for rows in (vector.q, vector.k, vector.v)
    )
    window = vector.mask.window
    batch = Batch((vector,), q[None], k[None], v[None], None, vector.natural_scale, window=window)
    given = {} if window is None else window._asdict()
    tensors = (kernels.tensor(x[None].float().numpy()) for x in (q, k, v))
    out, lse = kernels.forward(*tensors, ScoreOptions(vector.natural_scale, **given))
    stored = [torch.from_numpy(np.array(kernels.memory.read(x))) for x in (out, lse)]
    name = str(dtype).removeprefix("torch.")
    model = RoundingModel.flash(name, block_n=kernels.blocks[1])
    (result,) = judge(model, batch, Outputs(stored[0].to(dtype), stored[1]), [None])
    return result


def test_a_changed_number_is_found() -> None:
    right = ragged()
    changed = replace(right, v=tuple(tuple((x + 1, y) for x, y in rows) for rows in right.v))
    assert any(line.startswith("head 0: output[") for line in differences(changed))
