"""The planted faults: mistakes that real kernels had or could have, as edits of `pyimpl`.

`FAULTS` must each be caught by a vector. `TWINS` are edits that look wrong and change no result;
no vector may complain of them.
"""

from __future__ import annotations

from bridge.conformance.planting import Fault

_KERNEL = "kernels/forward.py"
_LOOP = "kernels/_loop.py"
_BOUNDS = "kernels/_bounds.py"
_LAUNCH = "kernels/_launch.py"
_MOVES = ("maximum-moves", "ragged-tiles")

KERNEL_FAULTS: tuple[Fault, ...] = (
    Fault(
        "l-not-rescaled",
        "the denominator is not rescaled when the maximum rises",
        _LOOP,
        "l = alpha * l + tl.sum(p, 1)",
        "l = l + tl.sum(p, 1)",
        promising=_MOVES,
        several_tiles=True,
        through=_KERNEL,
    ),
    Fault(
        "o-not-rescaled",
        "the accumulated output is not rescaled when the maximum rises",
        _LOOP,
        "o = alpha[:, None] * o",
        "o = 1.0 * o",
        promising=_MOVES,
        several_tiles=True,
        through=_KERNEL,
    ),
    Fault(
        "stale-maximum-for-l",
        "the weights that the denominator adds are relative to the maximum before this tile",
        _LOOP,
        "l = alpha * l + tl.sum(p, 1)",
        "stale = tl.where(m == float('-inf'), m_finite, m)\n"
        "    l = alpha * l + tl.sum(tl.exp2(s - stale[:, None]), 1)",
        promising=_MOVES,
        several_tiles=True,
        through=_KERNEL,
    ),
    Fault(
        "causal-excludes-diagonal",
        "the causal mask hides the query's own key",
        _LOOP,
        "keys[None, :] <= rows.positions[:, None] + scores.right",
        "keys[None, :] < rows.positions[:, None] + scores.right",
        promising=("causal", "unequal-lengths"),
        through=_KERNEL,
    ),
    Fault(
        "causal-shows-next-key",
        "the causal mask shows one key too many",
        _LOOP,
        "keys[None, :] <= rows.positions[:, None] + scores.right",
        "keys[None, :] <= rows.positions[:, None] + scores.right + 1",
        promising=("causal", "unequal-lengths"),
        through=_KERNEL,
    ),
    Fault(
        "last-tile-dropped",
        "the number of key tiles is rounded down: a ragged last tile is left out",
        _BOUNDS,
        "tl.where(some, num_tiles(stop, block_n), 0)",
        "tl.where(some, stop // block_n, 0)",
        promising=("ragged-tiles",),
        through=_KERNEL,
    ),
    Fault(
        "ragged-keys-not-masked",
        "the padding of a ragged last tile counts as keys with score 0",
        _LOOP,
        "visible = (keys < at.stop)[None, :]",
        "visible = (keys < at.stop + 16)[None, :]",
        promising=("ragged-tiles",),
        through=_KERNEL,
    ),
    Fault(
        "wrong-scale",
        "1/√head_dim is used whatever scale is asked for",
        _KERNEL,
        "**score_arguments(options)",
        "**score_arguments(ScoreOptions(head_dim**-0.5))",
        promising=("scales",),
    ),
    Fault(
        "omitted-scale",
        "scores are not scaled at all",
        _LAUNCH,
        "scale * LOG2E.value",
        "LOG2E.value",
        promising=("scales",),
        through=_KERNEL,
    ),
    Fault(
        "doubled-scale",
        "scores are scaled twice",
        _LAUNCH,
        "scale * LOG2E.value",
        "scale * scale * LOG2E.value",
        promising=("scales",),
        through=_KERNEL,
    ),
    Fault(
        "base-of-exponential",
        "log₂e is forgotten: 2^s instead of e^s",
        _LAUNCH,
        "scale * LOG2E.value",
        "scale",
        promising=("scales",),
        through=_KERNEL,
    ),
    Fault(
        "masked-row-nan",
        "a row with every key masked is divided by its denominator 0",
        _LOOP,
        "return o / tl.where(none, 1.0, l)[:, None]",
        "return o / l[:, None]",
        promising=("fully-masked",),
        through=_KERNEL,
    ),
    Fault(
        "masked-row-mean",
        "−∞ is a large finite number: a row with every key masked gives the mean of V",
        _LOOP,
        'return tl.where(visible, s, float("-inf")), v',
        "return tl.where(visible, s, -1.0e9), v",
        promising=("fully-masked",),
        through=_KERNEL,
    ),
    Fault(
        "mask-inverted",
        "a boolean mask is read as True = hidden",
        _LOOP,
        "tl.load(mask_ptrs, mask=inside, other=0) != 0",
        "tl.load(mask_ptrs, mask=inside, other=1) == 0",
        promising=("masked-holes",),
        through=_KERNEL,
    ),
    Fault(
        "lse-base-2",
        "the log-sum-exp is returned in base 2",
        _LOOP,
        "m * LN2 + tl.log(tl.where",
        "m + tl.log2(tl.where",
        promising=("small-random",),
        through=_KERNEL,
    ),
)

