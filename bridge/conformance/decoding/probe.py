"""The features of a decoding function, found by its signature and by small calls, as for functions
of SDPA's form (`bridge.conformance.functions.features`): a call that raises shows that one is
unsupported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import torch

from bridge.conformance.decoding.adapter import DecodeAdapter
from bridge.conformance.decoding.form import NAMES, Form, form_of
from bridge.conformance.functions.features import Features
from bridge.conformance.inside.served import REFUSALS
from bridge.conformance.sandbox.remote import Remote
from bridge.conformance.sandbox.session import Lost
from bridge.conformance.tensors.batch import Misbehaviour, Outputs, describe_error
from bridge.conformance.tolerances.rounding_model import generous
from bridge.vectors.model.decode import DecodeVector, Sequence, in_turns

_WIDTHS = (8, 16, 32, 64, 128)
_PAGE_SIZES = (4, 16, 64, 128, 256)
# The parameter of a form that a feature needs.
_NEEDED = {
    "scale": "scale", "append": "new", "pages": "pages", "lse": "lse", "unwritten-nan": "caches"
}  # fmt: skip
# Features without a parameter of their own: a RuntimeError refuses them, too.
_UNNAMED = ("gqa", "several-tokens")


def probe(
    function: Remote,
    device: str,
    asked: Iterable[str],
    about_to_call: Callable[[], None] = lambda: None,
) -> tuple[Form, Features]:
    """The form and the features in the dtypes asked for. Raises CallableError for a function of no
    form. about_to_call: called before each try."""
    return _Probe(function, form_of(function), device, about_to_call).run(tuple(asked))


def presume(function: Remote, asked: Iterable[str], why: str) -> tuple[Form, Features]:
    """The signature's features, without a call. Raises CallableError as `probe` does."""
    form = form_of(function)
    lacks = _missing_features(form)
    supported = frozenset(NAMES) - lacks.keys() - {"unwritten-nan", "pages"}
    return form, Features(tuple(asked), supported, lacks, presumed=why)


def _missing_features(form: Form) -> dict[str, str]:
    return {
        name: "has no argument for it"
        for name, parameter in _NEEDED.items()
        if getattr(form, parameter) is None
    }


class _Probe:
    def __init__(
        self, function: Remote, form: Form, device: str, about_to_call: Callable[[], None]
    ) -> None:
        self.function, self.form, self.device = function, form, device
        self.about_to_call = about_to_call
        self.features = Features(("float32",), frozenset())

    def run(self, asked: tuple[str, ...]) -> tuple[Form, Features]:
        refused = self.find_dtypes(asked)
        dtypes = tuple(dtype for dtype in asked if dtype not in refused)
        if not dtypes:
            why = f"a plain call {next(iter(refused.values()))}"
            return presume(self.function, asked, why)
        self.features = replace(self.features, dtypes=dtypes)
        self.features = replace(self.features, equal_dims=self.refusal(value_dim=3) is not None)
        lacks = {
            **_missing_features(self.form),
            **{f"dtype {name}": x for name, x in refused.items()},
        }
        for feature in NAMES:
            reason = lacks.get(feature) or self.try_feature(feature)
            if reason is not None:
                lacks[feature] = reason
                continue
            supported = self.features.supported | {feature}
            self.features = replace(self.features, supported=supported)
        return self.form, replace(self.features, unsupported=lacks)

    def find_dtypes(self, asked: tuple[str, ...]) -> dict[str, str]:
        """The dtypes that are refused, and why; sets the width."""
        first: dict[str, str] = {}
        for width in (None, *_WIDTHS):
            found = {}
            for dtype in asked:
                self.features = replace(self.features, dtypes=(dtype,), width=width)
                why = self.refusal(unnamed=True)
                if why is not None:
                    found[dtype] = why
            first = first or found
            if len(found) < len(asked):
                return found
        self.features = replace(self.features, width=None)
        return first

    def try_feature(self, feature: str) -> str | None:
        """Why it is not taken; None if it is."""
        unnamed = feature in _UNNAMED
        match feature:
            case "scale":
                return self.refusal("scale", scale=1)
            case "gqa":
                unnamed &= self.form.gqa is None
                # Two heads of keys, since PyTorch makes several of one by itself.
                return self.refusal("gqa", heads=4, kv_heads=2, unnamed=unnamed)
            case "several-tokens":
                return self.refusal("several-tokens", chunk=2, unnamed=unnamed)
            case "pages":
                return self.find_page_size()
            case "unwritten-nan":
                return self.refusal(feature, finite=True)
        return self.refusal(feature)

    def find_page_size(self) -> str | None:
        first = None
        for size in _PAGE_SIZES:
            self.form = replace(self.form, page_size=size)
            why = self.refusal("pages", pages=True, unnamed=True)
            if why is None:
                return None
            first = first or why
        return first

    def refusal(
        self, *more: str, unnamed: bool = False, finite: bool = False, **shape: Any
    ) -> str | None:
        """Why a small vector is refused with these features besides; None if it is not, or ends in
        another mistake. unnamed: a RuntimeError refuses, too; finite: NaN does."""
        self.about_to_call()
        supported = self.features.supported | set(more)
        able = replace(self.features, supported=supported)
        adapter = DecodeAdapter("", self.function, self.form, able, generous)
        try:
            outputs = adapter.run_vector(_small(**shape), able.dtypes[0], self.device)
        except Lost:
            raise
        except Misbehaviour:
            return None
        except Exception as error:
            if not isinstance(error, REFUSALS) and not (
                unnamed and isinstance(error, RuntimeError)
            ):
                return None
            return describe_error(error)
        if finite and not all(map(_is_finite, outputs)):
            return "returns NaN where rows of the cache that are not filled hold NaN"
        return None


def _is_finite(outputs: Outputs) -> bool:
    return bool(torch.isfinite(outputs.out).all())


def _small(
    *,
    heads: int = 1,
    kv_heads: int = 1,
    value_dim: int = 4,
    chunk: int = 1,
    scale: int | None = None,
    pages: bool = False,
) -> DecodeVector:
    """Two tokens after two others."""
    q = tuple(((1, 0, 1, 0), (0, 1, 0, 1)) for _ in range(heads))
    k = (((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)),) * kv_heads
    v = (tuple(tuple(range(n, n + value_dim)) for n in range(4)),) * kv_heads
    return DecodeVector(
        "small", "small", "", "", "", "natural", head_dim=4, value_dim=value_dim, scale=scale,
        sequences=(Sequence(q, k, v, tuple(() for _ in range(heads))),), streams=((0,),),
        order=in_turns([2 // chunk]), chunk=chunk, pages=pages,
    )  # fmt: skip
