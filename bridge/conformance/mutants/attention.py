"""The mutants: mistakes that real kernels had or could have, as edits of `pyimpl`.

`MUTANTS` must each be caught by a vector. `EQUIVALENT` look wrong and change
no result: no vector may fail for them.
"""

from __future__ import annotations

from collections import Counter

from bridge.conformance.mutants.gradients import GRADIENT_MUTANTS
from bridge.conformance.mutants.options import OPTION_MUTANTS
from bridge.conformance.mutants.planting import Mutant, mutants_of
from bridge.conformance.mutants.shards import SHARD_MUTANTS

_KERNEL = "backends/kernels/forward.py"
_LSE = "m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l))"
_MOVES = ("maximum-moves", "ragged-tiles")

_in_loop = mutants_of("backends/kernels/parts/loop.py", through=_KERNEL)
_in_bounds = mutants_of("backends/kernels/parts/bounds.py", through=_KERNEL)
_in_kernel = mutants_of(_KERNEL)
_in_launch = mutants_of("backends/kernels/parts/launch.py", through=_KERNEL)
_in_state = mutants_of("state.py")
_in_tiled = mutants_of("backends/tiled.py")

KERNEL_MUTANTS: tuple[Mutant, ...] = (
    _in_loop(
        "l-not-rescaled", "the denominator is not rescaled when the maximum rises",
        "l = alpha * l + tl.sum(p, 1)", "l = l + tl.sum(p, 1)", _MOVES, "several tiles of keys",
    ),
    _in_loop(
        "o-not-rescaled", "the accumulated output is not rescaled when the maximum rises",
        "o = alpha[:, None] * o", "o = 1.0 * o", _MOVES, "several tiles of keys",
    ),
    _in_loop(
        "stale-maximum-for-l",
        "the weights that the denominator adds are relative to the maximum before this tile",
        "l = alpha * l + tl.sum(p, 1)",
        "stale = tl.where(m == float('-inf'), m_finite, m)\n"
        "    l = alpha * l + tl.sum(tl.exp2(s - stale[:, None]), 1)",
        _MOVES, "several tiles of keys",
    ),
    _in_loop(
        "causal-excludes-diagonal", "the causal mask hides the query's own key",
        "keys[None, :] <= rows.positions[:, None] + scores.right",
        "keys[None, :] < rows.positions[:, None] + scores.right", ("causal", "unequal-lengths"),
    ),
    _in_loop(
        "causal-shows-next-key", "the causal mask shows one key too many",
        "keys[None, :] <= rows.positions[:, None] + scores.right",
        "keys[None, :] <= rows.positions[:, None] + scores.right + 1",
        ("causal", "unequal-lengths"),
    ),
    _in_bounds(
        "last-tile-dropped",
        "the number of key tiles is rounded down: a ragged last tile is left out",
        "tl.where(some, num_tiles(stop, block_n), 0)", "tl.where(some, stop // block_n, 0)",
        ("ragged-tiles",),
    ),
    _in_loop(
        "ragged-keys-not-masked", "the padding of a ragged last tile counts as keys with score 0",
        "visible = (keys < at.stop)[None, :]", "visible = (keys < at.stop + 16)[None, :]",
        ("ragged-tiles",),
    ),
    _in_kernel(
        "wrong-scale", "1/√head_dim is used whatever scale is asked for",
        "**score_arguments(options)", "**score_arguments(ScoreOptions(head_dim**-0.5))",
        ("scales",),
    ),
    _in_launch(
        "omitted-scale", "scores are not scaled at all",
        "scale * LOG2E.value", "LOG2E.value", ("scales",),
    ),
    _in_launch(
        "doubled-scale", "scores are scaled twice",
        "scale * LOG2E.value", "scale * scale * LOG2E.value", ("scales",),
    ),
    _in_launch(
        "base-of-exponential", "log₂e is forgotten: 2^s instead of e^s",
        "scale * LOG2E.value", "scale", ("scales",),
    ),
    _in_loop(
        "masked-row-nan", "a row with every key masked is divided by its denominator 0",
        "return o / tl.where(none, 1.0, l)[:, None]", "return o / l[:, None]", ("fully-masked",),
    ),
    _in_loop(
        "masked-row-mean",
        "−∞ is a large finite number: a row with every key masked gives the mean of V",
        'return tl.where(visible, s, float("-inf")), v', "return tl.where(visible, s, -1.0e9), v",
        ("fully-masked",),
    ),
    _in_loop(
        "mask-inverted", "a boolean mask is read as True = hidden",
        "tl.load(mask_ptrs, mask=inside, other=0) != 0",
        "tl.load(mask_ptrs, mask=inside, other=1) == 0", ("masked-holes",),
    ),
    _in_loop(
        "minus-infinity-finite",
        "the maximum starts from a finite number instead of −∞: lower scores vanish beside it",
        'm = tl.full([BLOCK_M], float("-inf"), tl.float32)',
        "m = tl.full([BLOCK_M], -1000.0, tl.float32)", ("large-spread",),
    ),
    _in_kernel(
        "causal-aligned-bottom-right",
        "the causal mask is aligned bottom-right whatever is asked for",
        '"shift": options.shift', '"shift": key.shape[-2] - query.shape[-2]', ("unequal-lengths",),
    ),
    _in_loop(
        "empty-row-lse-infinite", "a row with every key masked has log-sum-exp +∞",
        _LSE, f'tl.where(l == 0.0, float("inf"), {_LSE})', ("fully-masked",),
    ),
    _in_loop(
        "empty-row-lse-finite", "a row with every key masked has a large finite log-sum-exp",
        _LSE, f"tl.where(l == 0.0, -1.0e30, {_LSE})", ("fully-masked",),
    ),
    _in_loop(
        "lse-base-2", "the log-sum-exp is returned in base 2",
        "m * LN2 + tl.log(tl.where", "m + tl.log2(tl.where", ("small-random",),
    ),
)  # fmt: skip

