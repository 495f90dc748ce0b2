"""The mutants of the kernels' options: windows, score changes, grouped heads, splits, pages
and packed sequences.

Those of the forward kernel are caught by vectors of attention, most others by vectors of their own
layout (`bridge.conformance.mutants.planted_layouts`); all of them by direct comparison, in
`tests/pyimpl/backends/kernels/test_option_mutants.py`.
"""

from __future__ import annotations

from bridge.conformance.mutants.planting import Mutant, mutants_of

_KERNEL = "backends/kernels/forward.py"
_LOOP = "backends/kernels/parts/loop.py"
_DECODE = "backends/kernels/decode.py"
_VARLEN = "backends/kernels/varlen.py"
_WINDOW_LEFT = "rows.positions[:, None] - scores.left <= keys[None, :]"
_WINDOW_RIGHT = "keys[None, :] <= rows.positions[:, None] + scores.right"
_LSE = "return m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l))"

_in_loop_through_kernel = mutants_of(_LOOP, through=_KERNEL)
_in_bounds = mutants_of("backends/kernels/parts/bounds.py", through=_KERNEL)
_in_kernel = mutants_of(_KERNEL)
_in_kernel_through_varlen = mutants_of(_KERNEL, through=_VARLEN)
_in_decode = mutants_of(_DECODE)
_in_loop_through_decode = mutants_of(_LOOP, through=_DECODE)
_in_sequences = mutants_of("backends/kernels/parts/sequences.py", through=_VARLEN)
_in_combine = mutants_of("backends/kernels/combine.py")

