"""The mutants: mistakes that real kernels had or could have, as edits of `pyimpl`.

`MUTANTS` must each be caught by a vector. `EQUIVALENT` look wrong and change
no result: no vector may fail for them.
"""

from __future__ import annotations

from collections import Counter

from bridge.conformance.mutants.gradients import GRADIENT_MUTANTS
from bridge.conformance.mutants.options import OPTION_MUTANTS
from bridge.conformance.mutants.planting import Mutant

_KERNEL = "backends/kernels/forward.py"
_LOOP = "backends/kernels/parts/loop.py"
_BOUNDS = "backends/kernels/parts/bounds.py"
_LAUNCH = "backends/kernels/parts/launch.py"
_LSE = "m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l))"
_MOVES = ("maximum-moves", "ragged-tiles")

KERNEL_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "l-not-rescaled",
        "the denominator is not rescaled when the maximum rises",
        _LOOP,
        "l = alpha * l + tl.sum(p, 1)",
        "l = l + tl.sum(p, 1)",
        promising=_MOVES,
        needs="several tiles of keys",
        through=_KERNEL,
    ),
    Mutant(
        "o-not-rescaled",
        "the accumulated output is not rescaled when the maximum rises",
        _LOOP,
        "o = alpha[:, None] * o",
        "o = 1.0 * o",
        promising=_MOVES,
        needs="several tiles of keys",
        through=_KERNEL,
    ),
    Mutant(
        "stale-maximum-for-l",
        "the weights that the denominator adds are relative to the maximum before this tile",
        _LOOP,
        "l = alpha * l + tl.sum(p, 1)",
        "stale = tl.where(m == float('-inf'), m_finite, m)\n"
        "    l = alpha * l + tl.sum(tl.exp2(s - stale[:, None]), 1)",
        promising=_MOVES,
        needs="several tiles of keys",
        through=_KERNEL,
    ),
    Mutant(
        "causal-excludes-diagonal",
        "the causal mask hides the query's own key",
        _LOOP,
        "keys[None, :] <= rows.positions[:, None] + scores.right",
        "keys[None, :] < rows.positions[:, None] + scores.right",
        promising=("causal", "unequal-lengths"),
        through=_KERNEL,
    ),
    Mutant(
        "causal-shows-next-key",
        "the causal mask shows one key too many",
        _LOOP,
        "keys[None, :] <= rows.positions[:, None] + scores.right",
        "keys[None, :] <= rows.positions[:, None] + scores.right + 1",
        promising=("causal", "unequal-lengths"),
        through=_KERNEL,
    ),
    Mutant(
        "last-tile-dropped",
        "the number of key tiles is rounded down: a ragged last tile is left out",
        _BOUNDS,
        "tl.where(some, num_tiles(stop, block_n), 0)",
        "tl.where(some, stop // block_n, 0)",
        promising=("ragged-tiles",),
        through=_KERNEL,
    ),
    Mutant(
        "ragged-keys-not-masked",
        "the padding of a ragged last tile counts as keys with score 0",
        _LOOP,
        "visible = (keys < at.stop)[None, :]",
        "visible = (keys < at.stop + 16)[None, :]",
        promising=("ragged-tiles",),
        through=_KERNEL,
    ),
    Mutant(
        "wrong-scale",
        "1/√head_dim is used whatever scale is asked for",
        _KERNEL,
        "**score_arguments(options)",
        "**score_arguments(ScoreOptions(head_dim**-0.5))",
        promising=("scales",),
    ),
    Mutant(
        "omitted-scale",
        "scores are not scaled at all",
        _LAUNCH,
        "scale * LOG2E.value",
        "LOG2E.value",
        promising=("scales",),
        through=_KERNEL,
    ),
    Mutant(
        "doubled-scale",
        "scores are scaled twice",
        _LAUNCH,
        "scale * LOG2E.value",
        "scale * scale * LOG2E.value",
        promising=("scales",),
        through=_KERNEL,
    ),
    Mutant(
        "base-of-exponential",
        "log₂e is forgotten: 2^s instead of e^s",
        _LAUNCH,
        "scale * LOG2E.value",
        "scale",
        promising=("scales",),
        through=_KERNEL,
    ),
    Mutant(
        "masked-row-nan",
        "a row with every key masked is divided by its denominator 0",
        _LOOP,
        "return o / tl.where(none, 1.0, l)[:, None]",
        "return o / l[:, None]",
        promising=("fully-masked",),
        through=_KERNEL,
    ),
    Mutant(
        "masked-row-mean",
        "−∞ is a large finite number: a row with every key masked gives the mean of V",
        _LOOP,
        'return tl.where(visible, s, float("-inf")), v',
        "return tl.where(visible, s, -1.0e9), v",
        promising=("fully-masked",),
        through=_KERNEL,
    ),
    Mutant(
        "mask-inverted",
        "a boolean mask is read as True = hidden",
        _LOOP,
        "tl.load(mask_ptrs, mask=inside, other=0) != 0",
        "tl.load(mask_ptrs, mask=inside, other=1) == 0",
        promising=("masked-holes",),
        through=_KERNEL,
    ),
    Mutant(
        "minus-infinity-finite",
        "the maximum starts from a finite number instead of −∞: lower scores vanish beside it",
        _LOOP,
        'm = tl.full([BLOCK_M], float("-inf"), tl.float32)',
        "m = tl.full([BLOCK_M], -1000.0, tl.float32)",
        promising=("large-spread",),
        through=_KERNEL,
    ),
    Mutant(
        "causal-aligned-bottom-right",
        "the causal mask is aligned bottom-right whatever is asked for",
        _KERNEL,
        '"shift": options.shift',
        '"shift": key.shape[-2] - query.shape[-2]',
        promising=("unequal-lengths",),
    ),
    Mutant(
        "empty-row-lse-infinite",
        "a row with every key masked has log-sum-exp +∞",
        _LOOP,
        _LSE,
        f'tl.where(l == 0.0, float("inf"), {_LSE})',
        promising=("fully-masked",),
        through=_KERNEL,
    ),
    Mutant(
        "empty-row-lse-finite",
        "a row with every key masked has a large finite log-sum-exp",
        _LOOP,
        _LSE,
        f"tl.where(l == 0.0, -1.0e30, {_LSE})",
        promising=("fully-masked",),
        through=_KERNEL,
    ),
    Mutant(
        "lse-base-2",
        "the log-sum-exp is returned in base 2",
        _LOOP,
        "m * LN2 + tl.log(tl.where",
        "m + tl.log2(tl.where",
        promising=("small-random",),
        through=_KERNEL,
    ),
)

