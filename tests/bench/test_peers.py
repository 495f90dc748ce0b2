"""Each peer computes the same as ours, or says why not."""

from __future__ import annotations

import sys
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from bench_fakes import CPU, case, exact
from torch import Tensor

from bench.cases import Case, Inputs, Mask, MaskName, Operation, make_inputs
from bench.check import Check, rounding_of
from bench.check_gradients import CheckGradients
from bench.peers import PEERS, Peer, Refused, ours

BACKWARD: tuple[Operation, ...] = ("forward+backward", "backward")
FORWARD = [
    case(q_len=12, kv_len=12, mask=Mask.of_name(name, 3), kv_heads=1)
    for name in ("full", "causal", "window", "window-both", "boolean")
]
DECODE = case(
    operation="decode", batch=2, heads=4, kv_heads=2, q_len=1, kv_len=20, mask=Mask("full")
)
PAGED = case(
    operation="decode", batch=2, heads=4, kv_heads=2, q_len=1, kv_len=20, mask=Mask("full"),
    page_size=8,
)  # fmt: skip
CASES = [*FORWARD, DECODE]


GRADIENTS = [replace(which, operation=name) for which in FORWARD for name in BACKWARD]


def assert_right(peer: Peer, inputs: Inputs) -> None:
    judge = CheckGradients(inputs) if inputs.case.gradients else Check(inputs)
    runner, rounding = peer(inputs), rounding_of(inputs.case.dtype, CPU, is_peer=True)
    # An output that was computed before is differentiated again and again.
    for _ in range(2 if inputs.case.operation == "backward" else 1):
        assert judge(runner.run(), rounding).wrong is None


@pytest.mark.parametrize("which", [*CASES, PAGED, *GRADIENTS], ids=str)
def test_ours_is_right(which: Case) -> None:
    assert_right(ours("tiled"), make_inputs(which, CPU))


@pytest.mark.parametrize("name", ["sdpa-flash", "sdpa-math"])
@pytest.mark.parametrize("which", [*CASES, *GRADIENTS], ids=str)
def test_the_backends_of_sdpa_are_right(which: Case, name: str) -> None:
    assert_right(PEERS[name], make_inputs(which, CPU))


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("which", [*CASES, *GRADIENTS], ids=str)
def test_flex_is_asked_for_the_same(which: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not compiled: the results are the same. Its backward pass, refused on a CPU, runs there
    nevertheless."""
    module = "torch.nn.attention.flex_attention"
    monkeypatch.setattr(f"{module}._validate_device", lambda *_: None)
    compiled: list[dict[str, Any]] = []

    def compile(function: Any, **options: Any) -> Any:
        compiled.append(options)
        return function

    monkeypatch.setattr(torch, "compile", compile)
    assert_right(PEERS["flex"], make_inputs(which, CPU))
    assert compiled[0] == {"dynamic": False, "fullgraph": True}


@pytest.mark.parametrize("name", ["sdpa-flash", "sdpa-math", "flex"])
def test_peers_without_pages_say_so(name: str) -> None:
    with pytest.raises(Refused, match="takes no keys in pages"):
        PEERS[name](make_inputs(PAGED, CPU))


def fake_flash_attn(inputs: Inputs, table: str, called: list[dict[str, Any]]) -> SimpleNamespace:
    """The two functions of flash-attn, which find the case's right answer whatever they are given,
    and keep their arguments."""

    def forward(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        called.append({"shapes": [list(x.shape) for x in (q, k, v)], **options})
        return exact(inputs).transpose(1, 2)

    def with_cache(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> tuple[Tensor, None]:
        assert options.keys() <= {"cache_seqlens", table}
        return forward(q, k, v, **options), None

    return SimpleNamespace(flash_attn_func=forward, flash_attn_with_kvcache=with_cache)


FLASH = [("flash-attn", "flash_attn", "block_table"),
         ("flash-attn-3", "flash_attn_interface", "page_table")]  # fmt: skip


@pytest.mark.parametrize(("name", "module", "table"), FLASH)
@pytest.mark.parametrize(
    ("mask", "asked"),
    [
        ("full", {"window_size": (-1, -1)}),
        ("causal", {"causal": True}),
        ("window", {"window_size": (3, 0)}),
        ("window-both", {"window_size": (3, 3)}),
    ],
)
def test_flash_attn_is_asked_for_the_same(
    mask: MaskName,
    asked: dict[str, Any],
    name: str,
    module: str,
    table: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[dict[str, Any]] = []
    inputs = make_inputs(case(q_len=12, kv_len=12, kv_heads=1, mask=Mask.of_name(mask, 3)), CPU)
    monkeypatch.setitem(sys.modules, module, fake_flash_attn(inputs, table, called))
    assert_right(PEERS[name], inputs)
    assert called == [{"shapes": [[1, 12, 2, 8], [1, 12, 1, 8], [1, 12, 1, 8]], **asked}]


@pytest.mark.parametrize(("name", "module", "table"), FLASH)
@pytest.mark.parametrize("which", [DECODE, PAGED], ids=str)
def test_flash_attn_decodes_from_the_cache(
    which: Case, name: str, module: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[dict[str, Any]] = []
    inputs = make_inputs(which, CPU)
    monkeypatch.setitem(sys.modules, module, fake_flash_attn(inputs, table, called))
    assert_right(PEERS[name], inputs)
    (options,) = called
    assert options["cache_seqlens"].tolist() == [20, 20]
    cache = [6, 8, 2, 8] if inputs.pages else [2, 20, 2, 8]
    assert options["shapes"] == [[2, 1, 4, 8], cache, cache]
    assert (table in options) == (inputs.pages is not None)


@pytest.mark.parametrize(("name", "module", "table"), FLASH)
@pytest.mark.parametrize("which", GRADIENTS[:4], ids=str)
def test_the_gradients_of_flash_attn(
    which: Case, name: str, module: str, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forward(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> Tensor:
        """With the layout and the meaning that the package has."""
        out = F.scaled_dot_product_attention(
            *(x.transpose(1, 2) for x in (q, k, v)),
            is_causal=options.get("causal", False), enable_gqa=True,
        )  # fmt: skip
        return out.transpose(1, 2)

    monkeypatch.setitem(sys.modules, module, SimpleNamespace(flash_attn_func=forward))
    assert_right(PEERS[name], make_inputs(which, CPU))


def test_an_output_that_was_computed_before_is_not_part_of_the_backward_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    called: list[str] = []
    real = F.scaled_dot_product_attention

    def count_calls(*arguments: Any, **options: Any) -> Tensor:
        called.append("forward")
        return real(*arguments, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", count_calls)
    for operation, calls in (("forward+backward", 3), ("backward", 1)):
        called.clear()
        runner = PEERS["sdpa-math"](make_inputs(case(operation=operation), CPU))
        for _ in range(3):
            runner.run()
        assert len(called) == calls


def test_flash_attn_says_that_it_takes_no_boolean_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = make_inputs(FORWARD[-1], CPU)
    monkeypatch.setitem(sys.modules, "flash_attn", SimpleNamespace())
    with pytest.raises(Refused, match="takes no boolean mask"):
        PEERS["flash-attn"](inputs)


def test_flash_attn_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flash_attn", None)
    with pytest.raises(Refused, match="the module flash_attn cannot be imported: "):
        PEERS["flash-attn"](make_inputs(FORWARD[0], CPU))
