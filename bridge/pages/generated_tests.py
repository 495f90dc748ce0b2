"""`tests/generated`: a pytest module for each way to call the Spec's functions with vectors."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bridge.audit.theorems import sentences_by_id
from bridge.pages.render import render
from bridge.source.excerpt import SourceError
from bridge.vectors.model.attention import Family

FOLDER = "tests/generated"
_WIDTH = 100


@dataclass(frozen=True)
class Call:
    """How the definition is computed by `pyimpl`: a template of `check`, in words, and the imports
    it needs, from the standard library, from torch, and of this project; names are those that it
    takes from `generated_checks`."""

    template: str
    through: str
    names: tuple[str, ...]
    standard: tuple[str, ...] = ()
    own: tuple[str, ...] = ("import pyimpl",)
    with_dtype: bool = True
    torch: tuple[str, ...] = ()

    def imports(self) -> list[str]:
        """The lines, in the order that the linter wants."""
        decorators = ("dtypes", "vectors") if self.with_dtype else ("vectors",)
        names = sorted({*self.names, *decorators, "vector_of"})
        blocks = [list(self.standard), [], list(self.own)]
        modules = [line for line in self.torch if line.startswith("import")]
        if self.with_dtype:
            modules.append("import torch")
        blocks[1] += [*modules, f"from generated_checks import {', '.join(names)}"]
        blocks[1] += [line for line in self.torch if not line.startswith("import")]
        return "\n\n".join("\n".join(block) for block in blocks if block).split("\n")


_ATTENTION = ("judge", "scale_of", "tensor")
PLAIN = Call("attention", "`pyimpl.attention`", (*_ATTENTION, "options"))
_STATE = ("from pyimpl import state",)
_TENSOR = "from torch import Tensor"
CACHE = Call(
    "cache",
    "`pyimpl.cache`",
    ("judge_states", "tensor"),
    ("import math",),
    ("from bridge.vectors.model.operations import Edit, Key", "from pyimpl import cache, state"),
    torch=(_TENSOR,),
)
SINK = Call("sink", "`pyimpl.state`", (*_ATTENTION, "visible"), own=_STATE)
GROUPED = Call("grouped", "`pyimpl.attention` with `enable_gqa`", (*_ATTENTION, "visible"))
GRADIENT = Call(
    "gradient",
    "`pyimpl.attention`",
    ("judge_gradients",),
    own=("import pyimpl", "from bridge.conformance.tensors.gradient_inputs import inputs_of"),
)
TANGENT = Call(
    "tangent",
    "`torch.func.jvp` of `pyimpl.attention`",
    ("judge_tangents",),
    own=("from bridge.conformance.adapters.own import own_tangents",),
)
DROPOUT = Call(
    "dropout",
    "`pyimpl.attention` with `dropout_p`",
    (*_ATTENTION, "dropped", "visible"),
    own=("import pyimpl", "from bridge.vectors.model.attention import Matrix"),
    torch=(_TENSOR,),
)
VARLEN = Call(
    "varlen", "`pyimpl.attention_varlen`", _ATTENTION, ("from itertools import pairwise",)
)
SAMPLED = Call(
    "sampled",
    "`pyimpl.attention` with a batch and heads",
    ("judge", "scale_of"),
    own=("import pyimpl", "from bridge.conformance.adapters.whole_batches import whole_batch"),
)
MODULES = Call("module", "`pyimpl.modules`", ("judge_modules",), own=())
# All vectors of the operation, whichever definition made them.
BY_OPERATION: Mapping[str, Call] = {
    "gradient": GRADIENT,
    "sampled-gradient": GRADIENT,
    "tangent": TANGENT,
    "sampled": SAMPLED,
}
# The call for each Spec definition, by its name without Attention.Spec.
CALLS: Mapping[str, Call] = {
    "attention": PLAIN,
    "attentionPadded": PLAIN,
    "attentionSink": PLAIN,
    "flash": PLAIN,
    "flashSchedule": PLAIN,
    "flashSink": PLAIN,
    "flashWindow": PLAIN,
    "safeSoftmax": PLAIN,
    "splitKV": Call(
        "split", "`pyimpl.attention` and `pyimpl.merge_states`", (*_ATTENTION, "visible")
    ),
    "ring": Call("ring", "`pyimpl.simulate_ring`", _ATTENTION, torch=(_TENSOR,)),
    "RingNet.outputs": Call(
        "shards",
        "`pyimpl.attention` with `part`, and `pyimpl.merge_states`",
        _ATTENTION,
        own=("import pyimpl", "from bridge.vectors.model.shards import ShardsVector"),
        torch=(_TENSOR,),
    ),
    "onlineSink": SINK,
    "multiHead": GROUPED,
    "groupedQuery": GROUPED,
    "groupedQueryPacked": GROUPED,
    "attentionDropout": DROPOUT,
    "flashDropout": DROPOUT,
    "flashDrawn": DROPOUT,
    "philox": Call(
        "philox",
        "`pyimpl.dropout`",
        (),
        own=("from pyimpl.dropout import philox4x32",),
        with_dtype=False,
        torch=("import torch",),
    ),
    "attentionVarlen": VARLEN,
    "attentionSliced": VARLEN,
    "attendPaged": Call("paged", "`pyimpl.attention_decode`", _ATTENTION),
    "cascade": Call(
        "cascade",
        "`pyimpl.attention_cascade`",
        _ATTENTION,
        own=("import pyimpl", "from bridge.vectors.model.attention import Matrix"),
        torch=(_TENSOR, "from torch.nn.utils.rnn import pad_sequence"),
    ),
    "combine": Call("combine", "`pyimpl.merge_states`", ("judge", "tensor"), ("import math",)),
    "Online.edit": CACHE,
    "Online.slide": CACHE,
    "Online.stepBlockDivided": Call(
        "divided", "`pyimpl.state`", (*_ATTENTION, "visible"), own=_STATE
    ),
    "Online.merge": Call(
        "merge",
        "`pyimpl.state`",
        ("judge", "tensor"),
        ("import math",),
        ("from bridge.vectors.model.operations import MergeVector, Tree", *_STATE),
    ),
    "Linear.rows": MODULES,
    "LayerNorm.rows": MODULES,
    "FeedForward.rows": MODULES,
    "MultiHead.rows": MODULES,
    "EncoderLayer.preNorm": MODULES,
    "EncoderLayer.postNorm": MODULES,
    "DecoderLayer.preNorm": MODULES,
    "DecoderLayer.postNorm": MODULES,
    "encode": MODULES,
    "encodePostNorm": MODULES,
    "decode": MODULES,
    "decodePostNorm": MODULES,
    "decodeCached": MODULES,
    "Transformer.probabilities": MODULES,
    "visitedTiles": Call(
        "tile_bounds",
        "`pyimpl.backends.tile_bounds`",
        (),
        own=("from pyimpl.backends.tile_bounds import TileBounds, num_tiles",),
        with_dtype=False,
    ),
}


@dataclass(frozen=True)
class Tested:
    """A family in a module: how many vectors it has, and the docstring of its test."""

    name: str
    count: int
    docstring: str


def _wrap(text: str, before: str = "") -> str:
    """The text in the lines of a docstring; `before` stands before its first word."""
    return "\n    ".join(textwrap.wrap(before + text, _WIDTH - 4)).removeprefix(before)


def _test_of(family: Family, definition: str, sentence: Mapping[str, str]) -> Tested:
    ids = [vector.id for vector in family.vectors]
    if ids != [f"{family.name}-{n:03}" for n in range(len(ids))]:
        raise ValueError(f"the vectors of {family.name} are not numbered from 000 on")
    theorems = list(dict.fromkeys(vector.theorem for vector in family.vectors))
    for theorem in theorems:
        if theorem not in sentence:
            raise SourceError(
                f"the vectors of {family.name} name the theorem {theorem}, which "
                "docs/theorems.toml does not list"
            )
    said = [_wrap(sentence[theorem], "" if n else '"""') for n, theorem in enumerate(theorems)]
    shows = _wrap(f"Theorem {', '.join(theorems)}, `{definition}`. {family.about}")
    return Tested(family.name, len(ids), "\n\n    ".join([*said, shows]))


