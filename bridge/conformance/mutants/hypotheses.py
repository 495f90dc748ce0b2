"""Mutants as hypotheses of what is wrong with a function: attention computed rightly from
arguments that are changed as the mutant changes them, or with a mutant of the tile loop planted.

`hypothetical` runs them, in float64, and `bridge.conformance.likely` compares their results with
those of a function that fails.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from bridge.conformance.mutants.attention import TILED_MUTANTS
from pyimpl.backends import reference
from pyimpl.internal.arguments import mask_as_4d, resolve_scale
from pyimpl.internal.scores import ScoreOptions, alignment_shift

LN2 = math.log(2.0)
TILES = (16, 32, 64, 128)
# Tiles of the loop, among them those of a few keys, and single ones.
_LOOP_TILES = (1, 4, 8, *TILES)
_LOOP_MUTANTS = ("tiled-l-not-rescaled", "tiled-o-not-rescaled")


@dataclass(frozen=True)
class Call:
    """A call of an attention function. query `[batch, heads, q_len, head_dim]`, key and value
    `[batch, kv_heads, kv_len, …]`, float64; by: the arguments by which the function was told of
    its masks; wide: the dtype in which it computes; backward: what is wrong with the gradients."""

    query: Tensor
    key: Tensor
    value: Tensor
    options: ScoreOptions
    by: frozenset[str] = frozenset()
    wide: torch.dtype = torch.float32
    backward: Backward | None = None

    @property
    def lengths(self) -> tuple[int, int]:
        """(q_len, kv_len)."""
        return self.query.shape[2], self.key.shape[2]

    @property
    def group(self) -> int:
        """Query heads for each head of keys."""
        return self.query.shape[1] // max(self.key.shape[1], 1)

    def seen(self) -> Tensor:
        """Which pairs are not masked, `[batch|1, heads|1, q_len, kv_len]`."""
        q_len, kv_len = self.lengths
        options = self.options
        found = reference.window(options, q_len, kv_len, self.query.device)[None, None]
        if options.bias is not None:
            found = found & ~torch.isneginf(mask_as_4d(options.bias, q_len, kv_len))
        if options.mask is not None:
            found = found & mask_as_4d(options.mask, q_len, kv_len)
        return found

    def with_options(self, **changes: Any) -> Call:
        """The call with other options."""
        return replace(self, options=replace(self.options, **changes))


# From the options, the output, and the gradients by output and log-sum-exp: those to go on with.
Backward = Callable[
    [ScoreOptions, Tensor, Tensor | None], tuple[ScoreOptions, Tensor, Tensor | None]
]
Parts = tuple[Tensor, Tensor]


def _same(call: Call) -> Call:
    return call


@dataclass(frozen=True)
class Hypothesis:
    """name: that of the planted mutant where there is one. description: as of a mutant. change: the
    arguments that are computed with, None: the mutant does not show in this call. result: what
    becomes of output and log-sum-exp; tolerance: of their tolerances, which is the same unless it
    is given. loop: a mutant of the tile loop that is planted, with tiles of `tile` keys."""

    name: str
    description: str
    change: Callable[[Call], Call | None] = _same
    result: Callable[[Call, Tensor, Tensor], Parts] | None = None
    tolerance: Callable[[Call, Tensor, Tensor], Parts] | None = None
    loop: str | None = None
    tile: int = 0


# --- changes of the arguments ---------------------------------------------------------------------


def _scaled(factor: Callable[[Call, float], float]) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        scale = factor(call, call.options.scale)
        return None if scale == call.options.scale else call.with_options(scale=scale)

    return change


def _base(call: Call) -> Call:
    """Every score times ln 2."""
    o = call.options
    return call.with_options(
        scale=o.scale * LN2,
        softcap=None if o.softcap is None else o.softcap * LN2,
        alibi_slopes=None if o.alibi_slopes is None else o.alibi_slopes * LN2,
        bias=None if o.bias is None else o.bias * LN2,
        sinks=None if o.sinks is None else o.sinks * LN2,
    )


def _window(argument: str, edit: Callable[[Call], dict[str, Any]]) -> Callable[[Call], Call | None]:
    """Of a call that was told of its mask by this argument."""

    def change(call: Call) -> Call | None:
        if argument not in call.by:
            return None
        changes = edit(call)
        now = {name: getattr(call.options, name) for name in changes}
        return None if now == changes else call.with_options(**changes)

    return change


def _moved(side: str, by: int) -> Callable[[Call], dict[str, Any]]:
    def edit(call: Call) -> dict[str, Any]:
        bound = getattr(call.options, side)
        return {} if bound is None else {side: bound + by}

    return edit


def _shifted(alignment: Any) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        shift = alignment_shift(alignment, *call.lengths)
        positional = call.by & {"is_causal", "window"} or call.options.alibi_slopes is not None
        if not positional or shift == call.options.shift:
            return None
        return call.with_options(shift=shift)

    return change


def _option(name: str, edit: Callable[[Call], dict[str, Any]]) -> Callable[[Call], Call | None]:
    """Of a call with this option."""

    def change(call: Call) -> Call | None:
        if getattr(call.options, name) is None:
            return None
        return call.with_options(**edit(call))

    return change


def _tensor(given: Tensor | None) -> Tensor:
    assert given is not None
    return given


def _without_bias(call: Call) -> dict[str, Any]:
    """−∞ still masks."""
    bias = _tensor(call.options.bias)
    return {"bias": torch.where(torch.isneginf(bias), bias, 0.0)}


def _bias_times(factor: Callable[[Call], float]) -> Callable[[Call], dict[str, Any]]:
    def edit(call: Call) -> dict[str, Any]:
        bias = _tensor(call.options.bias)
        return {"bias": torch.where(torch.isneginf(bias), bias, bias * factor(call))}

    return edit


def _signed_distance(call: Call) -> dict[str, Any]:
    slopes, (q_len, kv_len) = _tensor(call.options.alibi_slopes), call.lengths
    place = torch.arange(q_len).unsqueeze(-1) + call.options.shift
    added = -slopes.double()[..., None, None] * (place - torch.arange(kv_len))
    if call.options.bias is not None:
        added = added + mask_as_4d(call.options.bias, q_len, kv_len)
    return {"alibi_slopes": None, "bias": added}


def _cap(call: Call) -> float:
    assert call.options.softcap is not None
    return call.options.softcap


def _cut(keys: int, call: Call) -> Call:
    """The first so many keys alone."""
    o = call.options
    bias, mask = (
        None if x is None else mask_as_4d(x, *call.lengths)[..., :keys] for x in (o.bias, o.mask)
    )
    changed = replace(call, key=call.key[:, :, :keys], value=call.value[:, :, :keys])
    return changed.with_options(bias=bias, mask=mask)


def _last_tile_dropped(tile: int) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        keys = call.lengths[1]
        return _cut(keys - keys % tile, call) if keys % tile and keys > tile else None

    return change


def _more_keys_than_queries(call: Call) -> Call | None:
    q_len, kv_len = call.lengths
    return _cut(q_len, call) if kv_len > q_len else None


def _ragged_unmasked(tile: int) -> Callable[[Call], Call | None]:
    """Keys of zeros up to the end of the last tile, which masks but windows do not hide."""

    def change(call: Call) -> Call | None:
        more = -call.lengths[1] % tile
        if not more:
            return None
        o = call.options
        bias, mask = (
            None if x is None else pad(mask_as_4d(x, *call.lengths), (0, more), value=value)
            for x, value in ((o.bias, 0.0), (o.mask, True))
        )
        key, value = (pad(x, (0, 0, 0, more)) for x in (call.key, call.value))
        return replace(call, key=key, value=value).with_options(bias=bias, mask=mask)

    return change


def _narrow(width: int) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        if call.query.shape[-1] <= width:
            return None
        return replace(call, query=call.query[..., :width], key=call.key[..., :width])

    return change


def _rounded(dtype: torch.dtype) -> Callable[[Call], Call | None]:
    def change(call: Call) -> Call | None:
        now = (call.query, call.key, call.value)
        then = [x.to(dtype).to(x.dtype) for x in now]
        if all(torch.equal(x, y) for x, y in zip(now, then, strict=True)):
            return None
        return replace(call, query=then[0], key=then[1], value=then[2])

    return change


def _heads_modulo(call: Call) -> Call | None:
    """Query head h reads head h modulo their number of the keys."""
    if call.group == 1 or call.key.shape[1] == 1:
        return None
    key, value = (x.repeat(1, call.group, 1, 1) for x in (call.key, call.value))
    return replace(call, key=key, value=value)


def _backwards(edit: Backward) -> Callable[[Call], Call | None]:
    """Of a call whose gradients are asked for."""

    def change(call: Call) -> Call | None:
        asked = any(x.requires_grad for x in (call.query, call.key, call.value))
        return replace(call, backward=edit) if asked else None

    return change


# --- changes of the result ------------------------------------------------------------------------


def _blind(lse: Tensor) -> Tensor:
    """Rows that see neither a key nor a sink, `[batch, heads, q_len, 1]`."""
    return torch.isneginf(lse).unsqueeze(-1)


def _mean_of_values(call: Call, out: Tensor, lse: Tensor) -> Parts:
    mean = call.value.mean(-2, keepdim=True).repeat_interleave(call.group, 1)
    return torch.where(_blind(lse), mean, out), lse


def _of_mean(call: Call, out: Tensor, lse: Tensor) -> Parts:
    """The tolerance of that of a row that sees every key, with equal scores."""
    size = call.value.abs().amax(-2, keepdim=True).repeat_interleave(call.group, 1)
    blind = torch.isneginf(_lse_of(call)).unsqueeze(-1)
    unit = torch.finfo(call.wide).eps * (call.lengths[1] + 2)
    return torch.where(blind, out.amax().clamp_min(0) + unit * size, out), lse


def _lse_of(call: Call) -> Tensor:
    with torch.no_grad():
        return reference.attention(call.query, call.key, call.value, call.options)[1]


def _maxima(call: Call) -> Tensor:
    """The largest score of each row, `[batch, heads, q_len]`; 0 where none is seen."""
    s = reference.scores(call.query, call.key, call.options).amax(-1)
    return torch.where(torch.isneginf(s), 0.0, s)


def _denominators(call: Call) -> Tensor:
    """Σ exp(s − m) of each row, `[batch, heads, q_len]`."""
    return (_lse_of(call) - _maxima(call)).exp()


def _overflowing(call: Call, out: Tensor, lse: Tensor) -> Parts:
    """Weights exp(s) in the dtype of the computation, where one of them overflows or all vanish;
    elsewhere nothing shows."""
    s = reference.scores(call.query, call.key, call.options)
    weights = s.to(call.wide).exp().double()
    total = weights.sum(-1)
    value = call.value.repeat_interleave(call.group, 1)
    wrong = (weights @ value) / total.unsqueeze(-1)
    strange = torch.isinf(total) | (total == 0) & ~torch.isneginf(lse)
    return (
        torch.where(strange.unsqueeze(-1), wrong, out),
        torch.where(strange, total.log(), lse),
    )


def _lse_only(edit: Callable[[Call, Tensor], Tensor]) -> Callable[[Call, Tensor, Tensor], Parts]:
    return lambda call, out, lse: (out, edit(call, lse))


# --- the hypotheses -------------------------------------------------------------------------------


def _default_scale(call: Call, scale: float) -> float:
    return float(resolve_scale(None, call.query.shape[-1]))


_SCALES = (
    Hypothesis("doubled-scale", "scores are scaled twice", _scaled(lambda c, s: s * s)),
    Hypothesis("omitted-scale", "scores are not scaled at all", _scaled(lambda c, s: 1.0)),
    Hypothesis(
        "wrong-scale", "1/√head_dim is used whatever scale is asked for", _scaled(_default_scale)
    ),
    Hypothesis(
        "default-scale-too", "scores are multiplied by 1/√head_dim as well",
        _scaled(lambda c, s: s * _default_scale(c, s)),
    ),
    Hypothesis(
        "divided-by-scale", "scores are divided by the scale",
        _scaled(lambda c, s: 1.0 / s if s else s),
    ),
    Hypothesis(
        "root-of-scale", "scores are multiplied by the square root of the scale",
        _scaled(lambda c, s: s**0.5 if s > 0 else s),
    ),
    Hypothesis(
        "head-dim-not-rooted", "the default scale is 1/head_dim, not its square root",
        _scaled(lambda c, s: s * s if s == _default_scale(c, s) else s),
    ),
    Hypothesis("base-of-exponential", "log₂e is forgotten: 2^s instead of e^s", _base),
)  # fmt: skip
_MASKS = (
    Hypothesis(
        "causal-excludes-diagonal", "the causal mask hides the query's own key",
        _window("is_causal", _moved("right", -1)),
    ),
    Hypothesis(
        "causal-shows-next-key", "the causal mask shows one key too many",
        _window("is_causal", _moved("right", 1)),
    ),
    Hypothesis(
        "causal-ignored", "the causal mask is left out",
        _window("is_causal", lambda c: {"right": None}),
    ),
    Hypothesis(
        "causal-transposed", "the causal mask hides the keys before the query, not those after it",
        _window("is_causal", lambda c: {"left": 0, "right": None}),
    ),
    Hypothesis(
        "causal-aligned-bottom-right",
        "the causal mask is aligned bottom-right whatever is asked for", _shifted("bottom-right"),
    ),
    Hypothesis(
        "alignment-swapped", "the window is aligned top-left whatever is asked for",
        _shifted("top-left"),
    ),
    Hypothesis(
        "window-hides-its-first-key", "the left edge of the window is one key too far to the right",
        _window("window", _moved("left", -1)),
    ),
    Hypothesis(
        "window-shows-one-key-before",
        "the left edge of the window is one key too far to the left",
        _window("window", _moved("left", 1)),
    ),
    Hypothesis(
        "window-hides-its-last-key", "the right edge of the window is one key too far to the left",
        _window("window", _moved("right", -1)),
    ),
    Hypothesis(
        "window-shows-one-key-after",
        "the right edge of the window is one key too far to the right",
        _window("window", _moved("right", 1)),
    ),
    Hypothesis(
        "window-ignored", "the window is left out",
        _window("window", lambda c: {"left": None, "right": None}),
    ),
    Hypothesis(
        "mask-inverted", "a boolean mask is read as True = hidden",
        _option("mask", lambda c: {"mask": ~_tensor(c.options.mask)}),
    ),
    Hypothesis(
        "mask-ignored", "the boolean mask is left out", _option("mask", lambda c: {"mask": None})
    ),
    Hypothesis(
        "masked-row-nan", "a row with every key masked is divided by its denominator 0",
        result=lambda c, out, lse: (torch.where(_blind(lse), torch.nan, out), lse),
    ),
    Hypothesis(
        "masked-row-mean",
        "−∞ is a large finite number: a row with every key masked gives the mean of V",
        result=_mean_of_values, tolerance=_of_mean,
    ),
    Hypothesis(
        "maximum-not-subtracted", "the maximum is not subtracted, and the exponential overflows",
        result=_overflowing,
    ),
)  # fmt: skip
_CHANGES = (
    Hypothesis(
        "softcap-omitted", "scores are not capped", _option("softcap", lambda c: {"softcap": None})
    ),
    Hypothesis(
        "softcap-not-divided", "scores are not divided by the cap before the tanh",
        _option("softcap", lambda c: {"scale": c.options.scale * _cap(c)}),
    ),
    Hypothesis(
        "softcap-not-multiplied", "the tanh is not multiplied by the cap",
        _option("softcap", lambda c: {"scale": c.options.scale / _cap(c), "softcap": 1.0}),
    ),
    Hypothesis(
        "softcap-before-scale", "scores are capped before they are scaled",
        lambda c: (
            c.with_options(softcap=_cap(c) * c.options.scale)
            if c.options.softcap is not None and c.options.scale > 0 else None
        ),
    ),
    Hypothesis(
        "alibi-omitted", "the slopes are left out",
        _option("alibi_slopes", lambda c: {"alibi_slopes": None}),
    ),
    Hypothesis(
        "alibi-sign", "ALiBi favours distant keys",
        _option("alibi_slopes", lambda c: {"alibi_slopes": -_tensor(c.options.alibi_slopes)}),
    ),
    Hypothesis(
        "alibi-signed-distance", "ALiBi favours keys after the query",
        _option("alibi_slopes", _signed_distance),
    ),
    Hypothesis("bias-omitted", "the bias is left out", _option("bias", _without_bias)),
    Hypothesis(
        "bias-base", "log₂e is forgotten for the bias", _option("bias", _bias_times(lambda c: LN2))
    ),
    Hypothesis(
        "bias-scaled", "the bias is added before the scores are scaled",
        _option("bias", _bias_times(lambda c: c.options.scale)),
    ),
    Hypothesis(
        "sink-left-out", "the sink is left out", _option("sinks", lambda c: {"sinks": None})
    ),
    Hypothesis("gqa-modulo", "query head h uses head h % kv_heads of the keys", _heads_modulo),
)  # fmt: skip
_SIZES = (
    *(
        Hypothesis(
            "last-tile-dropped", f"a ragged last tile of {n} keys is left out",
            _last_tile_dropped(n),
        )
        for n in TILES
    ),
    *(
        Hypothesis(
            "ragged-keys-not-masked",
            f"the padding of a ragged last tile of {n} keys counts as keys with score 0",
            _ragged_unmasked(n),
        )
        for n in TILES
    ),
    Hypothesis(
        "keys-beyond-queries", "keys beyond the number of queries are left out",
        _more_keys_than_queries,
    ),
    *(
        Hypothesis("narrow-heads", f"columns of query and key beyond {n} are left out", _narrow(n))
        for n in (64, 128)
    ),
    Hypothesis(
        "inputs-in-bfloat16", "the inputs are rounded to bfloat16", _rounded(torch.bfloat16)
    ),
    Hypothesis("inputs-in-float16", "the inputs are rounded to float16", _rounded(torch.float16)),
    Hypothesis(
        "output-not-divided", "the output is not divided by the denominator",
        result=lambda c, out, lse: (out * _denominators(c).unsqueeze(-1), lse),
        tolerance=lambda c, out, lse: (out * _denominators(c).unsqueeze(-1), lse),
    ),
)  # fmt: skip
_LOGARITHMS = (
    Hypothesis(
        "lse-base-2", "the log-sum-exp is returned in base 2",
        result=_lse_only(lambda c, lse: lse / LN2),
        tolerance=_lse_only(lambda c, lse: lse / LN2),
    ),
    Hypothesis(
        "lse-without-maximum", "the maximum is not added to the log-sum-exp",
        result=_lse_only(lambda c, lse: lse - _maxima(c)),
    ),
    Hypothesis(
        "lse-is-the-maximum", "the maximum is returned as log-sum-exp",
        result=_lse_only(lambda c, lse: torch.where(torch.isneginf(lse), lse, _maxima(c))),
    ),
    Hypothesis(
        "empty-row-lse-infinite", "a row with every key masked has log-sum-exp +∞",
        result=_lse_only(lambda c, lse: torch.where(torch.isneginf(lse), torch.inf, lse)),
    ),
    Hypothesis(
        "empty-row-lse-zero", "a row with every key masked has log-sum-exp 0",
        result=_lse_only(lambda c, lse: torch.where(torch.isneginf(lse), 0.0, lse)),
    ),
)  # fmt: skip
_LOOPS = tuple(
    Hypothesis(
        mutant.name.removeprefix("tiled-"),
        f"{mutant.description}, tiles of {tile} keys" if tile > 1 else f"{mutant.description}",
        loop=mutant.name,
        tile=tile,
    )
    for mutant in TILED_MUTANTS
    if mutant.name in _LOOP_MUTANTS
    for tile in _LOOP_TILES
)
_GRADIENTS = (
    Hypothesis(
        "gradient-delta-omitted", "backwards, D = rowsum(dO ∘ O) is left out",
        _backwards(lambda options, out, by_lse: (options, torch.zeros_like(out), by_lse)),
    ),
    Hypothesis(
        "gradient-of-lse-ignored", "backwards, the gradient of the log-sum-exp is left out",
        _backwards(lambda options, out, by_lse: (options, out, None)),
    ),
    Hypothesis(
        "gradient-delta-and-lse-omitted",
        "backwards, D = rowsum(dO ∘ O) and the gradient of the log-sum-exp are left out",
        _backwards(lambda options, out, by_lse: (options, torch.zeros_like(out), None)),
    ),
    Hypothesis(
        "gradient-unmasked", "backwards, the mask is left out",
        _backwards(
            lambda options, out, by_lse: (
                replace(options, mask=None, left=None, right=None), out, by_lse
            )
        ),
    ),
    Hypothesis(
        "gradient-without-softcap", "backwards, the softcap is left out",
        _backwards(lambda options, out, by_lse: (replace(options, softcap=None), out, by_lse)),
    ),
)  # fmt: skip

HYPOTHESES: tuple[Hypothesis, ...] = (
    *_SCALES, *_MASKS, *_CHANGES, *_LOGARITHMS, *_GRADIENTS, *_SIZES, *_LOOPS
)  # fmt: skip
