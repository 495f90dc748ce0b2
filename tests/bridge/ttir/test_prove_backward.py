"""`bridge prove --backward`: gradients that a launcher's backward pass computes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from misuse import misuse
from test_prove import FUSED, ROOT, edit, request, square, verdict

from bridge.prove import prove as prove_command
from bridge.proving.foreign import Foreign, Refused
from bridge.proving.kernel import Kernel
from bridge.proving.published import PUBLISHED
from bridge.spec.masks import Alignment
from bridge.ttir import definition
from bridge.ttir.compare import Case, Level, Shape

FILE = FUSED.with_name("fused_backward.py")
_CAUSAL = (None, 0)


@pytest.fixture(scope="module")
def process() -> Iterator[Foreign]:
    with Foreign(f"{FILE}:Attention") as found:
        yield found


@pytest.mark.parametrize("level", ["formal", "fields"])
@pytest.mark.parametrize(
    "shape",
    [
        Shape(q_len=2, kv_len=3, head_dim=2, value_dim=1),
        Shape(q_len=4, kv_len=2, head_dim=1, value_dim=2, window=_CAUSAL,
              alignment=Alignment.BOTTOM_RIGHT),
    ],
)  # fmt: skip
def test_gradients_of_tiles_are_those_of_the_definition(shape: Shape, level: Level) -> None:
    case = Case(shape, level, 0)
    domain = case.domain
    grad_out = case.at(case.draw("dO", 1, 1, shape.q_len, shape.value_dim), 0, 0)
    none = domain.each(lambda x: np.broadcast_to(x, (shape.q_len,)), domain.constant(0.0))
    head = case.head(0, 0, 0)
    sums = domain.each(lambda x: x[:, 0], case.rows(0, 0, 0).denominators)
    domain.log_sum_exp("L", sums)
    scale = case.inputs.scale
    wanted = definition.gradients(domain, [head], [(grad_out, none)], scale, kv_heads=1)
    found = definition.tile_gradients(domain, head, grad_out, scale)
    for name, tile in zip(("query", "key", "value"), found, strict=True):
        assert domain.equal(tile, wanted[name][0]).all()


@pytest.mark.thorough
def test_equal_at_both_levels(process: Foreign) -> None:
    shapes = (square(20, batch=2, heads=2, kv_heads=2, window=_CAUSAL), square(3))
    found = verdict(process, shapes, (square(3, window=_CAUSAL), square(3)), backward=True)
    assert found.word == "EQUAL", found.text()
    # Output, dQ, dK and dV.
    assert found.levels[0].elements == 16 * 4 * (80 + 3)
    assert found.levels[1].elements == 2 * 16 * 4 * 3
    assert "no bound here" in found.text()


def test_the_launch_that_stored_is_named(process: Foreign) -> None:
    recorded = process.record(request(20, backward=True))
    names = {
        name: getattr(recorded.last_store(name), "kernel", None)
        for name in ("output", "dQ", "dK", "dV")
    }
    assert names == {
        "output": "_forward", "dQ": "_by_queries", "dK": "_by_keys", "dV": "_by_keys"
    }  # fmt: skip


def test_without_backward_it_is_compared_as_before(process: Foreign) -> None:
    assert verdict(process, (square(3),)).levels[0].elements == 16 * 3


_MUTANTS = {
    "D not subtracted": ("(tl.dot(v, tl.trans(do)) - delta[None, :])", "tl.dot(v, tl.trans(do))"),
    "ln 2 forgotten": ("(dq * LN2)", "dq"),
    "diagonal left out": ("rows[None, :] >= keys[:, None]", "rows[None, :] > keys[:, None]"),
    "scale applied once more": ("(dk * scale)", "(dk * scale * scale)"),
    "log-sum-exp without its maximum": ("m + tl.math.log2(l)", "tl.math.log2(l)"),
}
# Of the smallest shape that is wrong: with one key dQ and dK are 0.
_FOUND_IN = {
    "D not subtracted": "dK", "ln 2 forgotten": "dQ", "diagonal left out": "dV",
    "scale applied once more": "dK", "log-sum-exp without its maximum": "dV",
}  # fmt: skip


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(name, marks=() if name == "D not subtracted" else pytest.mark.thorough)
        for name in _MUTANTS
    ],
)
def test_mutants(tmp_path: Path, mutant: str) -> None:
    name = edit(tmp_path, *_MUTANTS[mutant], file=FILE, kernel="Attention")
    with Foreign(name) as process:
        found = verdict(process, (square(20, window=_CAUSAL),), backward=True)
    assert found.word == "WRONG"
    assert found.finding.output == _FOUND_IN[mutant]
    assert found.finding.shape.q_len < 20
    assert found.finding.found != found.finding.wanted


@pytest.mark.thorough
def test_a_launcher_without_gradients(tmp_path: Path) -> None:
    with Foreign(f"{FUSED}:attention_forward") as process:
        subject = Kernel(process.name, process, backward=True)
        with pytest.raises(Refused, match="an output that has no gradient"):
            subject.compare(square(16), "fields")


_BY_PYTORCH = """
import torch

from {module} import Attention as Inner


def attention(query, key, value, is_causal, scale):
    # Groups by PyTorch: the gradient by a key is a sum.
    group = query.shape[1] // key.shape[1]
    key, value = (
        x[:, :, None].expand(-1, -1, group, -1, -1).reshape(query.shape).contiguous()
        for x in (key, value)
    )
    return Inner.apply(query, key, value, is_causal, scale) * 2.0 / 2.0
