"""Features that all failing vectors have, and passing ones do not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from bridge.conformance.judging.run import Result
from bridge.vectors.model.attention import AttentionVector, Vector
from bridge.vectors.model.gradients import GradientVector
from bridge.vectors.model.operations import ComesToAttention
from bridge.vectors.model.tangents import TangentVector

# A feature that more of the passing vectors have than this share tells nothing.
_TELLING = 0.75


@dataclass(frozen=True)
class Common:
    """features: those of all failing vectors; failing: how many these are; passing: how many pass,
    of which `alike` have all the features too."""

    features: tuple[str, ...]
    failing: int
    passing: int
    alike: int

    def sentence(self) -> str:
        """A sentence on the features in common."""
        are = "The failing vector has" if self.failing == 1 else f"All {self.failing} failing have"
        if self.passing == 0:
            rest = "; no vector passes"
        elif self.alike == 0:
            rest = f"; none of the {self.passing} that pass"
        else:
            rest = f"; so {_have(self.alike)} of the {self.passing} that pass"
        return f"{are} in common: {', '.join(self.features)}{rest}."


def _have(number: int) -> str:
    return f"has {number}" if number == 1 else f"have {number}"


def remarks(result: Result, results: Sequence[Result]) -> Iterator[str]:
    """On the failures: other dtypes, errors raised, and the log-sum-exp alone."""
    failing = [r.dtype for r in results if r.failures]
    passing = [r.dtype for r in results if r.ok]
    if passing:
        yield f"Fails in {', '.join(failing)}; passes in {', '.join(passing)}."
    failures = result.failures
    refused = sum(v.reason is not None for v in failures)
    if refused:
        yield f"{refused} of {len(failures)} failing vectors have no result that could be judged."
    # Gradients have no rows.
    outputs = [v for v in failures if v.reason is None and v.rows]
    if outputs and all((v.ratio or 0) <= 1 for v in outputs):
        yield "The outputs are right: the log-sum-exp alone is wrong."


def plain_problem_of(vector: Vector) -> AttentionVector | None:
    """A plain problem that the vector is alike to."""
    if isinstance(vector, AttentionVector):
        return vector
    if isinstance(vector, ComesToAttention):
        return next(iter(vector.problems()), None)
    if isinstance(vector, TangentVector):
        return vector.attention()
    return vector.attentions()[0] if isinstance(vector, GradientVector) else None


_OPERATIONS = {
    "gradient": "gradients",
    "tangent": "tangents (torch.func.jvp)",
    "grouped-query": "grouped heads",
    "varlen": "packed sequences",
    "paged": "a cache in pages",
    "cascade": "a shared prefix",
    "combine": "results of splits that are merged",
    "shards": "a sequence on several devices",
    "decode": "decoding step by step",
    "sampled": "several heads or batches in one call",
}
_MASKS = {
    "causal": "a causal mask",
    "causal-bottom-right": "a causal mask aligned bottom-right",
    "window": "a window",
    "key-length": "a length of the keys",
    "key-padding": "a mask of padding",
    "document": "a mask of documents",
    "boolean": "a boolean mask",
}


def features_of(vector: Vector) -> frozenset[str]:
    """The features of a vector: its options and its shape."""
    found = set()
    if vector.operation != "attention":
        found.add(_OPERATIONS.get(vector.operation, f"the operation {vector.operation}"))
    x = plain_problem_of(vector)
    if x is None:
        return frozenset(found)
    if isinstance(vector, GradientVector) and vector.num_heads != vector.num_kv_heads:
        found.add("grouped heads")
    if x.mask.kind != "none":
        found |= {"a mask", _MASKS[x.mask.kind]}
    found |= {"slopes" if name == "alibi" else f"a {name}" for name in x.options}
    if x.dropout is not None:
        found.add("dropout")
    scale = x.natural_scale
    found.add("the default scale" if x.scale is None else "a scale that is given")
    told = {"a scale below 0": scale < 0, "a scale of 0": scale == 0, "a scale above 1": scale > 1}
    told |= {
        "another number of keys than of queries": x.q_len != x.kv_len,
        "more queries than keys": x.q_len > x.kv_len,
        "more keys than queries": x.q_len < x.kv_len,
        "a value_dim other than head_dim": x.value_dim != x.head_dim,
        "a head_dim that is no power of 2": x.head_dim & (x.head_dim - 1) != 0,
        "a query that sees no key": _has_blind_query(vector, x),
    }
    told |= {f"more than {n} keys": x.kv_len > n for n in (16, 32, 64, 128, 512)}
    told |= {f"more than {n} queries": x.q_len > n for n in (16, 64)}
    told |= {f"a head_dim above {n}": x.head_dim > n for n in (16, 64, 128)}
    told |= {f"a number of keys not divisible by {n}": x.kv_len % n != 0 for n in (8, 16, 64)}
    return frozenset(found | {name for name, true in told.items() if true})


def _has_blind_query(vector: Vector, x: AttentionVector) -> bool:
    """Results say so; gradients and tangents, whose vectors are small, have none of the output."""
    if not isinstance(vector, GradientVector | TangentVector):
        return any(row.masked for row in x.expected)
    return not all(any(x.visible(i, j) for j in range(x.kv_len)) for i in range(x.q_len))


def find_common(result: Result, vectors: Mapping[str, Vector]) -> Common | None:
    """The fewest features that all failing vectors have and as few as possible of those that
    pass; None where none tells them apart."""
    of = {v.id: features_of(vectors[v.id]) for v in result.vectors if v.status != "unsupported"}
    failing = [of[v.id] for v in result.failures]
    passing = [of[v.id] for v in result.vectors if v.status == "passed"]
    shared = frozenset.intersection(*failing)
    alike, chosen = passing, list[str]()
    while shared and alike:
        counts = {name: sum(name in one for one in alike) for name in sorted(shared)}
        name = min(counts, key=lambda name: counts[name])
        if counts[name] > _TELLING * len(alike):
            break
        chosen.append(name)
        alike = [one for one in alike if name in one]
    return Common(tuple(chosen), len(failing), len(passing), len(alike)) if chosen else None
