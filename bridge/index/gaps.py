"""Operations of the Spec that lack vectors, Python or a theorem: there must be none.

The rule. An *operation* is a definition in `Attention.Spec` that computes values: it yields entries
of R, alone or in a `Vec`, `Matrix`, `State`, `Partial`, or lists and vectors of these. A definition
that yields scores, masks, keys, tiles or positions is an input or a part of operations and is
checked inside them, as a number that has a name is; and a definition over dual numbers
(`Attention.Dual`), or one that moves inputs along rates, states a derivative: no function
implements it, PyTorch's forward mode computes it. An operation is covered by

- vectors, if the program that makes them (`Attention.Vectors.Main`) runs it, directly or not, or if
  it is no result but a bound of errors, with which no function's output could be compared, or is
  proved to be the function of which there are vectors (`WITHOUT_VECTORS`);
- Python, if a function says that it implements it, or implements a definition that uses it, or if
  the code that computes it is another project's (`WITHOUT_PYTHON`);
- a theorem, if the statement of a listed theorem mentions it, or a definition that uses it and is
  not of the vectors' program, which uses them all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bridge.index.entries import Entry, Index
from bridge.source.brackets import outside

SPEC = "Attention.Spec."
VECTORS = "Attention.Vectors."
PROGRAM = f"{VECTORS}Main"
DUAL = "Attention.Dual"
# The reasons why definitions of a module have no vectors. They have Python and theorems.
WITHOUT_VECTORS = {
    "Attention.Spec.Flash1": "stepBlockFlash1 is stepBlockDivided, of every state "
    "(stepBlockFlash1_eq_stepBlockDivided)",
    "Attention.Spec.Tolerance": "how far an output may be from the exact one, by which functions "
    "are judged on the vectors; compared with the code that judges in "
    "tests/bridge/conformance/test_tolerance_by_spec.py",
    "Attention.Spec.LogSumExpTolerance": "how far a log-sum-exp may be from the exact one; "
    "compared with the code that judges in tests/bridge/conformance/test_log_sum_exp_by_spec.py",
    "Attention.Spec.UnderflowTolerance": "what numbers below the normal ones add to how far an "
    "output may be from the exact one; compared with the code that judges in "
    "tests/bridge/conformance/test_tolerance_by_spec.py",
    "Attention.Spec.ScoreTolerance": "how far a score may be from the exact one; compared with the "
    "code that judges in tests/bridge/conformance/test_scores_by_spec.py",
    "Attention.Spec.ScoreChangeTolerance": "the same of a score that is changed; compared with the "
    "code that judges in tests/bridge/conformance/test_changes_by_spec.py",
    "Attention.Spec.StateTolerance": "how far the state of a cache may be from the exact one; "
    "compared with the code that judges in tests/bridge/conformance/test_states_by_spec.py",
    "Attention.Spec.DropoutTolerance": "how far an output with dropout may be from the exact one; "
    "compared with the code that judges in tests/bridge/conformance/test_dropout_by_spec.py",
    "Attention.Spec.GradientTolerance": "how far gradients may be from the exact ones; compared "
    "with the code that judges in tests/bridge/conformance/test_gradients_by_spec.py and "
    "test_recomputed_weights_by_spec.py",
    "Attention.Spec.StoredGradientTolerance": "the same where tiles are stored before they are "
    "added; as above",
    "Attention.Spec.GradientStoreTolerance": "the same of what is stored at the end; as above",
    "Attention.Spec.TemperatureTolerance": "the same of the gradient by a temperature; compared "
    "with the code that judges in tests/bridge/conformance/test_temperature_by_spec.py",
    "Attention.Spec.SoftcapTolerance": "how far a score and the slope of softcap may be from the "
    "exact ones in a backward pass; compared with the code that judges in "
    "tests/bridge/conformance/test_capped_scores_by_spec.py",
    "Attention.Spec.WeightTolerance": "how far off the scores may be that weights of derivatives "
    "come from, and they and the slopes; compared with the code that judges in "
    "tests/bridge/conformance/test_pass_weights_by_spec.py",
    "Attention.Spec.TangentTolerance": "how far rates of the output and of the log-sum-exp may be "
    "from the exact ones; compared with the code that judges in "
    "tests/bridge/conformance/test_tangents_by_spec.py",
    "Attention.Spec.CappedRateTolerance": "the same of the rate of a score after softcap; as above",
    "Attention.Spec.OverflowBounds": "which inputs overflow nowhere; compared with computations in "
    "float16, overflow and all, in tests/bridge/translation/test_overflow.py",
    "Attention.Spec.OverflowChanges": "the same with changed scores and dropout; as above, in "
    "tests/bridge/translation/test_overflow_changes.py",
    "Attention.Spec.OverflowGradients": "the same of gradients; as above, in "
    "tests/bridge/translation/test_overflow_gradients.py",
    "Attention.Spec.OverflowUnderflow": "the same where numbers underflow; compared with the "
    "largest numbers that may come of them in "
    "tests/bridge/translation/test_overflow_underflow.py",
    "Attention.Spec.OverflowUnderflowRows": "the same of whole rows; as above",
    "Attention.Spec.OverflowUnderflowOptions": "the same of log-sum-exps and dropout; compared "
    "with the tests for numbers that do not underflow, as above",
    "Attention.Spec.RingNetBackward": "every run of it ends in the gradients (ring-net-backward); "
    "so do drawn runs, exactly, in tests/bridge/translation/test_ring_net.py",
    "Attention.Spec.RingSkip": "backward every run of it ends in the gradients "
    "(ring-net-backward-skips); so do drawn runs, exactly, in "
    "tests/bridge/translation/test_ring_net.py; forwards it makes vectors",
    "Attention.Spec.BackwardTilesOptions": "the tile loop gives slopeGradient "
    "(flash-backward-slopes), and sinkGradient a column of sinkVjp (flash-backward-sinks), which "
    "have vectors",
    "Attention.Spec.Format": "how numbers are rounded to a format; compared with torch's casts, "
    "bit for bit, in tests/bridge/translation/test_formats.py",
    "Attention.Spec.BackwardLayers": "gradients of layers; those of PyTorch's autograd through "
    "pyimpl.modules are compared in tests/pyimpl/modules/test_backward_by_spec.py",
    "Attention.Spec.BackwardTransformer": "gradients of a transformer; as above",
    "Attention.Spec.TransformerNorms": "encode, encodePostNorm, decodePostNorm and logits are "
    "cases of them (Attention.Proof.Transformer.Norms); the gradients of all cases are compared in "
    "tests/pyimpl/modules/test_backward_by_spec.py",
}
# The code that computes a module's definitions in place of `pyimpl`'s.
WITHOUT_PYTHON = {
    "Attention.Spec.Format": "torch's casts between dtypes",
    "Attention.Spec.BackwardLayers": "PyTorch's autograd, of the modules' forward passes",
    "Attention.Spec.BackwardTransformer": "PyTorch's autograd, of the modules' forward passes",
    "Attention.Spec.OverflowBounds": "torch in float16, of which a test looks for overflows",
    "Attention.Spec.OverflowChanges": "torch in float16, of which a test looks for overflows",
    "Attention.Spec.OverflowGradients": "torch in float16, of which a test looks for overflows",
    "Attention.Spec.OverflowUnderflow": "fractions that grow, of which a test looks for overflows",
    "Attention.Spec.OverflowUnderflowRows": "fractions that grow, as above",
    "Attention.Spec.OverflowUnderflowOptions": "fractions that grow, as above",
}
# Inputs that have moved for a time, of which only statements speak.
_OF_DERIVATIVES = frozenset({"Attention.Spec.biasMoved"})

_HOLDS_VALUES = re.compile(
    r"(?:(?:List|Option|Vector)\s+\(*)*(?:R\b|(?:\w+\.)*(?:Vec|Matrix|State|Partial)\b)"
)


@dataclass(frozen=True)
class Gap:
    """lacks: some of `vectors`, `Python`, `theorem`."""

    name: str
    lacks: tuple[str, ...]


def result_types(statement: str) -> list[str]:
    """The types that a definition yields: the text after the last colon and arrow outside of all
    brackets, a pair as its two types."""
    starts = [0]
    for mark in outside(statement, "[:→×]"):
        starts = [*(starts if mark[0] == "×" else ()), mark.end()]
    ends = [start - 1 for start in starts[1:]] + [len(statement)]
    return [statement[a:b].strip() for a, b in zip(starts, ends, strict=True)]


def is_number(statement: str) -> bool:
    """Whether a definition is a number that has a name: in R, without an argument in round brackets
    or a type with an arrow."""
    return not any(outside(statement, "[(→]")) and result_types(statement) == ["R"]


def is_operation(entry: Entry) -> bool:
    return (
        entry.name.startswith(SPEC)
        and entry.kind == "definition"
        and entry.shown not in _OF_DERIVATIVES
        and DUAL not in entry.uses
        and not is_number(entry.statement)
        and any(_HOLDS_VALUES.match(one) for one in result_types(entry.statement))
    )


def gaps(index: Index) -> tuple[list[str], list[Gap]]:
    """The operations, and those that lack something."""
    entries = index.entries.values()
    covered = {
        "vectors": index.reach(e.name for e in entries if e.module == PROGRAM)
        | index.reach(e.name for e in entries if e.vectors and e.name.startswith(SPEC))
        | {e.name for e in entries if e.module in WITHOUT_VECTORS},
        "Python": index.reach(e.name for e in entries if e.python)
        | {e.name for e in entries if e.module in WITHOUT_PYTHON},
        "theorem": index.reach(
            used
            for e in entries
            if e.main_theorem
            for used in e.uses_in_statement
            if not used.startswith(VECTORS)
        ),
    }
    operations = [e.name for e in entries if is_operation(e)]
    found = []
    for name in operations:
        lacks = tuple(what for what, names in covered.items() if name not in names)
        if lacks:
            found.append(Gap(name, lacks))
    return operations, found