"""


@pytest.mark.thorough
def test_what_pytorch_computes_between_launches(tmp_path: Path) -> None:
    (tmp_path / "inner.py").write_text(FILE.read_text("utf-8"), "utf-8")
    file = tmp_path / "outer.py"
    file.write_text(_BY_PYTORCH.format(module="inner"), "utf-8")
    with Foreign(f"{file}:attention") as process:
        shape = square(5, heads=4, kv_heads=2, window=_CAUSAL)
        small = (square(3, heads=2),)
        found = verdict(process, (shape,), small, small, backward=True)
        assert found.word == "EQUAL", found.text()
        assert [level.word for level in found.levels] == ["EQUAL"] * 3


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["forward", "--backward"], "--backward: is for file.py:kernel; forward is given"),
        (["forward", "--keep"], "--keep: is for flex_attention, "),
        (["conch-varlen-attention", "--backward"], "no launcher with a backward pass"),
        (["flex_attention", "--masked-loads", "inf"], "inf is given, and a finite number"),
        (["flex_attention", "--keep", "--masked-loads", "1"], "--masked-loads is given"),
        (["flex_attention", "--keep", "--minus-infinity", "-1e6"], "--minus-infinity is given"),
    ],
)
def test_misuse(arguments: list[str], sentence: str) -> None:
    assert sentence in misuse(prove_command, *arguments)


@pytest.mark.thorough
def test_flex_attention() -> None:
    published = PUBLISHED["flex_attention"]
    assert published.version == torch.__version__
    shapes = (square(128), square(200, heads=4, kv_heads=2, window=_CAUSAL, head_dim=64,
                                  value_dim=64))  # fmt: skip
    with Foreign(published.launcher) as process:
        found = verdict(
            process, shapes, (square(3, window=_CAUSAL), square(3)), (square(130, window=_CAUSAL),)
        )
    assert found.word == "EQUAL", found.text()
    assert [level.word for level in found.levels] == ["EQUAL"] * 3
    # Log-sum-exps too.
    assert found.levels[0].elements == 128 * 17 + 4 * 200 * 65


def edit_flex(folder: Path, old: str, new: str) -> str:
    file, _, kernel = PUBLISHED["flex_attention"].launcher.rpartition(":")
    return edit(folder, old, new, file=Path(file), kernel=kernel)


@pytest.mark.thorough
def test_flex_attention_is_wrong_where_its_mask_is(tmp_path: Path) -> None:
    with Foreign(edit_flex(tmp_path, "return m >= n", "return m > n")) as process:
        found = verdict(process, (square(16, window=_CAUSAL),))
    assert found.word == "WRONG"


@pytest.mark.thorough
def test_flex_attentions_backward_pass() -> None:
    published = PUBLISHED["flex_attention"]
    shapes = (square(20), square(130, heads=4, kv_heads=2, window=_CAUSAL))
    small = (square(3), square(5, window=_CAUSAL))
    with Foreign(published.launcher) as process:
        found = verdict(
            process, shapes, small, small, backward=True, masked_loads=published.masked_loads
        )
        # Rows past the last load unspecified numbers; values computed of them are not stored.
        open_ = verdict(process, shapes[:1], backward=True)
    assert found.word == "EQUAL", found.text()
    assert [level.word for level in found.levels] == ["EQUAL"] * 3
    assert "Declared: a masked load gives 0" in found.text()
    assert open_.word == "CANNOT TELL"


@pytest.mark.thorough
def test_flex_attentions_backward_pass_is_wrong_where_its_scale_is(tmp_path: Path) -> None:
    old, new = "(graph, joint, mask, scale, ", "(graph, joint, mask, 2 * scale, "
    with Foreign(edit_flex(tmp_path, old, new)) as process:
        found = verdict(process, (square(16),), backward=True, masked_loads=0.0)
    assert found.word == "WRONG"
    assert found.finding.output in ("dQ", "dK", "dV")


@pytest.mark.sampled(2)
@pytest.mark.parametrize("named", ['"cuda"', "query.device"])
def test_a_backward_pass_makes_tensors_where_a_forward_pass_does(
    tmp_path: Path, named: str
) -> None:
    """The device that tensors are made on may be named in a backward pass too."""
    old = "delta = torch.empty_like(lse)"
    new = f"delta = torch.empty(lse.shape, dtype=lse.dtype, device={named})"
    with Foreign(edit(tmp_path, old, new, file=FILE, kernel="Attention")) as process:
        assert verdict(process, (square(3),), backward=True).word == "EQUAL"


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in PUBLISHED if name != "flex_attention"])
def test_packages(name: str) -> None:
    """Where they are installed: their launchers call them."""
    published = PUBLISHED[name]
    if published.version is None:
        pytest.skip(f"{published.packages[0]} is not installed")
    shapes = (square(20, heads=4, kv_heads=2, batch=2, window=_CAUSAL),)
    options = {"layout": published.layout, "backward": published.gradients}
    with Foreign(published.launcher) as process:
        found = verdict(process, shapes, **options)
    assert found.word == "EQUAL", found.text()


def test_the_page_names_the_example() -> None:
    page = (ROOT / "docs" / "prove.md").read_text("utf-8")
    assert f"bridge prove {FILE.relative_to(ROOT)}:Attention --backward" in page
    for name in PUBLISHED:
        assert f"bridge prove {name}" in page