OPTION_MUTANTS: tuple[Mutant, ...] = (
    _in_loop_through_kernel(
        "window-hides-its-first-key", "the left edge of the window is one key too far to the right",
        _WINDOW_LEFT, _WINDOW_LEFT.replace("<=", "<"), ("window",),
    ),
    _in_loop_through_kernel(
        "window-shows-one-key-before", "the left edge of the window is one key too far to the left",
        _WINDOW_LEFT, _WINDOW_LEFT.replace(" <=", " - 1 <="), ("window",),
    ),
    _in_loop_through_kernel(
        "window-hides-its-last-key", "the right edge of the window is one key too far to the left",
        _WINDOW_RIGHT, _WINDOW_RIGHT.replace("<=", "<"), ("window",),
    ),
    _in_loop_through_kernel(
        "window-shows-one-key-after",
        "the right edge of the window is one key too far to the right",
        _WINDOW_RIGHT, _WINDOW_RIGHT + " + 1", ("window",),
    ),
    _in_bounds(
        "first-tile-skipped",
        "the first key of a window's tiles is that of the query after the first",
        "first = tl.maximum(row_first + shift - left, 0)",
        "first = tl.maximum(row_first + 1 + shift - left, 0)", ("window-tiles", "window"),
    ),
    _in_bounds(
        "last-key-skipped", "the keys of a tile end one before the last that its last query sees",
        "row_last + shift + right + 1, 0))", "row_last + shift + right, 0))", ("window",),
    ),
    _in_bounds(
        "right-edge-unmasked",
        "a tile that the right edge of the window cuts is taken without mask code",
        "seen // block_n", "num_tiles(seen, block_n)", ("window-tiles", "causal"),
    ),
    _in_bounds(
        "left-edge-unmasked",
        "a tile that the left edge of the window cuts is taken without mask code",
        "first = num_tiles(tl.maximum(row_last + shift - left, 0), block_n)",
        "first = tl.maximum(row_last + shift - left, 0) // block_n", ("window-tiles",),
    ),
    _in_kernel(
        "alignment-swapped", "the window is aligned top-left whatever is asked for",
        '"shift": options.shift', '"shift": 0', ("causal-bottom-right",),
    ),
    _in_kernel_through_varlen(
        "alignment-of-packed-sequences-swapped",
        "packed sequences are aligned top-left whatever is asked for",
        "shift = shift + kv_len - q_len", "shift = shift + 0",
    ),
    _in_loop_through_kernel(
        "softcap-omitted", "scores are not capped",
        "s = scores.cap * tanh(s)", "s = scores.cap * s", ("softcap",),
    ),
    _in_loop_through_kernel(
        "softcap-after-masking",
        "scores are capped once more after masking, so that masked keys come back with −cap",
        'return tl.where(visible, s, float("-inf")), v',
        's = tl.where(visible, s, float("-inf"))\n'
        "    if scores.cap is not None:\n"
        "        s = scores.cap * tanh(s / scores.cap)\n"
        "    return s, v",
        ("softcap",),
    ),
    _in_loop_through_kernel(
        "alibi-sign", "ALiBi favours distant keys",
        "s = s - rows.slopes", "s = s + rows.slopes", ("alibi",),
    ),
    _in_loop_through_kernel(
        "alibi-signed-distance", "ALiBi favours keys after the query",
        "distance = tl.abs(rows.positions[:, None] - keys[None, :])",
        "distance = rows.positions[:, None] - keys[None, :]", ("alibi",),
    ),
    _in_loop_through_kernel(
        "bias-base", "log₂e is forgotten for the bias",
        "s = s + bias * LOG2E", "s = s + bias", ("bias",),
    ),
    _in_kernel(
        "gqa-modulo", "query head h uses head h % kv_heads of the keys",
        "kv_head = kv_head_of(head, group)", "kv_head = head % (num_heads // group)",
    ),
    _in_decode(
        "packed-heads-modulo",
        "the rows of a packed tile are query by query, and are read head by head",
        "return kv_head * group + row % group", "return kv_head * group + row // group % group",
    ),
    _in_loop_through_kernel(
        "sink-omitted", "the sink sets the maximum and is left out of the denominator",
        'l = tl.where(m == float("-inf"), 0.0, 1.0)', "l = tl.zeros([BLOCK_M], tl.float32)",
        ("sink",),
    ),
    _in_decode(
        "sink-in-every-split", "each split counts the sink",
        "own = inside & (split == 0)", "own = inside",
    ),
    _in_loop_through_decode(
        "empty-split-lse-zero", "a split without a key has log-sum-exp 0",
        _LSE, "return tl.where(l == 0.0, 0.0, m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l)))",
    ),
    _in_loop_through_decode(
        "empty-split-lse-infinite", "a split without a key has log-sum-exp +∞",
        _LSE,
        'return tl.where(l == 0.0, float("inf"), m * LN2 + tl.log(tl.where(l == 0.0, 1.0, l)))',
    ),
    _in_decode(
        "last-split-dropped",
        "the tiles of a split are rounded down, and the last ones belong to no split",
        "split_tiles = num_tiles(stop - first, num_splits)",
        "split_tiles = (stop - first) // num_splits",
    ),
    _in_decode(
        "lengths-ignored", "every sequence is taken to be of full length",
        "kv_len = tl.minimum(tl.maximum(given, 0), kv_len)", "kv_len = kv_len + 0 * given",
    ),
    _in_loop_through_decode(
        "page-table-ignored", "pages are read in the order in which they lie",
        "pages = tl.load(entries, mask=inside, other=0).to(tl.int64)",
        "pages = (keys // PAGE_SIZE).to(tl.int64)",
    ),
    _in_loop_through_decode(
        "page-of-a-tile-ignored",
        "pages that hold whole tiles are read in the order in which they lie",
        "page = tl.load(at.table + begin // PAGE_SIZE * at.table_n).to(tl.int64)",
        "page = begin // PAGE_SIZE",
    ),
    _in_loop_through_decode(
        "first-tile-of-each-page", "of a page that holds several tiles the first is read each time",
        "slot = begin % PAGE_SIZE", "slot = begin % BLOCK_N",
    ),
    _in_sequences(
        "cu-seqlens-one-short", "each packed sequence ends one row early",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride)",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride) - 1",
    ),
    _in_sequences(
        "cu-seqlens-one-over", "each packed sequence ends with the first row of the next",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride)",
        "stop = tl.load(cu_ptr + (sequence + 1) * stride) + 1",
    ),
    _in_combine(
        "parts-not-normalised",
        "parts are weighted against the largest log-sum-exp, and the weights not normalised",
        "o = o / total[:, None]", "o = o / 1.0",
    ),
)  # fmt: skip