_DECODE = "kernels/decode.py"
_VARLEN = "kernels/varlen.py"
_WINDOW_LEFT = "rows.positions[:, None] - scores.left <= keys[None, :]"
_WINDOW_RIGHT = "keys[None, :] <= rows.positions[:, None] + scores.right"
_LSE = "return m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l))"

# Those of the forward kernel are caught by vectors; all of them by direct comparison, in
# `tests/pyimpl/kernels/test_option_faults.py`.
OPTION_FAULTS: tuple[Fault, ...] = (
    Fault(
        "window-hides-its-first-key",
        "the left edge of the window is one key too far to the right",
        _LOOP,
        _WINDOW_LEFT,
        _WINDOW_LEFT.replace("<=", "<"),
        promising=("window",),
        through=_KERNEL,
    ),
    Fault(
        "window-shows-one-key-before",
        "the left edge of the window is one key too far to the left",
        _LOOP,
        _WINDOW_LEFT,
        _WINDOW_LEFT.replace(" <=", " - 1 <="),
        promising=("window",),
        through=_KERNEL,
    ),
    Fault(
        "window-hides-its-last-key",
        "the right edge of the window is one key too far to the left",
        _LOOP,
        _WINDOW_RIGHT,
        _WINDOW_RIGHT.replace("<=", "<"),
        promising=("window",),
        through=_KERNEL,
    ),
    Fault(
        "window-shows-one-key-after",
        "the right edge of the window is one key too far to the right",
        _LOOP,
        _WINDOW_RIGHT,
        _WINDOW_RIGHT + " + 1",
        promising=("window",),
        through=_KERNEL,
    ),
    Fault(
        "first-tile-skipped",
        "the first key of a window's tiles is that of the query after the first",
        _BOUNDS,
        "first = tl.maximum(row_first + shift - left, 0)",
        "first = tl.maximum(row_first + 1 + shift - left, 0)",
        promising=("window-tiles", "window"),
        through=_KERNEL,
    ),
    Fault(
        "last-key-skipped",
        "the keys of a tile end one before the last that its last query sees",
        _BOUNDS,
        "row_last + shift + right + 1, 0))",
        "row_last + shift + right, 0))",
        promising=("window",),
        through=_KERNEL,
    ),
    Fault(
        "right-edge-unmasked",
        "a tile that the right edge of the window cuts is taken without mask code",
        _BOUNDS,
        "seen // block_n",
        "num_tiles(seen, block_n)",
        promising=("window-tiles", "causal"),
        through=_KERNEL,
    ),
    Fault(
        "left-edge-unmasked",
        "a tile that the left edge of the window cuts is taken without mask code",
        _BOUNDS,
        "first = num_tiles(tl.maximum(row_last + shift - left, 0), block_n)",
        "first = tl.maximum(row_last + shift - left, 0) // block_n",
        promising=("window-tiles",),
        through=_KERNEL,
    ),
    Fault(
        "alignment-swapped",
        "the window is aligned top-left whatever is asked for",
        _KERNEL,
        '"shift": options.shift',
        '"shift": 0',
        promising=("causal-bottom-right",),
    ),
    Fault(
        "alignment-of-packed-sequences-swapped",
        "packed sequences are aligned top-left whatever is asked for",
        _VARLEN,
        "shift = shift + kv_len - q_len",
        "shift = shift + 0",
    ),
    Fault(
        "softcap-omitted",
        "scores are not capped",
        _LOOP,
        "s = scores.cap * tanh(s)",
        "s = scores.cap * s",
        promising=("softcap",),
        through=_KERNEL,
    ),
    Fault(
        "softcap-after-masking",
        "scores are capped once more after masking, so that masked keys come back with −cap",
        _LOOP,
        'return tl.where(visible, s, float("-inf")), v',
        's = tl.where(visible, s, float("-inf"))\n'
        "    if scores.cap is not None:\n"
        "        s = scores.cap * tanh(s / scores.cap)\n"
        "    return s, v",
        promising=("softcap",),
        through=_KERNEL,
    ),
    Fault(
        "alibi-sign",
        "ALiBi favours distant keys",
        _LOOP,
        "s = s - rows.slopes",
        "s = s + rows.slopes",
        promising=("alibi",),
        through=_KERNEL,
    ),
    Fault(
        "alibi-signed-distance",
        "ALiBi favours keys after the query",
        _LOOP,
        "distance = tl.abs(rows.positions[:, None] - keys[None, :])",
        "distance = rows.positions[:, None] - keys[None, :]",
        promising=("alibi",),
        through=_KERNEL,
    ),
    Fault(
        "bias-base",
        "log₂e is forgotten for the bias",
        _LOOP,
        "s = s + bias * LOG2E",
        "s = s + bias",
        promising=("bias",),
        through=_KERNEL,
    ),
    Fault(
        "gqa-modulo",
        "query head h uses head h % kv_heads of the keys",
        _KERNEL,
        "kv_head = kv_head_of(head, group)",
        "kv_head = head % (num_heads // group)",
    ),
    Fault(
        "packed-heads-modulo",
        "the rows of a packed tile are query by query, and are read head by head",
        _DECODE,
        "return kv_head * group + row % group",
        "return kv_head * group + row // group % group",
    ),
    Fault(
        "sink-omitted",
        "the sink sets the maximum and is left out of the denominator",
        _LOOP,
        'l = tl.where(m == float("-inf"), 0.0, 1.0)',
        "l = tl.zeros([BLOCK_M], tl.float32)",
        promising=("sink",),
        through=_KERNEL,
    ),
    Fault(
        "sink-in-every-split",
        "each split counts the sink",
        _DECODE,
        "own = inside & (split == 0)",
        "own = inside",
    ),
    Fault(
        "empty-split-lse-zero",
        "a split without a key has log-sum-exp 0",
        _LOOP,
        _LSE,
        "return tl.where(l == 0.0, 0.0, m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l)))",
        through=_DECODE,
    ),
    Fault(
        "empty-split-lse-infinite",
        "a split without a key has log-sum-exp +∞",
        _LOOP,
        _LSE,
        'return tl.where(l == 0.0, float("inf"), m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l)))',
        through=_DECODE,
    ),
    Fault(
        "last-split-dropped",
        "the tiles of a split are rounded down, and the last ones belong to no split",
        _DECODE,
        "split_tiles = num_tiles(stop - first, num_splits)",
        "split_tiles = (stop - first) // num_splits",
    ),
    Fault(
        "lengths-ignored",
        "every sequence is taken to be of full length",
        _DECODE,
        "kv_len = tl.minimum(tl.maximum(given, 0), kv_len)",
        "kv_len = kv_len + 0 * given",
    ),
    Fault(
        "page-table-ignored",
        "pages are read in the order in which they lie",
        _LOOP,
        "pages = tl.load(entries, mask=inside, other=0).to(tl.int64)",
        "pages = (keys // PAGE_SIZE).to(tl.int64)",
        through=_DECODE,
    ),
    Fault(
        "cu-seqlens-one-short",
        "each packed sequence ends one row early",
        _VARLEN,
        "stop = tl.load(cu_ptr + (sequence + 1) * stride)",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride) - 1",
    ),
    Fault(
        "cu-seqlens-one-over",
        "each packed sequence ends with the first row of the next",
        _VARLEN,
        "stop = tl.load(cu_ptr + (sequence + 1) * stride)",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride) + 1",
    ),
    Fault(
        "parts-not-normalised",
        "parts are weighted against the largest log-sum-exp, and the weights not normalised",
        "kernels/combine.py",
        "o = o / total[:, None]",
        "o = o / 1.0",
    ),
)

