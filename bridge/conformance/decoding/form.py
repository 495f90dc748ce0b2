"""The forms of a decoding function: how it is called, by the names of its parameters."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any, Literal

from bridge.conformance.functions.features import CallableError, Function

Layout = Literal["batch, heads, length, dim", "batch, length, heads, dim"]
# The features that `--require` asks for and `--without` declares.
NAMES = ("scale", "gqa", "several-tokens", "append", "pages", "lse", "unwritten-nan")


@dataclass(frozen=True)
class Form:
    """layout: of query, caches and output. caches: the names of the two buffers; None: the function
    is given a cache of its own kind by position, and returns the next one. page_size: rows of a
    page, where it takes pages. The others are the names of parameters that the signature has, None:
    it has no such. lengths: how many rows of each sequence are filled when the function is called;
    new: keys and values that it is to append; pages: the table of pages; causal: whether tokens of
    one call see the keys up to their own alone; gqa: whether there are fewer heads of keys."""

    layout: Layout
    caches: tuple[str, str] | None = None
    lengths: str | None = None
    new: tuple[str, str] | None = None
    scale: str | None = None
    causal: str | None = None
    pages: str | None = None
    lse: str | None = None
    gqa: str | None = None
    page_size: int = 0


# The names of the buffers: flash-attn's, and those of `pyimpl.attention_decode`.
_KINDS: tuple[tuple[Layout, tuple[str, str], str, tuple[str, str]], ...] = (
    ("batch, length, heads, dim", ("k_cache", "v_cache"), "cache_seqlens", ("k", "v")),
    ("batch, heads, length, dim", ("key_cache", "value_cache"), "kv_lens", ("key", "value")),
)
_OTHERS = {
    "scale": ("softmax_scale", "scale"),
    "causal": ("causal", "is_causal"),
    "pages": ("block_table", "page_table"),
    "lse": ("return_softmax_lse", "return_lse"),
    "gqa": ("enable_gqa",),
}
_ACCEPTED = (
    "step(query, key, value, cache), or a function of q, k_cache, v_cache and cache_seqlens, or of "
    "query, key_cache, value_cache and kv_lens, is accepted"
)


def form_of(function: Function) -> Form:
    """The form of a function, by its signature. Raises CallableError for one that has none of
    these."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        raise CallableError(f"has no signature that is known; {_ACCEPTED}") from None
    names = [p.name for p in parameters]
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    has: dict[str, Any] = {what: _first(names, each) for what, each in _OTHERS.items()}
    for layout, caches, lengths, new in _KINDS:
        if not set(caches) <= set(names):
            continue
        if [p.name for p in positional][1:3] != list(caches):
            raise CallableError(f"takes {caches[0]} and {caches[1]} at other places; {_ACCEPTED}")
        if lengths not in names:
            raise CallableError(f"has no {lengths}, of the rows that are filled; {_ACCEPTED}")
        appends = set(new) <= set(names)
        form = Form(layout, caches, lengths, new if appends else None, **has)
        _check_needed(parameters[3:], form)
        return form
    if len(positional) < 4:
        raise CallableError(f"takes {len(positional)} positional arguments; {_ACCEPTED}")
    form = Form("batch, heads, length, dim", scale=has["scale"], gqa=has["gqa"])
    _check_needed([p for p in parameters if p not in positional[:4]], form)
    return form


def _first(names: list[str], accepted: tuple[str, ...]) -> str | None:
    return next((name for name in accepted if name in names), None)


def _check_needed(parameters: list[inspect.Parameter], form: Form) -> None:
    """Raises CallableError for a parameter that has no default and is not always given."""
    kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    always = {form.lengths, *(form.new or ())}
    needed = [p.name for p in parameters if p.kind in kinds and p.default is p.empty]
    unknown = [name for name in needed if name not in always]
    if unknown:
        raise CallableError(f"needs {', '.join(unknown)}; such arguments must have a default")
