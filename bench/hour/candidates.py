"""The candidates to compile, check and time: kernels with launch options, each for one case."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from bench.cases import Case, Mask
from bench.hour.findings import Finding
from bench.hour.kernels import KERNELS
from bench.hour.prepared import Options
from pyimpl.backends.kernels.offline.compile import SHARED_MEMORY

PAGE_SIZE = 256
# The largest number of them: about ten minutes have room for these.
MOST = 600
# So many of a kernel and case one after the other: its inputs are made once for them.
FEW = 4


@dataclass(frozen=True)
class Candidate:
    """A kernel (`KERNELS`) with options for a case. variant: the part that is left out of it, by a
    name of `bench.hour.what_if`; "": nothing."""

    kernel: str
    case: Case
    options: tuple[tuple[str, int], ...]
    variant: str = ""

    @property
    def name(self) -> str:
        """A name that differs from those of the others."""
        chosen = " ".join(f"{name}={number}" for name, number in self.options)
        left_out = f", {self.variant}" if self.variant else ""
        return f"{self.kernel}: {self.case}, {chosen}{left_out}"

    @property
    def plain(self) -> dict[str, Any]:
        """The candidate as JSON; `candidate_of` reads it."""
        return asdict(self) | {"options": dict(self.options)}


def candidate_of(plain: Mapping[str, Any]) -> Candidate:
    """Reads `Candidate.plain`."""
    options = tuple(plain["options"].items())
    return Candidate(plain["kernel"], case_of(plain["case"]), options, plain["variant"])


def case_of(plain: Mapping[str, Any]) -> Case:
    """A case out of JSON."""
    fields = {name: plain[name] for name in Case.__dataclass_fields__}
    return Case(**fields | {"mask": Mask(**plain["mask"])})


@dataclass(frozen=True)
class Sizes:
    """How large the cases are: queries and keys of forward and backward, keys of decode, sequences
    and heads; and which head sizes they have."""

    length: int = 4096
    keys: int = 65536
    batch: int = 4
    heads: int = 16
    decoded: int = 8
    decode_heads: int = 32
    head_dims: tuple[int, ...] = (64, 128, 256)


LARGE = Sizes()
# For Triton's interpreter.
SMALL = Sizes(32, 64, 1, 2, 1, 4, (64,))


def tuned_cases(kernel: str, sizes: Sizes) -> list[Case]:
    """The cases for which a kernel's options are measured."""
    of = KERNELS[kernel]
    head_dims = [n for n in sizes.head_dims if n in of.head_dims]
    if of.operation == "decode":
        pages = PAGE_SIZE if of.paged else None
        heads, shared = sizes.decode_heads, sizes.decode_heads // 4
        return [
            Case("decode", "bfloat16", sizes.decoded, heads, shared, 1, sizes.keys, head_dim,
                 Mask("full"), pages)
            for head_dim in head_dims
        ]  # fmt: skip
    masks = (Mask("full"), Mask("causal", None, 0))
    heads = sizes.heads
    return [
        Case(of.operation, "bfloat16", sizes.batch, heads, heads, sizes.length, sizes.length,
             head_dim, mask)
        for head_dim, mask in itertools.product(head_dims, masks)
    ]  # fmt: skip


def ragged_case(case: Case, sizes: Sizes) -> Case:
    """A small case that runs the same compiled kernels, of which every row can be judged: its tiles
    are ragged, and heads of queries share heads of keys."""
    if case.operation == "decode":
        return replace(case, batch=2, heads=8, kv_heads=2, kv_len=min(sizes.keys, 4003))
    q_len, kv_len = min(sizes.length + 1, 270), min(sizes.length + 9, 330)
    return replace(case, batch=1, heads=2, kv_heads=1, q_len=q_len, kv_len=kv_len)


def default(kernel: str, case: Case, capability: int) -> Candidate:
    """The kernel as `launch_options` has it."""
    return _candidate(kernel, case, KERNELS[kernel].default(case, capability))


def defaults(sizes: Sizes, capability: int, kernels: Iterable[str] = KERNELS) -> list[Candidate]:
    """Every kernel as `launch_options` has it, for every case; and for one case in the other
    dtypes, which are judged and not timed."""
    found = []
    for kernel in _of(capability, kernels):
        cases = tuned_cases(kernel, sizes)
        dtypes = [name for name in ("float16", "float32") if name in KERNELS[kernel].dtypes]
        others = [replace(cases[-1], dtype=name) for name in dtypes]
        found += [default(kernel, case, capability) for case in (*cases, *others)]
    return found


def to_tune(
    sizes: Sizes,
    capability: int,
    best: Mapping[tuple[str, Case], Options],
    kernels: Iterable[str] = KERNELS,
    most: int = MOST,
) -> list[Candidate]:
    """The candidates to time, most wanted first: the options of `launch_options`, their neighbours,
    and the neighbours of these; where an earlier run found better ones, these are the centre."""
    centres = []
    for kernel in _of(capability, kernels):
        for case in tuned_cases(kernel, sizes):
            usual = default(kernel, case, capability)
            centre = best.get((kernel, case))
            centres.append((usual, _candidate(kernel, case, centre) if centre else usual))
    rounds = [[usual for usual, _ in centres], [centre for _, centre in centres]]
    rounds.append(list(_in_turns([list(_around(centre)) for _, centre in centres])))
    further = [[x for near in _around(centre) for x in _around(near)] for _, centre in centres]
    rounds.append(list(_in_turns(further)))
    wanted = dict.fromkeys(itertools.chain(*rounds))
    return [one for one in wanted if fits(one, capability)][:most]


def fits(one: Candidate, capability: int) -> bool:
    """Whether a block's shared memory may be enough, as far as that is known without compiling."""
    least = KERNELS[one.kernel].least_shared(one.case, dict(one.options))
    return least <= SHARED_MEMORY[capability]


def best_of(findings: Iterable[Finding]) -> dict[tuple[str, Case], Options]:
    """The fastest options that were timed for each kernel and case."""
    found: dict[tuple[str, Case], tuple[float, Options]] = {}
    for finding in findings:
        if finding["what"] == "timed" and not finding["candidate"]["variant"]:
            one = candidate_of(finding["candidate"])
            key = (one.kernel, one.case)
            if key not in found or finding["ms"] < found[key][0]:
                found[key] = (finding["ms"], dict(one.options))
    return {key: options for key, (_, options) in found.items()}


def _of(capability: int, kernels: Iterable[str]) -> list[str]:
    """The kernels that devices of this compute capability have."""
    return [name for name in kernels if KERNELS[name].is_for(capability)]


def _candidate(kernel: str, case: Case, options: Options) -> Candidate:
    return Candidate(kernel, case, tuple(sorted(options.items())))


def _around(centre: Candidate) -> Iterator[Candidate]:
    for options in KERNELS[centre.kernel].around(dict(centre.options)):
        yield _candidate(centre.kernel, centre.case, options)


def _in_turns(lists: list[list[Candidate]]) -> Iterator[Candidate]:
    """A few of each, the next few of each, …: so the time that is left serves all alike."""
    for start in range(0, max(map(len, lists), default=0), FEW):
        for some in lists:
            yield from some[start : start + FEW]
