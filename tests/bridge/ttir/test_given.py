"""The hypotheses about a launch: launches meet them, and one that is not met is named."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import forward_launches
import pytest
import torch
from torch import Tensor
from ttir_cases import MUTANTS

from bridge.conformance.mutants.planting import mutated_module
from bridge.ttir.classes import features, text_of
from bridge.ttir.given import unmet_conditions
from bridge.ttir.texts import TEXTS
from pyimpl.backends.kernels import forward, varlen
from pyimpl.backends.kernels.parts.launch import Launch
from pyimpl.internal.scores import ScoreOptions

Given = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, ScoreOptions]


def make_tensors(options: ScoreOptions | None = None, value_dim: int = 16) -> Given:
    """Tensors of four heads, in groups of two."""
    torch.manual_seed(0)
    query, out = torch.randn(2, 4, 5, 16), torch.empty(2, 4, 5, value_dim)
    key, value = torch.randn(2, 2, 7, 16), torch.randn(2, 2, 7, value_dim)
    lse = torch.empty(2, 4, 5)
    return query, key, value, out, lse, options or ScoreOptions(0.25, right=0, shift=2)


def make_launch(tensors: Given, make: Callable[..., Launch] = forward.launch) -> Launch:
    return make(*tensors, capability=90)


def names(launch: Launch, tensors: Given, *, of_tensors: bool = False) -> set[str]:
    """The hypotheses that are off, all of the launcher, or all of the tensors."""
    found = unmet_conditions(launch, *tensors)
    assert {one.of_tensors for one in found} <= {of_tensors}
    return {one.name for one in found}


@pytest.mark.parametrize(
    "options",
    [
        ScoreOptions(0.25),
        ScoreOptions(0.25, right=0, shift=2),
        ScoreOptions(-0.25, left=1, right=0),
        # Bounds that hide nothing, which the launcher leaves out.
        ScoreOptions(0.25, left=4, right=6),
        ScoreOptions(0.25, left=100, right=3, shift=-2),
    ],
    ids=str,
)
def test_launches_meet_the_hypotheses(options: ScoreOptions) -> None:
    tensors = make_tensors(options)
    assert unmet_conditions(make_launch(tensors), *tensors) == []


def test_strided_tensors_meet_them() -> None:
    query, key, value, out, lse, options = make_tensors()
    query = query.transpose(1, 2).contiguous().transpose(1, 2)
    key, value = torch.cat([key, value], -1).split(16, -1)
    lse = torch.empty(5, 2, 4).permute(1, 2, 0)
    tensors = (query, key, value, out, lse, options)
    assert unmet_conditions(make_launch(tensors), *tensors) == []


@pytest.mark.parametrize(
    ("argument", "changed", "name"),
    [
        ("stride_qh", 81, "query"),
        ("stride_qm", 10**6, "query"),
        ("stride_kn", 17, "key"),
        ("stride_vb", 0, "value"),
        ("stride_oh", 79, "out"),
        ("stride_lm", 2, "lse"),
        ("num_heads", 2, "numHeads"),
        ("group", 1, "perHead"),
        ("head_dim", 15, "dim"),
        ("value_dim", 17, "valueDim"),
        ("q_len", 6, "qLen"),
        ("kv_len", 6, "kvLen"),
        ("scale", 0.25, "scale"),
        ("shift", 1, "mask"),
        ("right", 1, "mask"),
        ("right", None, "mask"),
        ("left", 3, "mask"),
    ],
)
def test_a_wrong_argument_is_named(argument: str, changed: int | float | None, name: str) -> None:
    tensors = make_tensors()
    launch = make_launch(tensors)
    assert launch.arguments[argument] != changed
    wrong = replace(launch, arguments={**launch.arguments, argument: changed})
    assert names(wrong, tensors) == {name}


def test_a_negative_scale_is_named() -> None:
    tensors = make_tensors()
    launch = make_launch(tensors)
    scale = launch.arguments["scale"]
    assert isinstance(scale, float)
    wrong = replace(launch, arguments={**launch.arguments, "scale": -scale})
    assert names(wrong, tensors) == {"scale", "scale_nonneg"}


@pytest.mark.parametrize(
    ("constant", "changed", "found"),
    [
        ("BLOCK_N", 0, {"BN"}),
        ("BLOCK_M", 2, {"programs"}),
        ("BLOCK_D", 8, {"fits", "even"}),
        ("BLOCK_D", 32, {"even"}),
        ("BLOCK_V", 8, {"fitsValue", "evenValue"}),
        ("BLOCK_V", 32, {"evenValue"}),
    ],
)
def test_wrong_tiles_are_named(constant: str, changed: int, found: set[str]) -> None:
    tensors = make_tensors()
    launch = make_launch(tensors)
    wrong = replace(launch, constants={**launch.constants, constant: changed})
    assert names(wrong, tensors) == found


def test_another_memory_is_named() -> None:
    tensors = make_tensors()
    launch = make_launch(tensors)
    for pointer, name in (("key_ptr", "key"), ("out_ptr", "out")):
        tensor = launch.arguments[pointer]
        assert isinstance(tensor, Tensor)
        copied = {**launch.arguments, pointer: tensor.clone().add_(1.0)}
        assert names(replace(launch, arguments=copied), tensors) == {name}
    assert names(replace(launch, programs=launch.programs - 1), tensors) == {"programs"}


def _share(tensors: Given) -> Given:
    query, key, value, out, lse, options = tensors
    return query, key, value, out[:, :1].expand(2, 4, 5, 16), lse, options


def _interleave(tensors: Given) -> Given:
    query, key, value, _, lse, options = tensors
    return (
        query,
        key,
        value,
        torch.empty(200).as_strided((2, 4, 5, 16), (80, 17, 8, 1)),
        lse,
        options,
    )


def _alias(tensors: Given) -> Given:
    query, key, value, _, lse, options = tensors
    return query, key, value, query, lse, options


def _not_a_number(tensors: Given) -> Given:
    tensors[2][1, 1, 6, 3] = math.inf
    return tensors


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (_share, "injective"),
        (_interleave, "injective"),
        (_alias, "memory"),
        (_not_a_number, "value"),
    ],
)
def test_tensors_that_the_theorems_are_not_about(change: Any, name: str) -> None:
    tensors = change(make_tensors())
    launch = make_launch(tensors)
    assert names(launch, tensors, of_tensors=True) == {name}
    assert forward_launches.facts_of(launch, tensors) == f"Causal, but for {name}"


def make_packed(sums_q: list[int], sums_k: list[int], max_q_len: int = 3) -> tuple[Launch, Given]:
    """A launch for packed sequences that begin there, of 5 queries and 7 keys, and the arguments
    that the forward kernel's launcher gets for it."""
    query, key, value, out, lse, options = make_tensors(ScoreOptions(0.25, right=0))
    rows = (x[:1].transpose(1, 2)[0].contiguous() for x in (query, key, value))
    of_rows = [*rows, torch.empty(5, 4, 16)]
    begins = [torch.tensor(x, dtype=torch.int32) for x in (sums_q, sums_k)]
    lse = torch.empty(4, 5)
    launch = varlen.launch(
        *of_rows[:3], *begins, of_rows[3], lse, options,
        max_q_len=max_q_len, bottom_right=True, capability=90,
    )  # fmt: skip
    query, key, value, out = (x.transpose(0, 1)[None] for x in of_rows)
    return launch, (query, key, value, out, lse[None], options)


