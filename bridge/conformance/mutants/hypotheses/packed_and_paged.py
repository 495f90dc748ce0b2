"""Sequences whose boundaries, lengths or pages are read wrongly, and parts merged wrongly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bridge.conformance.mutants.hypotheses.call import Hypothesis
from bridge.conformance.mutants.hypotheses.layout import Bounds, InParts, Packed, Paged
from bridge.vectors.model.operations import (
    CascadeVector,
    CombineVector,
    PagedVector,
    VarlenVector,
)

_PREFIX = frozenset({CascadeVector.operation})
_SPLITS = frozenset({CombineVector.operation})

# --- packed sequences -----------------------------------------------------------------------------


def _clip(bounds: Bounds, most: int) -> Bounds:
    return tuple((min(max(a, 0), most), min(max(a, b, 0), most)) for a, b in bounds)


def _with_keys(edit: Callable[[Packed], Bounds]) -> Callable[[Packed], Packed]:
    """Other keys of each sequence, as far as there are any."""
    return lambda x: replace(x, keys=_clip(edit(x), len(x.key)))


def _whole(x: Packed) -> Packed:
    all_rows, all_keys = ((0, len(x.query)),), ((0, len(x.key)),)
    return replace(x, rows=all_rows, keys=all_keys, moved=(0,))


def _every_key(x: Packed) -> Packed:
    """Each sequence's window stays where it was among its own keys."""
    return replace(
        x,
        keys=((0, len(x.key)),) * len(x.rows),
        bottom_right=False,
        moved=tuple(shift + keys[0] for shift, keys in zip(x.shifts(), x.keys, strict=True)),
    )


def _rows_of_keys(x: Packed) -> Packed:
    return replace(x, rows=_clip(x.keys, len(x.query)))


def _one_short(x: Packed) -> Packed:
    rows, keys = (tuple((a, max(a, b - 1)) for a, b in bounds) for bounds in (x.rows, x.keys))
    return replace(x, rows=rows, keys=keys)


def _by_longest(x: Packed) -> Packed | None:
    if not (x.bottom_right and x.windowed):
        return None
    q_lens, kv_lens = zip(*x.lengths(), strict=True)
    shift = max(kv_lens) - max(q_lens)
    return replace(x, bottom_right=False, moved=(shift,) * len(x.rows))


def _by_packed_places(x: Packed) -> Packed | None:
    if not x.windowed:
        return None
    places = zip(x.rows, x.keys, strict=True)
    return replace(x, moved=tuple(rows[0] - keys[0] for rows, keys in places))


def _align(bottom_right: bool) -> Callable[[Packed], Packed | None]:
    return lambda x: replace(x, bottom_right=bottom_right) if x.windowed else None


def _longest(x: Packed) -> Bounds:
    most = max(kv_len for _, kv_len in x.lengths())
    return tuple((a, a + most) for a, _ in x.keys)


def _last_dropped(x: Packed) -> Packed:
    return replace(x, rows=x.rows[:-1], keys=x.keys[:-1], moved=x.moved[:-1])


def _of_packed(name: str, description: str, edit: Callable[[Packed], Packed | None]) -> Hypothesis:
    def change(x: Packed) -> Packed | None:
        found = edit(x)
        if found is None or (found.rows, found.keys) == (x.rows, x.keys):
            shifted = found is not None and x.windowed and found.shifts() != x.shifts()
            return found if shifted else None
        return found

    operations = frozenset({VarlenVector.operation})
    return Hypothesis(name, description, operations=operations, layout=change)