STATE_FAULTS: tuple[Fault, ...] = (
    Fault(
        "merge-ignores-one-maximum",
        "merging rescales the first state only",
        "state.py",
        "alpha, beta = rescale(a.m, m), rescale(b.m, m)",
        "alpha, beta = rescale(a.m, m), torch.ones_like(m)",
        promising=_MOVES,
    ),
    Fault(
        "divided-inside-the-loop",
        "o is divided by l after each block and not multiplied back",
        "state.py",
        "o = alpha.unsqueeze(-1) * state.o + p @ values",
        "o = (alpha.unsqueeze(-1) * state.o + p @ values) / l.clamp_min(1).unsqueeze(-1)",
        promising=_MOVES,
    ),
    Fault(
        "block-o-not-rescaled",
        "a further block does not rescale the output so far",
        "state.py",
        "o = alpha.unsqueeze(-1) * state.o + p @ values",
        "o = state.o + p @ values",
        promising=_MOVES,
    ),
    Fault(
        "block-l-not-rescaled",
        "a further block does not rescale the denominator so far",
        "state.py",
        "l = alpha * state.l + p.sum(dim=-1)",
        "l = state.l + p.sum(dim=-1)",
        promising=_MOVES,
    ),
)

TILED_FAULTS: tuple[Fault, ...] = (
    Fault(
        "tiled-causal-off-by-one",
        "the causal mask hides the query's own key",
        "tiled.py",
        "place = tile.start + self.options.shift - tile.first",
        "place = tile.start + self.options.shift - tile.first - 1",
        promising=("causal",),
    ),
    Fault(
        "tiled-doubled-scale",
        "scores are scaled twice",
        "tiled.py",
        "self.factor = options.scale * LOG2E",
        "self.factor = options.scale**2 * LOG2E",
        promising=("scales",),
    ),
    Fault(
        "tiled-base-of-exponential",
        "log₂e is forgotten: 2^s instead of e^s",
        "tiled.py",
        "self.factor = options.scale * LOG2E",
        "self.factor = options.scale",
        promising=("causal",),
    ),
    Fault(
        "tiled-last-tile-dropped",
        "a ragged last tile of keys is left out",
        "tiled.py",
        "range(visited.first, visited.stop)",
        "range(visited.first, stop_key // self.bounds.block_n)",
        promising=("ragged-tiles",),
    ),
    Fault(
        "tiled-l-not-rescaled",
        "the denominator is not rescaled when the maximum rises",
        "tiled.py",
        "torch.addcmul(p.sum(dim=-1, keepdim=True), alpha, self.l)",
        "p.sum(dim=-1, keepdim=True) + self.l",
        promising=_MOVES,
        several_tiles=True,
    ),
    Fault(
        "tiled-o-not-rescaled",
        "the accumulated output is not rescaled when the maximum rises",
        "tiled.py",
        "self.o.mul_(alpha).baddbmm_(",
        "self.o.baddbmm_(",
        promising=_MOVES,
        several_tiles=True,
    ),
    Fault(
        "tiled-half-hidden-tile-skipped",
        "a tile of keys that some queries may not attend to is skipped for all",
        "tiled.py",
        "bool(hidden.all())",
        "bool(hidden.any())",
        promising=("masked-holes",),
    ),
    Fault(
        "tiled-diagonal-unmasked",
        "a tile that the diagonal crosses is taken without mask code",
        "tiled.py",
        "u not in unmasked",
        "False",
        promising=("causal",),
    ),
)

# Vectors run the edited kernel on one head at a time, which hides an exchange of heads.
FORWARD_OPTION_FAULTS = tuple(
    fault for fault in OPTION_FAULTS if fault.entry == _KERNEL and fault.name != "gqa-modulo"
)

FAULTS: tuple[Fault, ...] = KERNEL_FAULTS + FORWARD_OPTION_FAULTS + STATE_FAULTS + TILED_FAULTS

# A maximum that is too large by one for each block cancels in o / l and in m + ln l, as long as
# nothing underflows: values cannot show it, only `online-invariant`, which speaks of m itself.
TWINS: tuple[Fault, ...] = (
    Fault(
        "consistent-wrong-maximum",
        "the maximum of each block is too large by 1, in every place that uses it",
        "state.py",
        "m = torch.maximum(state.m, scores.amax(dim=-1))",
        "m = torch.maximum(state.m, scores.amax(dim=-1) + 1.0)",
    ),
)