def test_packed_sequences_meet_the_hypotheses() -> None:
    launch, tensors = make_packed([1, 3, 3, 5], [0, 0, 4, 7])
    assert unmet_conditions(launch, *tensors) == []
    assert forward_launches.facts_of(launch, tensors) == "proved: PackedCausalEnd"


@pytest.mark.parametrize(
    ("sums_q", "sums_k", "max_q_len", "name"),
    [
        ([0, 3, 2, 5], [0, 1, 4, 7], 3, "queries"),
        ([0, 3, 5, 6], [0, 1, 4, 7], 3, "queries"),
        ([0, 3, 5, 5], [0, 1, 4, 8], 3, "keys"),
        ([0, 3, 5, 5], [0, 1, 4, 7], 2, "longest"),
    ],
)
def test_other_prefix_sums_are_named(
    sums_q: list[int], sums_k: list[int], max_q_len: int, name: str
) -> None:
    launch, tensors = make_packed(sums_q, sums_k, max_q_len)
    assert names(launch, tensors, of_tensors=True) == {name}
    wrong = replace(launch, arguments={**launch.arguments, "stride_yb": 2})
    assert "keys" in {one.name for one in unmet_conditions(wrong, *tensors) if not one.of_tensors}


@pytest.mark.parametrize(
    ("mutant", "name"),
    [
        ("wrong-scale", "scale"),
        ("omitted-scale", "scale"),
        ("doubled-scale", "scale"),
        ("base-of-exponential", "scale"),
        ("causal-aligned-bottom-right", "mask"),
        ("alignment-swapped", "mask"),
    ],
)
def test_mutants_of_the_launcher_are_named(mutant: str, name: str) -> None:
    """No proof fails for them: the kernel's text is the same."""
    tensors = make_tensors(ScoreOptions(0.375, right=0, shift=1))
    with mutated_module(MUTANTS[mutant]) as module:
        launch = make_launch(tensors, module.launch)
    assert names(launch, tensors) == {name}
    with pytest.raises(AssertionError, match=f"hypotheses: {name}"):
        forward_launches.facts_of(launch, tensors)


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
def test_the_text_of_a_launch(text: Any) -> None:
    for dtype, arch in ((torch.bfloat16, 100), (torch.float32, 80)):
        assert text_of(text.launch(dtype, arch=arch)) == text


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (ScoreOptions(0.25, softcap=3.0), "full, softcap"),
        (ScoreOptions(0.25, right=0, sinks=torch.zeros(4)), "right edge, sinks"),
        (ScoreOptions(0.25, left=1, bias=torch.zeros(5, 7)), "bias, left edge"),
        (ScoreOptions(0.25, mask=torch.ones(5, 7, dtype=torch.bool)), "full, mask"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_a_launch_of_no_proved_text(options: ScoreOptions, found: str) -> None:
    tensors = make_tensors(options)
    launch = make_launch(tensors)
    assert unmet_conditions(launch, *tensors) == []
    assert text_of(launch) is None
    assert ", ".join(sorted(features(launch))) == found
    assert forward_launches.facts_of(launch, tensors) == f"no theorem: {found}"


def test_strides_along_vectors_are_of_another_text() -> None:
    query, key, value, out, lse, options = make_tensors()
    tensors = (query.mT.contiguous().mT, key, value, out, lse, options)
    launch = make_launch(tensors)
    assert unmet_conditions(launch, *tensors) == []
    assert text_of(launch) is None


def test_every_launch_is_looked_at() -> None:
    before = forward_launches.FOUND.total()
    query, key, value, _, _, options = make_tensors()
    forward.forward(query, key, value, options, block_m=16, block_n=16)
    begins = torch.tensor([0, 2, 5], dtype=torch.int32)
    packed = (x[0].transpose(0, 1)[:5] for x in (query, key, value))
    varlen.varlen(*packed, begins, begins, options, block_m=16, block_n=16)
    assert forward_launches.FOUND.total() == before + 2
    assert forward_launches.FOUND["proved: Causal"]
