"""Decoding whose cache is kept or read wrongly."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from bridge.conformance.mutants.hypotheses.call import Hypothesis
from bridge.conformance.mutants.hypotheses.layout import Decoded, Token
from bridge.vectors.model.decode import DecodeVector

# The keys that a token attends to, by their rows.
_Edit = Callable[[Token], Iterable[int]]


def _rows_at(token: Token, places: Iterable[int]) -> list[int]:
    """The rows of these places of its sequence."""
    return [token.first + place for place in places]


def _of_decoding(name: str, description: str, edit: _Edit) -> Hypothesis:
    def change(x: Decoded) -> Decoded | None:
        seen = tuple(tuple(edit(token)) for token in x.tokens)
        return None if seen == x.seen else replace(x, seen=seen)

    operations = frozenset({DecodeVector.operation})
    return Hypothesis(name, description, operations=operations, layout=change)


def _twice(token: Token) -> list[int]:
    """Tokens that came in steps count twice."""
    before, after = range(token.prefix), range(token.prefix, token.place + 1)
    return [*_rows_at(token, before), *_rows_at(token, after), *_rows_at(token, after)]


def _of_another(token: Token) -> list[int]:
    """The keys of the sequence after it in the batch, as far as it has come."""
    n = (token.firsts.index(token.first) + 1) % len(token.firsts)
    return [token.firsts[n] + place for place in range(token.places[n] + 1)]


def _as_long_as_first(token: Token) -> list[int]:
    """The keys up to the first sequence's length, without rows that its own has not filled yet."""
    return _rows_at(token, range(min(token.places[0], token.place) + 1))


DECODING = (
    _of_decoding(
        "own-key-left-out", "a step does not see the key of its own token",
        lambda x: _rows_at(x, range(x.place)),
    ),
    _of_decoding(
        "appended-twice", "each step appends its key and value twice", _twice
    ),
    _of_decoding(
        "cache-not-kept", "a step sees the keys of its own call alone: nothing is kept",
        lambda x: _rows_at(x, range(x.call[0], x.place + 1)),
    ),
    _of_decoding(
        "steps-not-kept",
        "appended keys are forgotten: a step sees those before the first step, and those of its "
        "own call",
        lambda x: _rows_at(x, [*range(x.prefix), *range(x.call[0], x.place + 1)]),
    ),
    _of_decoding(
        "key-beyond-read", "a step reads a row of the cache beyond those that are filled",
        lambda x: [*_rows_at(x, range(x.place + 1)), x.beyond],
    ),
    _of_decoding(
        "first-key-dropped", "the first key of a cache is left out",
        lambda x: _rows_at(x, range(x.call[0] > 0, x.place + 1)),
    ),
    _of_decoding(
        "sequence-of-another", "a sequence reads the keys of the next one of its batch", _of_another
    ),
    _of_decoding(
        "lengths-of-first", "a sequence is taken to be as long as the first of its batch",
        _as_long_as_first,
    ),
    _of_decoding(
        "later-tokens-seen", "tokens of one call see those after them",
        lambda x: _rows_at(x, range(x.call[1] + 1)),
    ),
)  # fmt: skip
