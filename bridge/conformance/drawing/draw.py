"""How a fresh vector is drawn: sizes, options, masks and numbers, and its exact results."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from bridge.conformance.decoding import draw as decoding
from bridge.conformance.functions.operation import Operation
from bridge.vectors.model.attention import (
    Alibi,
    AttentionVector,
    Exact,
    Mask,
    MaskKind,
    Matrix,
    Vector,
)
from bridge.vectors.model.by_intervals import enclosed_gradients, enclosed_rows
from bridge.vectors.model.by_spec import Integers, attention_rows, grouped_rows, integer_gradients
from bridge.vectors.model.gradients import Gradients, GradientVector, Slopes, middle_of
from bridge.vectors.model.operations import GroupedQueryVector
from bridge.vectors.model.sampled import SampledGradientVector, SampledVector, matrix, visible_pairs

# The families of the vectors in turn, by their numbers.
TURN = ("fresh-natural", "fresh-batch", "fresh", "fresh-grouped", "fresh-options",
         "fresh-precise", "fresh-natural", "fresh-batch", "fresh-gradient",
         "fresh-gradient", "fresh-tiles", "fresh-tiles-gradient")  # fmt: skip
# Of the problem's own sizes each input has so many numbers at most, in a smaller batch with fewer
# heads where that is needed.
_OWN_NUMBERS = 1 << 22
# Real sizes: batch, heads, queries and keys at most, head_dim. A product of all but the queries of
# up to 2^22 numbers, and 2^24 scores at most, take seconds and less than a gigabyte.
LARGE = (
    (1, 1, 256, 16384, 256), (2, 4, 512, 2048, 128), (1, 2, 1, 16384, 128), (1, 1, 4096, 4096, 64),
    (2, 2, 128, 4096, 256), (2, 8, 1024, 1024, 64), (1, 4, 16, 8192, 96),
)  # fmt: skip
# Likewise with options: batch, heads of keys, queries and keys at most, head_dim. A bias and a mask
# are of all pairs, of which there are 2^19 at most.
LARGE_TILES = (
    (1, 1, 128, 4096, 128), (1, 2, 256, 1024, 64), (2, 1, 512, 512, 64), (1, 1, 16, 8192, 64),
)  # fmt: skip
# And of gradients, for which all pairs count: 2^18 at most.
LARGE_GRADIENTS = ((1, 1, 512, 512, 64), (1, 2, 64, 1024, 64), (2, 1, 256, 256, 128))
# The theorem that a vector rests on, by its option; with several options: `enclosure-sound`.
_ENCLOSED = {
    "softcap": "softcap-enclosed", "alibi": "alibi-enclosed", "bias": "bias-enclosed",
    "sink": "sink-enclosed",
}  # fmt: skip
KINDS: tuple[MaskKind, ...] = (
    "none", "causal", "causal-bottom-right", "window", "window", "key-length", "key-padding",
    "document", "boolean",
)  # fmt: skip
# Kinds that a function is told of without a matrix of all pairs.
POSITIONAL = 5
# Queries of a head that are judged where not all are.
_ROWS = 6
# Terms of a score that are not 0 in wide heads: more would leave one key nearly all of the weight.
_TERMS = 8


class Draw:
    """One vector. Its draw depends on nothing but the seed and its number."""

    def __init__(self, seed: int, number: int, family: str, id: str, multiple: int = 1) -> None:
        # From a text Python draws the same in every version; from numbers a sign would be lost.
        self.random = random.Random(f"attention {seed} {number}")
        self.number, self.family, self.id, self.multiple = number, family, id, multiple

    def of_operation(self, own: Operation) -> SampledVector:
        """A vector of the operation: at its own sizes, with a smaller batch and fewer heads where
        there would be too many numbers; or at others."""
        fixed = own.layout == "batch, length, heads×dim"
        batch, heads, (q_len, kv_len, head_dim, value_dim) = own.batch, own.heads, own.sizes()
        if self.family == "fresh-problem":
            one = max(q_len, kv_len) * max(head_dim, value_dim)
            while batch * heads * one > _OWN_NUMBERS and (batch > 1 or (heads > 1 and not fixed)):
                if batch > 1 and (batch >= heads or fixed):
                    batch = -(-batch // 2)
                else:
                    heads = -(-heads // 2)
        else:
            batch, q_len, kv_len = self.upto(2), self.upto(40), self.upto(150)
            head_dim = value_dim = self.random.choice((self.upto(64), 16, 32, 64))
            heads = heads if fixed else self.upto(3)
            if own.causal == "square":
                kv_len = q_len
            elif own.causal == "bottom-right":
                q_len, kv_len = sorted((q_len, kv_len))
        rows = self.rows(q_len)
        judged = f", {heads} heads, batch {batch}; of each head rows {', '.join(map(str, rows))}"
        mask = own.mask(q_len, kv_len)
        head = self.head("Attention.Spec.attention", "enclosure-sound", mask, q_len, kv_len, judged)
        return SampledVector(
            **{**head, "model": "natural"},
            scale=None,
            q=self.integers(2, batch, heads, q_len, head_dim),
            k=self.integers(2, batch, heads, kv_len, head_dim),
            v=self.integers(64, batch, heads, kv_len, value_dim),
            masks=(mask,),
            rows=rows,
        )

    def vector(self) -> Vector:
        match self.family:
            case "fresh-grouped":
                return self.grouped_query()
            case "fresh-natural":
                return self.natural(())
            case "fresh-options":
                names = self.random.sample([*_ENCLOSED], self.random.choice((1, 1, 1, 2)))
                return self.natural(tuple(sorted(names)))
            case "fresh-gradient":
                # The first of two asks for nothing that not every function with gradients has.
                return self.gradient(plain=self.number % 2 == 0)
            case decoding.FAMILY:
                return decoding.draw(self.random, self.id)
            case "fresh-batch":
                batch, heads, q_len, kv_len = (
                    self.upto(2), self.upto(3), self.length(40), self.length(150)
                )  # fmt: skip
                return self.sampled_attention(
                    batch, heads, q_len, kv_len, self.upto(64), self.upto(64)
                )
            case "fresh-large":
                sizes = self.real_sizes(LARGE)
                return self.sampled_attention(*sizes, sizes[-1])
            case "fresh-tiles":
                return self.past_tiles(
                    self.upto(2), self.upto(2), self.length(48), 128 + self.length(256),
                    self.upto(32),
                )  # fmt: skip
            case "fresh-large-tiles":
                return self.past_tiles(*self.real_sizes(LARGE_TILES))
            case "fresh-tiles-gradient":
                return self.gradient_past_tiles(1, 1, self.length(48), 128 + self.length(128), 8)
            case "fresh-large-gradient":
                return self.gradient_past_tiles(*self.real_sizes(LARGE_GRADIENTS))
            case "fresh-precise":
                return self.natural((), precise=True)
        return self.attention()

    def attention(self) -> AttentionVector:
        q_len, kv_len, head_dim = self.length(6), self.length(24), self.upto(8)
        value_dim, mask = self.upto(6), self.mask(q_len, kv_len, len(KINDS))
        vector = AttentionVector(
            **self.head("Attention.Spec.attention", "flash-eq-attention", mask, q_len, kv_len),
            q_len=q_len, kv_len=kv_len, head_dim=head_dim, value_dim=value_dim,
            scale=self.scale(), q=_matrix(self.integers(2, q_len, head_dim)),
            k=_matrix(self.integers(2, kv_len, head_dim)),
            v=self.values(kv_len, value_dim, 64, 8), mask=mask, expected=(),
        )  # fmt: skip
        return replace(vector, expected=attention_rows(vector))

    def natural(self, options: tuple[str, ...], *, precise: bool = False) -> AttentionVector:
        """Scores between −80 and 80, for which the precision of the bounds suffices. precise:
        numbers of 24 bits, between −2 and 2, the default scale and no mask: for every function."""
        q_len, kv_len, head_dim = self.length(5), self.length(18), self.upto(8)
        value_dim = self.upto(6)
        mask = self.mask(q_len, kv_len, 1 if precise else len(KINDS))
        numbers: dict[str, Any] = {}
        for name in options:
            match name:
                case "softcap":
                    numbers[name] = self.random.choice((1, 2, Fraction(1, 2), 20))
                case "alibi":
                    slope = self.random.choice((1, Fraction(1, 2), Fraction(1, 16)))
                    numbers[name] = Alibi(slope, self.random.choice((0, kv_len - q_len)))
                case "bias":
                    hidden = [self.flags(kv_len, 1 / 8) for _ in range(q_len)]
                    rows = zip(self.values(q_len, kv_len, 64, 8), hidden, strict=True)
                    numbers[name] = tuple(
                        tuple(None if h else x for x, h in zip(*pair, strict=True)) for pair in rows
                    )
                case "sink":
                    numbers[name] = _exact(self.random.randint(-64, 64), 8)
        lean = "Attention.Spec.attentionSink" if "sink" in options else "Attention.Spec.attention"
        theorem = _ENCLOSED[options[0]] if len(options) == 1 else "enclosure-sound"
        head = self.head(lean, theorem, mask, q_len, kv_len, "".join(f", {x}" for x in options))
        scales = (None,) if precise else (None, None, None, Fraction(1, 2), Fraction(-1, 4))
        scale = self.random.choice(scales)
        of_scores, of_values = ((1 << 24, 1 << 23),) * 2 if precise else ((64, 16), (64, 8))
        vector = AttentionVector(
            **{**head, "model": "natural"},
            q_len=q_len, kv_len=kv_len, head_dim=head_dim, value_dim=value_dim, scale=scale,
            q=self.values(q_len, head_dim, *of_scores), k=self.values(kv_len, head_dim, *of_scores),
            v=self.values(kv_len, value_dim, *of_values), mask=mask, expected=(), **numbers,
        )  # fmt: skip
        return replace(vector, expected=enclosed_rows(vector))

    def gradient(self, *, plain: bool) -> GradientVector:
        """plain: the default scale, a head of keys for each of queries, no options, no mask, and a
        loss that does not depend on the log-sum-exp."""
        batch, kv_heads, q_len, kv_len = *map(self.upto, (2, 2)), *map(self.length, (4, 7))
        head_dim, value_dim, group = self.upto(5), self.upto(3), 1 if plain else self.upto(2)
        kinds = 1 if plain else len(KINDS)
        masks = tuple(self.mask(q_len, kv_len, kinds) for _ in range(batch * kv_heads * group))
        if plain or self.random.randrange(2):
            masks = masks[:1]
        heads = batch * kv_heads * group
        option = "" if plain else self.random.choice(("", "softcap", "bias"))
        numbers: dict[str, Any] = {}
        if option == "softcap":
            numbers[option] = self.random.choice((1, 2, Fraction(1, 2), 20))
        if option == "bias":
            numbers[option] = tuple(self.values(q_len, kv_len, 64, 16) for _ in range(heads))
        by_lse = 0 if plain else self.random.choice((0, 32))
        more = f", {heads // batch} heads, batch {batch}" + (f", {option}" if option else "")
        lean, theorem = "Attention.Spec.groupedQueryVjp", "gradient-enclosed"
        head = self.head(lean, theorem, masks[0], q_len, kv_len, more)
        vector = GradientVector(
            **{**head, "model": "natural"},
            batch=batch, num_heads=heads, num_kv_heads=batch * kv_heads, q_len=q_len,
            kv_len=kv_len, head_dim=head_dim, value_dim=value_dim, masks=masks,
            scale=None if plain else self.random.choice((None, Fraction(1, 2), Fraction(-1, 4))),
            q=tuple(self.values(q_len, head_dim, 64, 16) for _ in range(heads)),
            k=tuple(self.values(kv_len, head_dim, 64, 16) for _ in range(batch * kv_heads)),
            v=tuple(self.values(kv_len, value_dim, 64, 8) for _ in range(batch * kv_heads)),
            grad_output=tuple(self.values(q_len, value_dim, 64, 8) for _ in range(heads)),
            grad_log_sum_exp=self.values(heads, q_len, by_lse, 8), expected=Gradients(*[()] * 4),
            **numbers,
        )  # fmt: skip
        bounds = enclosed_gradients(vector)
        return replace(vector, expected=middle_of(bounds), bounds=bounds)

    def grouped_query(self) -> GroupedQueryVector:
        kv_heads, q_len, kv_len = self.upto(2), self.length(4), self.length(12)
        head_dim = self.upto(5)
        heads, value_dim = kv_heads * (1 + self.upto(2)), self.upto(4)
        mask = self.mask(q_len, kv_len, len(KINDS))
        vector = GroupedQueryVector(
            **self.head("Attention.Spec.groupedQuery", "gqa-repeat", mask, q_len, kv_len),
            head_dim=head_dim, value_dim=value_dim, scale=self.scale(), num_heads=heads,
            num_kv_heads=kv_heads, q_len=q_len, kv_len=kv_len,
            q=tuple(_matrix(self.integers(2, q_len, head_dim)) for _ in range(heads)),
            k=tuple(_matrix(self.integers(2, kv_len, head_dim)) for _ in range(kv_heads)),
            v=tuple(self.values(kv_len, value_dim, 64, 8) for _ in range(kv_heads)),
            mask=mask, expected=(),
        )  # fmt: skip
        return replace(vector, expected=grouped_rows(vector))

    def sampled_attention(
        self, batch: int, heads: int, q_len: int, kv_len: int, head_dim: int, value_dim: int
    ) -> SampledVector:
        mask = self.mask(q_len, kv_len, POSITIONAL)
        rows = self.rows(q_len)
        q = self.integers(1, batch, heads, q_len, head_dim)
        if self.random.randrange(4):
            q = q * (self.integers(127, *q.shape) < 255 * min(1, _TERMS / head_dim) - 127)
        judged = f", {heads} heads, batch {batch}; of each head rows {', '.join(map(str, rows))}"
        sizes = mask, q_len, kv_len
        return SampledVector(
            **self.head("Attention.Spec.attention", "flash-eq-attention", *sizes, judged),
            scale=self.scale(),
            q=q,
            k=self.integers(1, batch, heads, kv_len, head_dim),
            v=self.integers(64, batch, heads, kv_len, value_dim),
            masks=(mask,),
            rows=rows,
        )

    def past_tiles(
        self, batch: int, kv_heads: int, q_len: int, kv_len: int, head_dim: int
    ) -> SampledVector:
        """A draw past tiles: in turns any mask and grouped heads, exactly; and an option or two, by
        bounds."""
        kv_len = self.round_up(kv_len)
        group, value_dim = self.upto(3), min(head_dim, 64)
        numbers: dict[str, Any] = {}
        optional = self.number // len(TURN) % 2 == 1
        mask = self.mask(q_len, kv_len, POSITIONAL if optional else len(KINDS))
        heads = kv_heads * (1 if optional else group)
        lean, theorem, scale = "Attention.Spec.attention", "flash-eq-attention", self.scale()
        if optional:
            names = self.random.sample([*_ENCLOSED], self.random.choice((1, 1, 2)))
            theorem = _ENCLOSED[names[0]] if len(names) == 1 else "enclosure-sound"
            if "sink" in names:
                lean = "Attention.Spec.attentionSink"
            for name in sorted(names):
                match name:
                    case "softcap":
                        numbers[name] = self.random.choice((1, 2, Fraction(1, 2), 20))
                    case "alibi":
                        each = tuple(Fraction(1, 1 << self.upto(8)) for _ in range(heads))
                        numbers[name] = Slopes(each, self.random.choice((0, kv_len - q_len)))
                    case "bias":
                        numbers[name] = self.integers(32, heads, q_len, kv_len) / 8
                    case "sink":
                        drawn = (_exact(self.random.randint(-64, 64), 8) for _ in range(heads))
                        numbers["sinks"] = tuple(drawn)
        elif heads > kv_heads:
            lean, theorem = "Attention.Spec.groupedQuery", "gqa-repeat"
        rows = self.rows(q_len, 3)
        more = "".join(f", {name}" for name in numbers)
        judged = (
            f", {heads} heads, batch {batch}{more}; of each head rows {', '.join(map(str, rows))}"
        )
        head = self.head(lean, theorem, mask, q_len, kv_len, judged)
        return SampledVector(
            **{**head, "model": "natural" if optional else "exact"},
            scale=None if optional else scale,
            q=self.integers(1, batch, heads, q_len, head_dim),
            k=self.integers(1, batch, kv_heads, kv_len, head_dim),
            v=self.integers(64, batch, kv_heads, kv_len, value_dim),
            masks=(mask,), rows=rows, **numbers,
        )  # fmt: skip

    def gradient_past_tiles(
        self, batch: int, kv_heads: int, q_len: int, kv_len: int, head_dim: int
    ) -> SampledGradientVector:
        """A draw of gradients past tiles: in turns with neither a mask nor shared heads, with any,
        and with sinks of 0 besides; exact, at some queries and keys."""
        kv_len = self.round_up(kv_len)
        turn = self.number // len(TURN) % 3
        plain = turn == 0
        group = 1 if plain else self.upto(2)
        mask = self.mask(q_len, kv_len, 1 if plain else len(KINDS))
        of_keys, heads = batch * kv_heads, batch * kv_heads * group
        rows, keys = self.rows(q_len, 3), self.rows(kv_len, 4)
        # Other sinks have no exact weight beside scores times ln 2.
        sinks = (0,) * heads if turn == 2 else None
        lean, theorem = "Attention.Spec.groupedQueryVjp", "vjp-adjoint-lse"
        if sinks is not None:
            lean, theorem = "Attention.Spec.sinkVjp", "sink-gradient"
        more = f", {kv_heads * group} heads, batch {batch}{', sinks' if sinks else ''}"
        more += f"; rows {rows}, keys {keys}"

        def matrices(bound: int, *shape: int) -> tuple[Matrix, ...]:
            return tuple(map(matrix, self.integers(bound, *shape)))

        q = self.integers(1, heads, q_len, head_dim)
        # A score has so few terms that several keys get a share.
        q = q * (self.integers(127, *q.shape) < 255 * min(1, _TERMS / head_dim) - 127)
        vector = SampledGradientVector(
            **self.head(lean, theorem, mask, q_len, kv_len, more),
            batch=batch, num_heads=heads, num_kv_heads=of_keys, q_len=q_len, kv_len=kv_len,
            head_dim=head_dim, value_dim=head_dim, masks=(mask,),
            scale=1 if plain else self.random.choice((1, -1)), q=tuple(map(matrix, q)),
            k=matrices(1, of_keys, kv_len, head_dim), v=matrices(8, of_keys, kv_len, head_dim),
            grad_output=matrices(8, heads, q_len, head_dim),
            grad_log_sum_exp=matrix(self.integers(0 if plain else 4, heads, q_len)),
            expected=Gradients(*[()] * 4), rows=rows, keys=keys, sinks=sinks,
        )  # fmt: skip
        seen = [visible_pairs(mask, tuple(range(q_len)), kv_len)]
        return replace(vector, expected=integer_gradients(vector, rows, keys, seen))

    def real_sizes(self, of: Sequence[tuple[int, ...]]) -> tuple[int, int, int, int, int]:
        """Some of these, with up to a quarter fewer queries and keys."""
        batch, heads, q_len, kv_len, head_dim = self.random.choice(of)
        q_len, kv_len = (
            self.round_up(x - self.random.randrange(1 + x // 4)) for x in (q_len, kv_len)
        )
        return batch, heads, q_len, kv_len, head_dim

    def head(
        self, lean: str, theorem: str, mask: Mask, q_len: int, kv_len: int, more: str = ""
    ) -> dict[str, Any]:
        reason = f"drawn for this run: mask {mask.kind}, {q_len} queries, {kv_len} keys{more}"
        return {
            "id": self.id, "family": self.family, "lean": lean, "theorem": theorem,
            "reason": reason, "model": "exact",
        }  # fmt: skip

    def rows(self, q_len: int, most: int = _ROWS) -> tuple[int, ...]:
        """Queries that are judged, the first and the last among them."""
        between = self.random.sample(range(q_len), min(q_len, most))
        return tuple(sorted({0, q_len - 1, *between[:-2]}))

    def upto(self, most: int) -> int:
        return self.random.randint(1, most)

    def length(self, most: int) -> int:
        return self.round_up(self.upto(most))

    def round_up(self, length: int) -> int:
        return -(-length // self.multiple) * self.multiple

    def scale(self) -> int:
        return self.random.choice((1, 1, 2, -1))

    def integers(self, bound: int, *shape: int) -> Integers:
        """Between −bound and bound, which is below 128."""
        drawn = np.frombuffer(self.random.randbytes(int(np.prod(shape))), np.uint8)
        return (drawn.astype(np.int64) % (2 * bound + 1) - bound).reshape(shape)

    def values(self, rows: int, columns: int, bound: int, unit: int) -> Matrix:
        """Between −bound / unit and bound / unit, both whole numbers."""
        return tuple(
            tuple(_exact(self.random.randint(-bound, bound), unit) for _ in range(columns))
            for _ in range(rows)
        )

    def flags(self, count: int, share: float) -> tuple[bool, ...]:
        return tuple(self.random.random() < share for _ in range(count))

    def maybe_below(self, n: int) -> int | None:
        """A number below n, or in one of four cases none."""
        return self.random.choice((None, *[self.random.randrange(n)] * 3))

    def mask(self, q_len: int, kv_len: int, kinds: int) -> Mask:
        """A mask of one of the first `kinds` of `KINDS`."""
        kind = KINDS[self.random.randrange(kinds)]
        shift = self.random.choice((0, kv_len - q_len))
        match kind:
            case "causal-bottom-right":
                return Mask(kind, shift=kv_len - q_len)
            case "window":
                left, right = self.maybe_below(max(20, kv_len // 2)), self.maybe_below(4)
                return Mask(kind, shift=shift, left=left, right=right)
            case "key-length":
                return Mask(kind, length=self.random.randint(0, kv_len))
            case "key-padding":
                return Mask(kind, valid=self.flags(kv_len, 0.75))
            case "document":
                queries, keys = ([*self.flags(n, 0.5)] for n in (q_len, kv_len))
                return Mask(kind, queries=tuple(map(int, queries)), keys=tuple(map(int, keys)))
            case "boolean":
                share = self.upto(7) / 8
                return Mask(kind, rows=tuple(self.flags(kv_len, share) for _ in range(q_len)))
        return Mask(kind)


def _exact(numerator: int, unit: int) -> Exact:
    x = Fraction(numerator, unit)
    return x.numerator if x.denominator == 1 else x


def _matrix(rows: Iterable[Integers]) -> Matrix:
    return tuple(tuple(row.tolist()) for row in rows)
