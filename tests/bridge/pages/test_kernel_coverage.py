"""The table of kernels: features proved, looked at for all inputs, or run on the vectors."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import committed
import pytest
from ttir_cases import kernel_name

from bridge.conformance.adapters.own import PyimplTriton
from bridge.conformance.judging.run import run
from bridge.pages.kernel_coverage import RUN_BY, Kernel, Row, kernels, reasons
from bridge.ttir.shapes import BACKWARD, FORWARD
from bridge.ttir.texts import Text
from bridge.vectors.model.attention import Family
from pyimpl.backends.kernels.offline import cases
from pyimpl.backends.kernels.parts.launch import Launch

LEFT = Text("Left", "with a left edge", 100, None)


def row(found: list[Kernel], kernel: str, feature: str) -> Row:
    (one,) = (k for k in found if k.name == kernel)
    return one.rows[feature]


def test_each_kernel_has_what_it_is_compiled_for() -> None:
    found = kernels((), {}, ())
    assert [one.name for one in found] == list(cases.KERNELS)
    assert {"full", "window", "mask", "dropout"} <= found[0].rows.keys()
    assert found[0].file == "pyimpl/backends/kernels/forward.py"
    assert list(row_names(found, "combine")) == list(row_names(found, "rows")) == ["all"]
    assert not any(r.proved or r.exact or r.vectors for k in found for r in k.rows.values())


def row_names(found: list[Kernel], kernel: str) -> Any:
    (one,) = (k for k in found if k.name == kernel)
    return one.rows


def test_a_text_with_theorems_is_proved() -> None:
    theorems = {"Attention.Kernel.Left.output": "kernel-left", "Attention.Kernel.Leftmost": "x"}
    found = kernels((), theorems, (LEFT,))
    assert row(found, "forward", "left edge").proved == {"with a left edge": ["kernel-left"]}
    assert not row(found, "forward", "full").proved
    assert not any(r.proved for r in kernels((), {}, (LEFT,))[0].rows.values())


def test_shapes_stand_where_they_are_of() -> None:
    found = kernels((), {})
    bias = FORWARD["biases"]
    said = f"{bias.q_len} × {bias.kv_len}, batch 1, heads 2/1, sizes 2/2"
    for feature in ("bias", "ALiBi", "right edge", "padded head size"):
        assert said in row(found, "forward", feature).shapes
    assert said not in row(found, "forward", "full").shapes
    packed = FORWARD["packed"]
    (in_packed,) = (
        x for x in row(found, "varlen", "right edge").shapes if x.startswith(f"{packed.q_len} ×")
    )
    assert "batch 3" in in_packed
    # Without a bias there is nothing for its kernel.
    assert len(row(found, "bias", "padded head size").shapes) < len(BACKWARD)
    assert row(found, "bias", "bias").shapes


def test_vectors_stand_where_they_are_of() -> None:
    names = (
        "causal", "softcap", "split-kv", "paged", "merge", "gradient-dropout", "varlen", "linear",
        "philox",
    )  # fmt: skip
    families = committed.families(*names)
    size = {family.name: len(family.vectors) for family in families}
    found = kernels(families, {})
    causal = row(found, "forward", "right edge")
    assert causal.exact["causal"] == causal.vectors["causal"] == size["causal"]
    softcap = row(found, "forward", "softcap")
    assert not softcap.exact
    assert softcap.vectors == {"softcap": size["softcap"]}
    assert row(found, "combine", "all").exact == {
        name: size[name] for name in ("split-kv", "paged", "merge")
    }
    assert row(found, "decode", "mask").exact["merge"] == size["merge"]
    assert not row(found, "combine", "all").vectors
    dropped = row(found, "keys", "dropout")
    assert dropped.vectors["gradient-dropout"] == dropped.exact["gradient-dropout"] > 0
    assert row(found, "varlen", "full").exact["varlen"] > 0
    for name in ("linear", "philox"):
        assert not any(name in {**r.exact, **r.vectors} for k in found for r in k.rows.values())


def test_vectors_that_are_not_run_exactly_are_counted_by_the_reason() -> None:
    families = committed.families("causal", "softcap", "linear")
    ran, bounds, layers = (len(family.vectors) for family in families)
    found = reasons(families)
    assert found.pop(None) == ran
    assert {why.split(":")[0]: number for why, number in found.items() if why} == {
        "its numbers are known between bounds": bounds, "a layer": layers,
    }  # fmt: skip


@pytest.mark.parametrize("operation", RUN_BY)
def test_the_kernels_that_vectors_run(operation: str) -> None:
    family: Family = committed.family(committed.names(operation)[0])
    launched: set[str] = set()

    def note(launch: Launch, device: Any) -> None:
        launched.add(kernel_name(launch))

    with mock.patch.object(Launch, "run", note):
        run(PyimplTriton(), [replace(family, vectors=family.vectors[-1:])], "float32")
    assert launched == set(RUN_BY[operation])
