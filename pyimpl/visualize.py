"""Pictures of attention: the tiles that a mask lets be skipped, errors against their tolerance, and
the state (m, l, o) from block to block.

```python
from pyimpl import visualize

visualize.draw_tiles(512, 512, is_causal=True, window=(200, None)).savefig("tiles.png")
```

Each function returns a `matplotlib.figure.Figure`. matplotlib is needed to draw alone: the extra
`visualize`. The data of the drawings can be had without it: `visited_tiles`, `states_by_block`.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pyimpl import state
from pyimpl.backends.tile_bounds import TileBounds, num_tiles
from pyimpl.internal import arguments as check
from pyimpl.internal.arguments import Alignment, Window
from pyimpl.internal.scores import alignment_shift

# The treatment of a tile of scores: the numbers in `visited_tiles`.
SKIPPED, MASKED, WHOLE = range(3)
_NAMES = ("not visited", "visited, with a mask", "visited, without one")
# After Okabe and Ito, told apart without red or green, and by their lightness alone.
_GREY, _ORANGE, _BLUE, _RED = "#dcdcdc", "#E69F00", "#0072B2", "#D55E00"
# Of the columns that are drawn: more lines are not told apart.
_COLOURS = (_BLUE, _ORANGE, "#009E73", _RED, "#56B4E9", "#CC79A7", "#8C8C00", "black")


def visited_tiles(
    q_len: int,
    kv_len: int,
    *,
    block_m: int = 64,
    block_n: int = 64,
    is_causal: bool = False,
    causal_alignment: Alignment = "top-left",
    window: Window = (None, None),
) -> Tensor:
    """How the tile loop treats each tile of scores (`Attention.Spec.visitedTiles`).

    Args:
        q_len, kv_len: how many queries and keys, at least 1.
        block_m, block_n: queries and keys of a tile, at least 1; each backend chooses its own.
        The rest as for `pyimpl.attention`.

    Returns:
        `[tiles of queries, tiles of keys]`, int64: `SKIPPED`, `MASKED` or `WHOLE`.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """
    sizes = {"q_len": q_len, "kv_len": kv_len, "block_m": block_m, "block_n": block_n}
    for name, size in sizes.items():
        if not check.is_whole(size) or size < 1:
            raise ValueError(
                f"{name} must be a whole number of at least 1, not {check.describe(size)}"
            )
    check.check_one_of("causal_alignment", causal_alignment, Alignment)
    check.check_bool("is_causal", is_causal)
    check.check_window(window)
    left, right = window
    if is_causal:
        right = 0
    shift = alignment_shift(causal_alignment, q_len, kv_len)
    bounds = TileBounds(q_len, kv_len, block_m, block_n, left, right, shift)
    found = torch.full((num_tiles(q_len, block_m), num_tiles(kv_len, block_n)), SKIPPED)
    for t, row in enumerate(found):
        whole, visited = bounds.unmasked_tiles(t), bounds.visited_tiles(t)
        for n in range(visited.first, visited.stop):
            row[n] = WHOLE if n in whole else MASKED
    return found


def draw_tiles(q_len: int, kv_len: int, **options: Any) -> Any:
    """A figure of `visited_tiles`, which has the arguments: queries from top to bottom, keys from
    left to right."""
    figure, colours = _figure(5.2, 4.8)
    tiles = visited_tiles(q_len, kv_len, **options)
    axes = figure.subplots()
    palette = colours.ListedColormap([_GREY, _ORANGE, _BLUE])
    extent = (0, tiles.shape[1], tiles.shape[0], 0)
    axes.imshow(tiles.numpy(), cmap=palette, vmin=SKIPPED, vmax=WHOLE, extent=extent)
    # A line between tiles, where there is room for one.
    if max(tiles.shape) <= 64:
        axes.hlines(range(tiles.shape[0] + 1), 0, tiles.shape[1], color="white", linewidth=0.8)
        axes.vlines(range(tiles.shape[1] + 1), 0, tiles.shape[0], color="white", linewidth=0.8)
    block_m, block_n = options.get("block_m", 64), options.get("block_n", 64)
    axes.locator_params(integer=True)
    axes.set_xlabel(f"tiles of {block_n} keys")
    axes.set_ylabel(f"tiles of {block_m} queries")
    axes.spines[:].set_visible(False)
    visited = int((tiles != SKIPPED).sum())
    axes.set_title(f"{visited} of {tiles.numel()} tiles visited", fontsize="medium")
    for kind, name in enumerate(_NAMES):
        count = int((tiles == kind).sum())
        axes.plot([], [], "s", color=palette(kind), label=f"{name}: {count}")
    figure.legend(loc="outside lower center", ncols=3, frameon=False, fontsize="small")
    return figure


def draw_errors(got: Tensor, expected: Tensor, tolerance: Tensor) -> Any:
    """A figure of the errors of one row, element by element, and of their tolerances.

    Args:
        got, expected, tolerance: `[n]`, n at least 1, floating; a tolerance is at least 0.
            Compared in float64.

    An error of 0 is drawn on the lower edge, one that is no number or infinite on the upper one.

    Raises:
        TypeError, ValueError: tensors of another kind, or of different lengths.
    """
    named = {"got": got, "expected": expected, "tolerance": tolerance}
    for name, tensor in named.items():
        check.check_floating({name: tensor}, ("n",))
        if tensor.shape[0] == 0 or tensor.shape != got.shape:
            raise ValueError(
                f"{name} must have the length of got, at least 1, not {check.shape(tensor)}"
            )
    if not bool((tolerance >= 0).all()):
        raise ValueError("tolerance must be 0 or more everywhere")
    figure, _ = _figure(6.4, 3.6)
    wanted, found, allowed = (x.detach().double().cpu() for x in (expected, got, tolerance))
    error = torch.where(found == wanted, 0.0, (found - wanted).abs())
    over = ~(error <= allowed)
    positive = torch.cat([error, allowed])
    positive = positive[(positive > 0) & positive.isfinite()]
    low, high = (float(x) for x in positive.aminmax()) if len(positive) else (1e-1, 1.0)
    low, high = low / 4, high * 4
    places = torch.arange(len(error))
    shown = torch.nan_to_num(error, nan=high, posinf=high).clamp(low, high)
    axes = figure.subplots()
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    edges = torch.arange(len(error) + 1) - 0.5
    axes.stairs(allowed.clamp(low, high), edges, baseline=None, color="black", label="tolerance")
    axes.fill_between(edges, low, torch.cat([allowed, allowed[-1:]]).clamp(low, high),
                      step="post", color=_GREY, alpha=0.5, linewidth=0)  # fmt: skip
    for some, colour, sign, name in (
        (~over, _BLUE, "o", "error, within it"), (over, _RED, "X", "error, beyond it"),
    ):  # fmt: skip
        if bool(some.any()):
            axes.plot(places[some], shown[some], sign, color=colour, clip_on=False,
                      label=f"{name}: {int(some.sum())}")  # fmt: skip
    axes.locator_params("x", integer=True)
    axes.set_xlabel("element of the row")
    axes.set_ylabel("|got − expected|")
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside upper center", ncols=3, frameon=False, fontsize="small")
    return figure


def states_by_block(scores: Tensor, values: Tensor, block_n: int) -> list[state.State]:
    """The state of one query before any key and after each block of `block_n` keys.

    Args:
        scores: `[kv_len]`, −∞ where masked.
        values: `[kv_len, value_dim]`, of the dtype of `scores`.
        block_n: keys in a block, at least 1.

    Returns:
        States (`pyimpl.state`) with m and l `[1]`, o `[1, value_dim]`.

    Raises:
        TypeError, ValueError: an argument that is none of these.
    """
    check.check_floating({"scores": scores}, ("kv_len",))
    check.check_floating({"values": values}, ("kv_len", "value_dim"))
    if values.shape[0] != scores.shape[0]:
        raise ValueError(
            f"values must have the {scores.shape[0]} rows of scores, not {values.shape[0]}"
        )
    if not check.is_whole(block_n) or block_n < 1:
        raise ValueError(
            f"block_n must be a whole number of at least 1, not {check.describe(block_n)}"
        )
    start = state.empty((1,), values.shape[1], dtype=scores.dtype, device=scores.device)
    found = [start]
    for block in range(0, len(scores), block_n):
        some = slice(block, block + block_n)
        found.append(state.step_block(found[-1], scores[None, some], values[some]))
    return found


def draw_states(scores: Tensor, values: Tensor, block_n: int) -> Any:
    """A figure of `states_by_block`, which has the arguments: the scores and m, their maximum so
    far; l; and the columns of o / l, which end in attention. Of many columns the first 8."""
    states = states_by_block(scores, values, block_n)
    figure, _ = _figure(6.4, 6.0)
    tops, sums, outs = figure.subplots(3, 1, sharex=True)
    ends = [min(n * block_n, len(scores)) for n in range(len(states))]
    places = torch.arange(len(scores)) + 0.5
    tops.plot(places, scores.detach().double().cpu(), ".", color=_ORANGE, label="scores")
    m = torch.cat([s.m for s in states]).detach().double().cpu()
    tops.plot(ends, m, drawstyle="steps-post", marker="o", color="black", label="m")
    tops.set_ylabel("scores, m")
    tops.legend(frameon=False, fontsize="small", loc="best")
    l = torch.cat([s.l for s in states]).detach().double().cpu()
    sums.plot(ends, l, drawstyle="steps-post", marker="o", color="black")
    sums.set_ylabel("l = Σ exp(score − m)")
    rows = torch.cat([state.finish(s) for s in states]).detach().double().cpu()
    for column, colour in enumerate(_COLOURS[: rows.shape[1]]):
        outs.plot(ends, rows[:, column], color=colour, drawstyle="steps-post", marker="o",
                  markersize=4, label=f"column {column}")  # fmt: skip
    outs.set_ylabel("o / l")
    outs.legend(frameon=False, fontsize="small", loc="best", ncols=2)
    outs.set_xlabel(f"keys seen, in blocks of {block_n}")
    for axes in (tops, sums, outs):
        axes.spines[["top", "right"]].set_visible(False)
        for end in ends:
            axes.axvline(end, color=_GREY, linewidth=0.8, zorder=0)
    return figure


def _figure(width: float, height: float) -> tuple[Any, Any]:
    """An empty figure of these inches, and matplotlib's module of colours. Raises ImportError in
    one sentence where matplotlib is missing."""
    try:
        from matplotlib import colors
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ImportError(
            "pyimpl.visualize draws with matplotlib, which is not installed: "
            "pip install 'matplotlib>=3.9'"
        ) from error
    figure = Figure(figsize=(width, height), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    return figure, colors
