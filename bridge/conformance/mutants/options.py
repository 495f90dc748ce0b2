"""The mutants of the kernels' options: windows, score changes, grouped heads, splits, pages
and packed sequences.

Those of the forward kernel are caught by vectors of attention, most others by vectors of their own
layout (`bridge.conformance.mutants.planted_layouts`); all of them by direct comparison, in
`tests/pyimpl/backends/kernels/test_option_mutants.py`.
"""

from __future__ import annotations

from bridge.conformance.mutants.planting import Mutant

_KERNEL = "backends/kernels/forward.py"
_LOOP = "backends/kernels/parts/loop.py"
_BOUNDS = "backends/kernels/parts/bounds.py"
_DECODE = "backends/kernels/decode.py"
_SEQUENCES = "backends/kernels/parts/sequences.py"
_VARLEN = "backends/kernels/varlen.py"
_WINDOW_LEFT = "rows.positions[:, None] - scores.left <= keys[None, :]"
_WINDOW_RIGHT = "keys[None, :] <= rows.positions[:, None] + scores.right"
_LSE = "return m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l))"

OPTION_MUTANTS: tuple[Mutant, ...] = (
    Mutant(
        "window-hides-its-first-key",
        "the left edge of the window is one key too far to the right",
        _LOOP,
        _WINDOW_LEFT,
        _WINDOW_LEFT.replace("<=", "<"),
        promising=("window",),
        through=_KERNEL,
    ),
    Mutant(
        "window-shows-one-key-before",
        "the left edge of the window is one key too far to the left",
        _LOOP,
        _WINDOW_LEFT,
        _WINDOW_LEFT.replace(" <=", " - 1 <="),
        promising=("window",),
        through=_KERNEL,
    ),
    Mutant(
        "window-hides-its-last-key",
        "the right edge of the window is one key too far to the left",
        _LOOP,
        _WINDOW_RIGHT,
        _WINDOW_RIGHT.replace("<=", "<"),
        promising=("window",),
        through=_KERNEL,
    ),
    Mutant(
        "window-shows-one-key-after",
        "the right edge of the window is one key too far to the right",
        _LOOP,
        _WINDOW_RIGHT,
        _WINDOW_RIGHT + " + 1",
        promising=("window",),
        through=_KERNEL,
    ),
    Mutant(
        "first-tile-skipped",
        "the first key of a window's tiles is that of the query after the first",
        _BOUNDS,
        "first = tl.maximum(row_first + shift - left, 0)",
        "first = tl.maximum(row_first + 1 + shift - left, 0)",
        promising=("window-tiles", "window"),
        through=_KERNEL,
    ),
    Mutant(
        "last-key-skipped",
        "the keys of a tile end one before the last that its last query sees",
        _BOUNDS,
        "row_last + shift + right + 1, 0))",
        "row_last + shift + right, 0))",
        promising=("window",),
        through=_KERNEL,
    ),
    Mutant(
        "right-edge-unmasked",
        "a tile that the right edge of the window cuts is taken without mask code",
        _BOUNDS,
        "seen // block_n",
        "num_tiles(seen, block_n)",
        promising=("window-tiles", "causal"),
        through=_KERNEL,
    ),
    Mutant(
        "left-edge-unmasked",
        "a tile that the left edge of the window cuts is taken without mask code",
        _BOUNDS,
        "first = num_tiles(tl.maximum(row_last + shift - left, 0), block_n)",
        "first = tl.maximum(row_last + shift - left, 0) // block_n",
        promising=("window-tiles",),
        through=_KERNEL,
    ),
    Mutant(
        "alignment-swapped",
        "the window is aligned top-left whatever is asked for",
        _KERNEL,
        '"shift": options.shift',
        '"shift": 0',
        promising=("causal-bottom-right",),
    ),
    Mutant(
        "alignment-of-packed-sequences-swapped",
        "packed sequences are aligned top-left whatever is asked for",
        _KERNEL,
        "shift = shift + kv_len - q_len",
        "shift = shift + 0",
        through=_VARLEN,
    ),
    Mutant(
        "softcap-omitted",
        "scores are not capped",
        _LOOP,
        "s = scores.cap * tanh(s)",
        "s = scores.cap * s",
        promising=("softcap",),
        through=_KERNEL,
    ),
    Mutant(
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
    Mutant(
        "alibi-sign",
        "ALiBi favours distant keys",
        _LOOP,
        "s = s - rows.slopes",
        "s = s + rows.slopes",
        promising=("alibi",),
        through=_KERNEL,
    ),
    Mutant(
        "alibi-signed-distance",
        "ALiBi favours keys after the query",
        _LOOP,
        "distance = tl.abs(rows.positions[:, None] - keys[None, :])",
        "distance = rows.positions[:, None] - keys[None, :]",
        promising=("alibi",),
        through=_KERNEL,
    ),
    Mutant(
        "bias-base",
        "log₂e is forgotten for the bias",
        _LOOP,
        "s = s + bias * LOG2E",
        "s = s + bias",
        promising=("bias",),
        through=_KERNEL,
    ),
    Mutant(
        "gqa-modulo",
        "query head h uses head h % kv_heads of the keys",
        _KERNEL,
        "kv_head = kv_head_of(head, group)",
        "kv_head = head % (num_heads // group)",
    ),
    Mutant(
        "packed-heads-modulo",
        "the rows of a packed tile are query by query, and are read head by head",
        _DECODE,
        "return kv_head * group + row % group",
        "return kv_head * group + row // group % group",
    ),
    Mutant(
        "sink-omitted",
        "the sink sets the maximum and is left out of the denominator",
        _LOOP,
        'l = tl.where(m == float("-inf"), 0.0, 1.0)',
        "l = tl.zeros([BLOCK_M], tl.float32)",
        promising=("sink",),
        through=_KERNEL,
    ),
    Mutant(
        "sink-in-every-split",
        "each split counts the sink",
        _DECODE,
        "own = inside & (split == 0)",
        "own = inside",
    ),
    Mutant(
        "empty-split-lse-zero",
        "a split without a key has log-sum-exp 0",
        _LOOP,
        _LSE,
        "return tl.where(l == 0.0, 0.0, m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l)))",
        through=_DECODE,
    ),
    Mutant(
        "empty-split-lse-infinite",
        "a split without a key has log-sum-exp +∞",
        _LOOP,
        _LSE,
        'return tl.where(l == 0.0, float("inf"), m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l)))',
        through=_DECODE,
    ),
    Mutant(
        "last-split-dropped",
        "the tiles of a split are rounded down, and the last ones belong to no split",
        _DECODE,
        "split_tiles = num_tiles(stop - first, num_splits)",
        "split_tiles = (stop - first) // num_splits",
    ),
    Mutant(
        "lengths-ignored",
        "every sequence is taken to be of full length",
        _DECODE,
        "kv_len = tl.minimum(tl.maximum(given, 0), kv_len)",
        "kv_len = kv_len + 0 * given",
    ),
    Mutant(
        "page-table-ignored",
        "pages are read in the order in which they lie",
        _LOOP,
        "pages = tl.load(entries, mask=inside, other=0).to(tl.int64)",
        "pages = (keys // PAGE_SIZE).to(tl.int64)",
        through=_DECODE,
    ),
    Mutant(
        "cu-seqlens-one-short",
        "each packed sequence ends one row early",
        _SEQUENCES,
        "stop = tl.load(cu_ptr + (sequence + 1) * stride)",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride) - 1",
        through=_VARLEN,
    ),
    Mutant(
        "cu-seqlens-one-over",
        "each packed sequence ends with the first row of the next",
        _SEQUENCES,
        "stop = tl.load(cu_ptr + (sequence + 1) * stride)",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride) + 1",
        through=_VARLEN,
    ),
    Mutant(
        "parts-not-normalised",
        "parts are weighted against the largest log-sum-exp, and the weights not normalised",
        "backends/kernels/combine.py",
        "o = o / total[:, None]",
        "o = o / 1.0",
    ),
)