PACKED = (
    _of_packed(
        "sequences-joined",
        "the boundaries of packed sequences are left out: all rows are one sequence", _whole,
    ),
    _of_packed(
        "keys-of-other-sequences", "packed sequences see each other's keys, but for their windows",
        _every_key,
    ),
    _of_packed(
        "keys-of-earlier-sequences",
        "the keys of each packed sequence begin with those of the first",
        _with_keys(lambda x: tuple((0, b) for _, b in x.keys)),
    ),
    _of_packed(
        "alignment-of-packed-sequences-swapped",
        "packed sequences are aligned top-left whatever is asked for", _align(False),
    ),
    _of_packed(
        "packed-sequences-aligned-bottom-right",
        "packed sequences are aligned bottom-right whatever is asked for", _align(True),
    ),
    _of_packed(
        "packed-sequences-aligned-by-longest",
        "packed sequences are aligned bottom-right by the largest lengths, not by their own",
        _by_longest,
    ),
    _of_packed(
        "window-by-packed-places",
        "the window counts places among all packed rows, not those of the sequence",
        _by_packed_places,
    ),
    _of_packed("cu-seqlens-one-short", "each packed sequence ends one row early", _one_short),
    _of_packed(
        "cu-seqlens-k-one-short", "each packed sequence ends one key early",
        _with_keys(lambda x: tuple((a, b - 1) for a, b in x.keys)),
    ),
    _of_packed(
        "cu-seqlens-one-over", "each packed sequence ends with the first row of the next",
        _with_keys(lambda x: tuple((a, b + 1) for a, b in x.keys)),
    ),
    _of_packed(
        "cu-seqlens-k-begin-late", "the first key of each packed sequence is left out",
        _with_keys(lambda x: tuple((a + 1, b) for a, b in x.keys)),
    ),
    _of_packed(
        "cu-seqlens-k-begin-early",
        "each packed sequence begins with the last key of the one before",
        _with_keys(lambda x: tuple((a - 1, b) for a, b in x.keys)),
    ),
    _of_packed(
        "cu-seqlens-q-for-keys", "cu_seqlens_q is read for the keys too",
        _with_keys(lambda x: x.rows),
    ),
    _of_packed(
        "cu-seqlens-k-for-queries", "cu_seqlens_k is read for the queries too", _rows_of_keys
    ),
    _of_packed(
        "q-lengths-for-keys", "each packed sequence is taken to have as many keys as queries",
        _with_keys(
            lambda x: tuple(
                (c, c + b - a) for (a, b), (c, _) in zip(x.rows, x.keys, strict=True)
            )
        ),
    ),
    _of_packed(
        "keys-of-longest", "each packed sequence is taken to have as many keys as the longest",
        _with_keys(_longest),
    ),
    _of_packed("last-sequence-dropped", "the last packed sequence is left out", _last_dropped),
)  # fmt: skip

# --- pages ----------------------------------------------------------------------------------------

_Table = tuple[tuple[int, ...], ...]


def _in_order(x: Paged) -> _Table:
    return tuple(tuple(range(len(pages))) for pages in x.table)


def _tables(edit: Callable[[Paged], _Table]) -> Callable[[Paged], Paged | None]:
    """Other pages, of keys and values alike; those that do not exist are the last."""

    def change(x: Paged) -> Paged | None:
        last = len(x.key) - 1
        table = tuple(tuple(min(page, last) for page in pages) for pages in edit(x))
        return None if table == x.table else replace(x, table=table, of_values=table)

    return change


def _one_after_another(x: Paged) -> _Table:
    """The table as if the pages of all sequences lay one after another."""
    width = len(x.table[0])
    return tuple(tuple(range(b * width, (b + 1) * width)) for b in range(len(x.table)))


def _transpose(x: Paged) -> _Table:
    """Entry p of sequence b where entry b of sequence p would lie."""
    entries, batch = [page for pages in x.table for page in pages], len(x.table)
    places = range(len(x.table[0]))
    return tuple(tuple(entries[p * batch + b] for p in places) for b in range(batch))


def _reverse(x: Paged) -> _Table:
    used = (x.count_pages(b) for b in range(len(x.table)))
    return tuple(
        pages[:n][::-1] + pages[n:] for pages, n in zip(x.table, used, strict=True)
    )  # fmt: skip


