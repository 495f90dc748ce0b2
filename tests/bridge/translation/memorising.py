"""The parameters with which `Attention/Claims/Memorise/Theorem.lean` makes a transformer return
a given function, as numbers: the same construction, step by step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

from bridge.spec import layer_norm
from bridge.spec.attention import Mask
from bridge.spec.core import Arithmetic
from bridge.spec.embedding import tied_output
from bridge.spec.feed_forward import FeedForward, feed_forward_row
from bridge.spec.layer_norm import LayerNorm
from bridge.spec.linear import Linear
from bridge.spec.multi_head import MultiHead
from bridge.spec.transformer import Transformer
from bridge.spec.transformer_layer import DecoderLayer, EncoderLayer

Row = list[Fraction]
Tokens = tuple[int, ...]
Best = Callable[[Tokens, Tokens], Tokens]


@dataclass(frozen=True)
class Sizes:
    """Of the sequences, the vocabularies and the architecture."""

    s: int
    t: int
    s_vocab: int
    t_vocab: int
    d_model: int
    num_heads: int
    d: int
    d_ff: int

    @property
    def codes(self) -> int:
        return self.t_vocab * self.t + self.s_vocab * self.s

    @property
    def places(self) -> int:
        return self.codes + self.s_vocab + self.t_vocab

    def target_code(self, a: int, p: int) -> int:
        return a * self.t + p

    def source_code(self, b: int, j: int) -> int:
        return self.t_vocab * self.t + b * self.s + j


def memory_width(s: int, t: int, s_vocab: int, t_vocab: int) -> int:
    """Lean: `Attention.Claims.memoryWidth`."""
    return t_vocab * t + s_vocab * s + (s_vocab + t_vocab) + (s + t) + 1


def memory_units(s: int, t: int, s_vocab: int, t_vocab: int) -> int:
    """Lean: `Attention.Claims.memoryUnits`."""
    return s_vocab**s * (t_vocab**t * t) + s_vocab * s + t_vocab * t


def sequences(vocab: int, length: int) -> list[Tokens]:
    return list(product(range(vocab), repeat=length))


@dataclass(frozen=True)
class Memory:
    """A transformer with its positions, and the normalisation at the end of each half."""

    parameters: Transformer
    position: Callable[[int], Row]
    norm: LayerNorm


@dataclass(frozen=True)
class Construction:
    """num: any numbers whose exponential of 0 is positive; sqrt: any function that is positive."""

    sizes: Sizes
    sqrt: Callable[[Fraction], Fraction]
    eps: Fraction
    num: Arithmetic

    def sparse(self, weights: Sequence[tuple[int, Fraction | int]]) -> Row:
        row = [Fraction(0)] * self.sizes.d_model
        for place, weight in weights:
            row[place] += weight
        return row

    def dot(self, x: Row, y: Row) -> Fraction:
        return sum((a * b for a, b in zip(x, y, strict=True)), Fraction(0))

    # Normalisations

    def undoing_norm(self, total: int, squares: int) -> LayerNorm:
        n = self.sizes.d_model
        mean = Fraction(total, n)
        root = self.sqrt((squares - total * mean) / n + self.eps)
        return LayerNorm([root] * n, [mean] * n)

    def plain_norm(self) -> LayerNorm:
        n = self.sizes.d_model
        return LayerNorm([Fraction(1)] * n, [Fraction(0)] * n)

    # Attention

    def zero(self, d_in: int, d_out: int) -> Linear:
        return Linear([[Fraction(0)] * d_in for _ in range(d_out)], [Fraction(0)] * d_out)

    def copy(self, d_in: int, d_out: int) -> Linear:
        k = self.sizes.codes
        weight = [[Fraction(i == j and j < k) for i in range(d_in)] for j in range(d_out)]
        return Linear(weight, [Fraction(0)] * d_out)

    def attention(self, make: Callable[[int, int], Linear]) -> MultiHead:
        n, heads = self.sizes.d_model, self.sizes.num_heads * self.sizes.d
        return MultiHead(self.zero(n, heads), self.zero(n, heads), make(n, heads), make(heads, n))

    # Feed-forward networks

    def network(self, points: list[tuple[Row, Row, Row]]) -> FeedForward:
        """For (x, z, w): x plus the network's output is z; w is larger at x than at all others."""
        n, d_ff = self.sizes.d_model, self.sizes.d_ff
        units: list[tuple[Row, Fraction, Row]] = []
        for i, (x, z, w) in reversed(list(enumerate(points))):
            later = [y for y, _, _ in points[i + 1 :]]
            if x in later:
                continue
            top = self.dot(w, x)
            bound = max((self.dot(w, y) for y in later), default=top - 1)
            assert bound < top
            now = feed_forward_row(self.as_layer(units), x, d=n, d_ff=len(units), num=self.num)
            out = [(c - a - b) / (top - bound) for a, b, c in zip(x, now, z, strict=True)]
            units.append((w, -bound, out))
        assert len(units) <= d_ff
        idle = ([Fraction(0)] * n, Fraction(0), [Fraction(0)] * n)
        return self.as_layer(units + [idle] * (d_ff - len(units)))

    def as_layer(self, units: list[tuple[Row, Fraction, Row]]) -> FeedForward:
        n = self.sizes.d_model
        return FeedForward(
            Linear([w for w, _, _ in units], [b for _, b, _ in units]),
            Linear([[out[k] for _, _, out in units] for k in range(n)], [Fraction(0)] * n),
        )

    def embed(self, number: int, place: int) -> Row:
        return self.sparse([(number, 1), (self.sizes.places + place, 1)])

    def encoder(self, vocab: int, length: int, code: Callable[[int, int], Row]) -> FeedForward:
        pairs = product(range(vocab), range(length))
        rows = [(self.embed(self.sizes.codes + a, p), code(a, p)) for a, p in pairs]
        return self.network([(x, z, x) for x, z in rows])

    def shares(self, mask: Mask, i: int, n: int) -> Row:
        one = self.num.exp(self.num.score(0))
        total = sum((one for j in range(n) if mask(i, j)), Fraction(0))
        return [one / total if mask(i, j) else Fraction(0) for j in range(n)]

    def recall(self, target_mask: Mask, cross_mask: Mask, best: Best) -> FeedForward:
        z = self.sizes
        n = z.d_model
        points = []
        for source, target in product(sequences(z.s_vocab, z.s), sequences(z.t_vocab, z.t)):
            for p in range(z.t):
                own = [(z.target_code(target[p], p), 1), (z.places + p, 1)]
                seen = self.shares(target_mask, p, z.t)
                own += [(z.target_code(target[q], q), c) for q, c in enumerate(seen)]
                alpha, beta = self.normalise(Fraction(1), Fraction(0), self.sparse(own))
                cross = self.shares(cross_mask, p, z.s)
                own += [(z.source_code(source[j], j), c / alpha) for j, c in enumerate(cross)]
                x = self.sparse(own)
                alpha, beta = self.normalise(alpha, beta, x)
                result = self.sparse([(z.codes + best(source, target)[p], 1)])
                points.append((p, alpha, beta, x, result))
        # w = x + M · (its place − the component that is always 0)
        network = []
        for p, alpha, beta, x, result in points:
            bound = max(a * self.dot(x, y) + b * sum(x) for _, a, b, y, _ in points)
            m = (bound + 1 - beta * sum(x)) / alpha - self.dot(x, x)
            marks = self.sparse([(z.places + p, m), (n - 1, -m)])
            w = [a + b for a, b in zip(x, marks, strict=True)]
            network.append(([alpha * a + beta for a in x], result, w))
        return self.network(network)

    def normalise(self, alpha: Fraction, beta: Fraction, x: Row) -> tuple[Fraction, Fraction]:
        """α' and β' with which normalising α x + β gives α' x + β'."""
        n = self.sizes.d_model
        row = [alpha * a + beta for a in x]
        root = self.sqrt(layer_norm.variance(row, d=n, num=self.num) + self.eps)
        return alpha / root, -alpha / root * layer_norm.mean(x, d=n, num=self.num)

    # The transformer

    def memory(self, target_mask: Mask, cross_mask: Mask, best: Best) -> Memory:
        """Lean: `Attention.Claims.transformer_memorises`."""
        z = self.sizes
        one, two, plain = self.undoing_norm(1, 1), self.undoing_norm(2, 2), self.plain_norm()
        nothing, mean = self.attention(self.zero), self.attention(self.copy)
        source = self.encoder(z.s_vocab, z.s, lambda b, j: self.sparse([(z.source_code(b, j), 1)]))
        target = self.encoder(z.t_vocab, z.t, lambda a, p: self.embed(z.target_code(a, p), p))
        recall = self.recall(target_mask, cross_mask, best)
        sources, targets = (
            [self.sparse([(z.codes + a, 1)]) for a in range(v)] for v in (z.s_vocab, z.t_vocab)
        )
        return Memory(
            Transformer(
                sources,
                targets,
                [EncoderLayer(nothing, two, source, one)],
                [
                    DecoderLayer(nothing, two, nothing, two, target, two),
                    DecoderLayer(mean, plain, mean, plain, recall, one),
                ],
                tied_output(targets, vocab=z.t_vocab, num=self.num),
            ),
            lambda p: self.sparse([(z.places + p, 1)]),
            one,
        )