STATE_MUTANTS: tuple[Mutant, ...] = (
    _in_state(
        "merge-ignores-one-maximum", "merging rescales the first state only",
        "alpha, beta = rescale(a.m, m), rescale(b.m, m)",
        "alpha, beta = rescale(a.m, m), torch.ones_like(m)", _MOVES,
    ),
    _in_state(
        "divided-inside-the-loop", "o is divided by l after each block and not multiplied back",
        "o = alpha.unsqueeze(-1) * state.o + p @ values",
        "o = (alpha.unsqueeze(-1) * state.o + p @ values) / l.clamp_min(1).unsqueeze(-1)", _MOVES,
    ),
    _in_state(
        "block-o-not-rescaled", "a further block does not rescale the output so far",
        "o = alpha.unsqueeze(-1) * state.o + p @ values", "o = state.o + p @ values", _MOVES,
    ),
    _in_state(
        "block-l-not-rescaled", "a further block does not rescale the denominator so far",
        "l = alpha * state.l + p.sum(dim=-1)", "l = state.l + p.sum(dim=-1)", _MOVES,
    ),
    _in_state(
        "sink-state-without-weight",
        "the state of a sink begins with the denominator 0, as the empty one does",
        "return State(sinks, torch.ones_like(sinks), o)",
        "return State(sinks, torch.zeros_like(sinks), o)", ("sink-online", "sink-tiles"),
    ),
)  # fmt: skip

TILED_MUTANTS: tuple[Mutant, ...] = (
    _in_tiled(
        "tiled-causal-off-by-one", "the causal mask hides the query's own key",
        "place = tile.start + self.options.shift - tile.first",
        "place = tile.start + self.options.shift - tile.first - 1", ("causal",),
    ),
    _in_tiled(
        "tiled-doubled-scale", "scores are scaled twice",
        "self.factor = options.scale * LOG2E", "self.factor = options.scale**2 * LOG2E",
        ("scales",),
    ),
    _in_tiled(
        "tiled-base-of-exponential", "log₂e is forgotten: 2^s instead of e^s",
        "self.factor = options.scale * LOG2E", "self.factor = options.scale", ("causal",),
    ),
    _in_tiled(
        "tiled-last-tile-dropped", "a ragged last tile of keys is left out",
        "range(visited.first, visited.stop)",
        "range(visited.first, stop_key // self.bounds.block_n)", ("ragged-tiles",),
    ),
    _in_tiled(
        "tiled-l-not-rescaled", "the denominator is not rescaled when the maximum rises",
        "torch.addcmul(p.sum(dim=-1, keepdim=True), alpha, self.l)",
        "p.sum(dim=-1, keepdim=True) + self.l", _MOVES, "several tiles of keys",
    ),
    _in_tiled(
        "tiled-o-not-rescaled", "the accumulated output is not rescaled when the maximum rises",
        "self.o.mul_(alpha), p", "self.o, p", _MOVES, "several tiles of keys",
    ),
    _in_tiled(
        "tiled-half-hidden-keys-skipped",
        "keys at the edge of a tile that some queries may not attend to are left out for all",
        "as_numbers(hidden).amin(dim=(0, 1, 2))", "as_numbers(hidden).amax(dim=(0, 1, 2))",
        ("masked-holes",),
    ),
    _in_tiled(
        "tiled-mask-not-narrowed",
        "where a tile is taken from its first visible key on, its mask is not",
        "hidden = hidden[..., first:stop]", "hidden = hidden[..., : stop - first]",
        ("masked-holes",),
    ),
    _in_tiled(
        "tiled-diagonal-unmasked", "a tile that the diagonal crosses is taken without mask code",
        "u not in unmasked", "False", ("causal",),
    ),
)  # fmt: skip

# Vectors run the edited kernel on one head at a time, which hides an exchange of heads.
FORWARD_OPTION_MUTANTS = tuple(
    mutant for mutant in OPTION_MUTANTS if mutant.entry == _KERNEL and mutant.name != "gqa-modulo"
)

MUTANTS: tuple[Mutant, ...] = (
    KERNEL_MUTANTS
    + FORWARD_OPTION_MUTANTS
    + STATE_MUTANTS
    + TILED_MUTANTS
    + GRADIENT_MUTANTS
    + SHARD_MUTANTS
)

# A maximum that is too large by one for each block cancels in o / l and in m + ln l, as long as
# nothing underflows: values cannot show it, only `online-invariant`, which speaks of m itself.
EQUIVALENT: tuple[Mutant, ...] = (
    _in_state(
        "consistent-wrong-maximum",
        "the maximum of each block is too large by 1, in every place that uses it",
        "m = torch.maximum(state.m, scores.amax(dim=-1))",
        "m = torch.maximum(state.m, scores.amax(dim=-1) + 1.0)",
    ),
)  # fmt: skip


def telling_families() -> tuple[str, ...]:
    """Families of vectors, by how many of the mutants show in them first, the most first."""
    counts = Counter(family for mutant in MUTANTS for family in mutant.promising[:1])
    return tuple(family for family, _ in counts.most_common())