def _call(definition: str, operation: str) -> Call | None:
    return BY_OPERATION.get(operation) or CALLS.get(definition)


def _definition(family: Family) -> str:
    """The definition that most vectors of the family were made by; all are called alike."""
    counts = Counter(v.lean.removeprefix("Attention.Spec.") for v in family.vectors)
    if len({_call(name, family.operation) for name in counts}) > 1:
        raise ValueError(
            f"the vectors of {family.name} were made by definitions that are called differently"
        )
    return max(counts, key=lambda name: counts[name])


def modules(root: Path, families: Sequence[Family]) -> dict[str, str]:
    """By path from the root, the text of each module.

    Raises SourceError for a definition that there is no call for, and for a theorem that is not
    listed; ValueError for a family of definitions that are called differently.
    """
    sentence = sentences_by_id(root / "docs" / "theorems.toml")
    by_call: dict[Call, list[Tested]] = {}
    for family in families:
        definition = _definition(family)
        call = _call(definition, family.operation)
        if call is None:
            raise SourceError(
                f"bridge/pages/generated_tests.py has no call for {definition}, which made the "
                f"vectors of {family.name}"
            )
        made = _test_of(family, f"Spec.{definition}", sentence)
        by_call.setdefault(call, []).append(made)
    return {
        f"{FOLDER}/test_{call.template}.py": render(
            "test_module.py.jinja",
            through=call.through,
            imports=call.imports(),
            call=f"calls/{call.template}.py.jinja",
            with_dtype=call.with_dtype,
            families=made,
        )
        for call, made in by_call.items()
    }