def _lengths(edit: Callable[[Paged, int, int], int]) -> Callable[[Paged], Paged | None]:
    """Other lengths, from a sequence's number and length, as far as the table goes."""

    def change(x: Paged) -> Paged | None:
        most = len(x.table[0]) * x.page_size
        lengths = tuple(min(max(edit(x, b, n), 0), most) for b, n in enumerate(x.lengths))
        return None if lengths == x.lengths else replace(x, lengths=lengths)

    return change


def _values_in_order(x: Paged) -> Paged | None:
    found = _tables(_in_order)(x)
    return None if found is None else replace(found, table=x.table)


def _of_pages(name: str, description: str, edit: Callable[[Paged], Paged | None]) -> Hypothesis:
    operations = frozenset({PagedVector.operation})
    return Hypothesis(name, description, operations=operations, layout=edit)


PAGED = (
    _of_pages(
        "page-table-ignored", "pages are read in the order in which they lie", _tables(_in_order)
    ),
    _of_pages(
        "page-table-contiguous",
        "pages are read as if those of the sequences lay one after another",
        _tables(_one_after_another),
    ),
    _of_pages("page-table-transposed", "the page table is read transposed", _tables(_transpose)),
    _of_pages(
        "page-table-of-first", "every sequence reads the pages of the first",
        _tables(lambda x: (x.table[0],) * len(x.table)),
    ),
    _of_pages("page-order-reversed", "pages are read from last to first", _tables(_reverse)),
    _of_pages(
        "page-table-of-keys-alone",
        "the pages of values are read in the order in which they lie, those of keys by the table",
        _values_in_order,
    ),
    _of_pages(
        "page-padding-read", "the last page is read to its end",
        _lengths(lambda x, b, n: x.count_pages(b) * x.page_size),
    ),
    _of_pages(
        "partial-page-dropped", "a last page that is not full is left out",
        _lengths(lambda x, b, n: n - n % x.page_size),
    ),
    _of_pages(
        "lengths-ignored", "every sequence is taken to be of full length",
        _lengths(lambda x, b, n: len(x.table[0]) * x.page_size),
    ),
    _of_pages(
        "kv-lens-one-short", "the last token of each sequence is left out",
        _lengths(lambda x, b, n: n - 1),
    ),
    _of_pages(
        "kv-lens-one-over", "one token beyond the length of each sequence is read",
        _lengths(lambda x, b, n: n + 1),
    ),
    _of_pages(
        "kv-lens-of-first", "every sequence is taken to be as long as the first",
        _lengths(lambda x, b, n: x.lengths[0]),
    ),
)  # fmt: skip

# --- parts that are merged ------------------------------------------------------------------------


def _average(x: InParts) -> InParts:
    return replace(x, averaged=True)


def _parts(choose: Callable[[InParts, int], slice]) -> Callable[[InParts], InParts]:
    """Some parts alone, of a query by its number."""
    return lambda x: replace(
        x, parts=tuple(parts[choose(x, b)] for b, parts in enumerate(x.parts))
    )  # fmt: skip


def _suffix_of_first(x: InParts) -> InParts:
    return replace(x, parts=(x.parts[0],) * len(x.parts))


def _last_part_dropped(x: InParts) -> InParts:
    return replace(x, parts=tuple((*some, (k[:0], v[:0])) for *some, (k, v) in x.parts))


MERGED = (
    Hypothesis(
        "parts-averaged", "the outputs of parts are averaged, whatever their log-sum-exps",
        operations=_PREFIX | _SPLITS, layout=_average,
    ),
    Hypothesis(
        "prefix-left-out", "the shared prefix is left out",
        operations=_PREFIX, layout=_parts(lambda x, b: slice(1, None)),
    ),
    Hypothesis(
        "suffix-left-out", "the keys of each request's own are left out",
        operations=_PREFIX, layout=_parts(lambda x, b: slice(1)),
    ),
    Hypothesis(
        "suffix-of-first", "every request has the keys of the first",
        operations=_PREFIX, layout=_suffix_of_first,
    ),
    Hypothesis(
        "last-part-dropped", "the last split is left out",
        operations=_SPLITS, layout=_last_part_dropped,
    ),
)  # fmt: skip