STATE_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "merge-ignores-one-maximum",
        "merging rescales the first state only",
        "state.py",
        "alpha, beta = rescale(a.m, m), rescale(b.m, m)",
        "alpha, beta = rescale(a.m, m), torch.ones_like(m)",
        promising=_MOVES,
    ),
    Mutant(
        "divided-inside-the-loop",
        "o is divided by l after each block and not multiplied back",
        "state.py",
        "o = alpha.unsqueeze(-1) * state.o + p @ values",
        "o = (alpha.unsqueeze(-1) * state.o + p @ values) / l.clamp_min(1).unsqueeze(-1)",
        promising=_MOVES,
    ),
    Mutant(
        "block-o-not-rescaled",
        "a further block does not rescale the output so far",
        "state.py",
        "o = alpha.unsqueeze(-1) * state.o + p @ values",
        "o = state.o + p @ values",
        promising=_MOVES,
    ),
    Mutant(
        "block-l-not-rescaled",
        "a further block does not rescale the denominator so far",
        "state.py",
        "l = alpha * state.l + p.sum(dim=-1)",
        "l = state.l + p.sum(dim=-1)",
        promising=_MOVES,
    ),
    Mutant(
        "sink-state-without-weight",
        "the state of a sink begins with the denominator 0, as the empty one does",
        "state.py",
        "return State(sinks, torch.ones_like(sinks), o)",
        "return State(sinks, torch.zeros_like(sinks), o)",
        promising=("sink-online", "sink-tiles"),
    ),
)

