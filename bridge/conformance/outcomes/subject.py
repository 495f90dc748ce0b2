"""The subject of a judgement, and its adapter."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from bridge.conformance.adapters import callables, libraries
from bridge.conformance.adapters.adapter import Adapter
from bridge.conformance.decoding.adapter import DecodeAdapter
from bridge.conformance.decoding.form import Form
from bridge.conformance.flashinfer.adapter import BenchAdapter
from bridge.conformance.flashinfer.bench import Bench
from bridge.conformance.functions.features import Aligned, Features, Function
from bridge.conformance.functions.operation import Operation
from bridge.conformance.inside.shards import Shards
from bridge.conformance.kernelbench.adapter import ModelAdapter
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.tolerances.rounding_model import CHOICES


@dataclass(frozen=True)
class Subject:
    """An implementation to run: a built-in adapter's name, or that of a function (`inside.found`).
    rounding_model: of `CHOICES`, None: its own; without: features that are declared unsupported;
    features: those of a function, where they are known; undeclared: known wrong answers and
    refusals are not declared, but fail; causal_alignment: that of a function without such an
    argument; require: features and dtypes without which a function does not pass; problem: the
    file whose operation it is to compute, for a class of models; refuses: why a model takes no
    other sizes than the problem's, where that is known; decode: it is called step by step with a
    cache; form: how, where that is known; bench: the solution of FlashInfer-Bench that it is;
    shards: several processes call it, each with its shards."""

    name: str
    rounding_model: str | None = None
    without: tuple[str, ...] = ()
    features: Features | None = None
    undeclared: bool = False
    causal_alignment: Aligned = "top-left"
    require: tuple[str, ...] = ()
    problem: Path | None = None
    operation: Operation | None = None
    refuses: str | None = None
    decode: bool = False
    form: Form | None = None
    bench: Bench | None = None
    shards: Shards | None = None


def adapter_of(subject: Subject, function: Function | None = None, seed: int = 0) -> Adapter:
    """The adapter of a subject. function: that of a function, whose features are known; of a
    built-in adapter the one that it calls, None: that here; seed: of an adapter's random
    numbers."""
    if callables.is_callable_name(subject.name):
        assert function is not None
        assert subject.features is not None
        if subject.operation is not None:
            return ModelAdapter(
                subject.name,
                function,
                subject.operation,
                subject.features.dtypes,
                CHOICES[subject.rounding_model or "generous"],
                subject.refuses,
            )
        if subject.bench is not None:
            return BenchAdapter(
                subject.name,
                cast(Remote, function),
                subject.bench.operation,
                CHOICES[subject.rounding_model or "generous"],
                destination=subject.bench.destination,
                seed=seed,
            )
        if subject.form is not None:
            return DecodeAdapter(
                subject.name,
                cast(Remote, function),
                subject.form,
                subject.features.less(subject.without),
                CHOICES[subject.rounding_model or "generous"],
                seed,
            )
        able = subject.features.without(subject.without)
        make = CHOICES[subject.rounding_model or "generous"]
        adapted = callables.CallableAdapter(
            subject.name, function, able, make, subject.causal_alignment
        )
        adapted.declared = not subject.undeclared
        return adapted
    found: Any = libraries.find(subject.name)
    if function is not None:
        found.function = function
    if subject.undeclared and hasattr(found, "declared"):
        found.declared = False
    adapter: Adapter = found
    return (
        adapter
        if subject.rounding_model is None
        else _with_rounding_model(adapter, subject.rounding_model)
    )


def _with_rounding_model(adapter: Adapter, rounding_model: str) -> Adapter:
    """The adapter, judged by another rounding model."""
    other: Any = copy.copy(adapter)
    other.rounding = lambda dtype, device: CHOICES[rounding_model](dtype)
    adapted: Adapter = other
    return adapted
