"""The pictures that have numbers in them: drawn from vectors and by the Spec in Python."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from bridge.pages.render import render
from bridge.pages.worked import masks
from bridge.pages.worked.shown import show
from bridge.pages.worked.tolerance import DTYPES, number, worked_tolerance
from bridge.source.excerpt import SourceError
from bridge.source.sources import family_of
from bridge.spec import online, softmax
from bridge.spec.attention import ScoredValue
from bridge.spec.core import EXACT
from bridge.spec.masks import Alignment, mask_causal
from bridge.spec.maximum import rescale
from bridge.vectors.model.attention import Family

FOLDER = "docs/images"
# The row of both pictures, the masked key third, and how many keys are a block.
SCORES = (0, 2, None, 1, 3, 0)
BLOCK_N = 2
# A family, a vector of it, and its caption in the picture. The first is shown beside the other
# alignment for the same numbers of queries and keys.
MASKS = (
    ("causal-bottom-right", "causal-bottom-right-002", "bottom-right"),
    ("window", "window-002", "2 before, 1 after"),
    ("document", "document-002", "documents"),
)
# Whose tolerance: family, vector, query, column, keys in a tile.
ALLOWED: tuple[str, str, int, int, int] = ("tile-loop", "tile-loop-000", 3, 0, 3)
SECTIONS = ("2. shared", "3. weights stored", "4. sums", "5. the result")


def pictures(families: Sequence[Family]) -> dict[str, str]:
    """The text of each picture by its file. Raises SourceError where a vector is not there."""
    made = {
        "softmax": _softmax(),
        "online": _online(),
        "masks": _masks(families),
        "tolerances": _tolerances(families),
    }
    return {
        f"{FOLDER}/{name}.svg": render(f"images/{name}.svg.jinja", **values)
        for name, values in made.items()
    }


def _softmax() -> dict[str, Any]:
    weights = [softmax.weight(s, num=EXACT) for s in SCORES]
    total = sum(weights, Fraction(0))
    shares = softmax.softmax(list(SCORES), num=EXACT)
    keys = [
        {
            "score": "masked" if s is None else show(s),
            # Over the sum, without cancelling: so the numerator stays visible.
            "share": "0" if s is None else f"{show(w)}/{show(total)}",
            "height": float(100 * p),
        }
        for s, w, p in zip(SCORES, weights, shares, strict=True)
    ]
    terms = [show(w) for s, w in zip(SCORES, weights, strict=True) if s is not None]
    return {"keys": keys, "sum": f"{' + '.join(terms)} = {show(total)}"}


def _online() -> dict[str, Any]:
    state = online.empty(d=1, num=EXACT)
    blocks = []
    for start in range(0, len(SCORES), BLOCK_N):
        scores = SCORES[start : start + BLOCK_N]
        keys = [ScoredValue(s, [Fraction(0)]) for s in scores]
        before, state = state, online.step_block(state, keys, d=1, num=EXACT)
        alpha = rescale(before.m, state.m, num=EXACT)
        added = [rescale(s, state.m, num=EXACT) for s in scores if s is not None]
        kept = "" if before.m is None else show(before.l)
        if kept and alpha != 1:
            kept = f"{show(alpha)}·{kept}"
        # The first block shows its two terms, later ones their sum beside the kept denominator.
        terms = [kept, show(sum(added, Fraction(0)))] if kept else [show(w) for w in added]
        blocks.append(
            {
                "scores": ["masked" if s is None else show(s) for s in scores],
                "m": show(state.m),
                "l": f"{' + '.join(terms)} = {show(state.l)}",
                "alpha": None if before.m is None else show(alpha),
            }
        )
    whole = [softmax.weight(s, num=EXACT) for s in SCORES if s is not None]
    top = Fraction(2) ** max(s for s in SCORES if s is not None)
    if sum(whole, Fraction(0)) / top != state.l:
        raise SourceError("the picture of the online state does not end in the whole sum")
    numbers = f"({' + '.join(map(show, whole))}) / {show(top)} = {show(state.l)}"
    return {"blocks": blocks, "whole": numbers}


def _masks(families: Sequence[Family]) -> dict[str, Any]:
    grids: list[dict[str, Any]] = [
        {"says": says, "rows": masks.visible(family_of(families, name), vector)}
        for name, vector, says in MASKS
    ]
    rows = grids[0]["rows"]
    q_len, kv_len = len(rows), len(rows[0])
    causal = mask_causal(Alignment.TOP_LEFT, q_len=q_len, kv_len=kv_len)
    other = [[causal(i, j) for j in range(kv_len)] for i in range(q_len)]
    return {"grids": [{"says": "top-left", "rows": other}, *grids]}


def _tolerances(families: Sequence[Family]) -> dict[str, Any]:
    name, vector, query, column, block_n = ALLOWED
    one = worked_tolerance(family_of(families, name), vector, query, column, block_n)
    bars = []
    for dtype in DTYPES:
        parts = one.parts(dtype)
        bars.append(
            {
                "dtype": dtype,
                "shares": [part / sum(parts) for part in parts],
                "whole": number(one.tolerance(dtype)),
            }
        )
    return {"bars": bars, "sections": SECTIONS}