TILED_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "tiled-causal-off-by-one",
        "the causal mask hides the query's own key",
        "backends/tiled.py",
        "place = tile.start + self.options.shift - tile.first",
        "place = tile.start + self.options.shift - tile.first - 1",
        promising=("causal",),
    ),
    Mutant(
        "tiled-doubled-scale",
        "scores are scaled twice",
        "backends/tiled.py",
        "self.factor = options.scale * LOG2E",
        "self.factor = options.scale**2 * LOG2E",
        promising=("scales",),
    ),
    Mutant(
        "tiled-base-of-exponential",
        "log₂e is forgotten: 2^s instead of e^s",
        "backends/tiled.py",
        "self.factor = options.scale * LOG2E",
        "self.factor = options.scale",
        promising=("causal",),
    ),
    Mutant(
        "tiled-last-tile-dropped",
        "a ragged last tile of keys is left out",
        "backends/tiled.py",
        "range(visited.first, visited.stop)",
        "range(visited.first, stop_key // self.bounds.block_n)",
        promising=("ragged-tiles",),
    ),
    Mutant(
        "tiled-l-not-rescaled",
        "the denominator is not rescaled when the maximum rises",
        "backends/tiled.py",
        "torch.addcmul(p.sum(dim=-1, keepdim=True), alpha, self.l)",
        "p.sum(dim=-1, keepdim=True) + self.l",
        promising=_MOVES,
        needs="several tiles of keys",
    ),
    Mutant(
        "tiled-o-not-rescaled",
        "the accumulated output is not rescaled when the maximum rises",
        "backends/tiled.py",
        "self.o.mul_(alpha).baddbmm_(",
        "self.o.baddbmm_(",
        promising=_MOVES,
        needs="several tiles of keys",
    ),
    Mutant(
        "tiled-half-hidden-keys-skipped",
        "keys at the edge of a tile that some queries may not attend to are left out for all",
        "backends/tiled.py",
        "as_numbers(hidden).amin(dim=(0, 1, 2))",
        "as_numbers(hidden).amax(dim=(0, 1, 2))",
        promising=("masked-holes",),
    ),
    Mutant(
        "tiled-mask-not-narrowed",
        "where a tile is taken from its first visible key on, its mask is not",
        "backends/tiled.py",
        "hidden = hidden[..., first:stop]",
        "hidden = hidden[..., : stop - first]",
        promising=("masked-holes",),
    ),
    Mutant(
        "tiled-diagonal-unmasked",
        "a tile that the diagonal crosses is taken without mask code",
        "backends/tiled.py",
        "u not in unmasked",
        "False",
        promising=("causal",),
    ),
)

# Vectors run the edited kernel on one head at a time, which hides an exchange of heads.
FORWARD_OPTION_MUTANTS = tuple(
    mutant for mutant in OPTION_MUTANTS if mutant.entry == _KERNEL and mutant.name != "gqa-modulo"
)

MUTANTS: tuple[Mutant, ...] = (
    KERNEL_MUTANTS + FORWARD_OPTION_MUTANTS + STATE_MUTANTS + TILED_MUTANTS + GRADIENT_MUTANTS
)

# A maximum that is too large by one for each block cancels in o / l and in m + ln l, as long as
# nothing underflows: values cannot show it, only `online-invariant`, which speaks of m itself.
EQUIVALENT: tuple[Mutant, ...] = (
    Mutant(
        "consistent-wrong-maximum",
        "the maximum of each block is too large by 1, in every place that uses it",
        "state.py",
        "m = torch.maximum(state.m, scores.amax(dim=-1))",
        "m = torch.maximum(state.m, scores.amax(dim=-1) + 1.0)",
    ),
)


def telling() -> tuple[str, ...]:
    """Families of vectors, by how many of the mutants show in them first, the most first."""
    counts = Counter(family for mutant in MUTANTS for family in mutant.promising[:1])
    return tuple(family for family, _ in counts.most_common())
