"""The features of a function of SDPA's form, from its signature and from small calls.

A call that raises shows that the function does not take an argument. A wrong answer shows nothing
here: the argument counts as taken, and the vectors fail.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from torch import Tensor

from bridge.conformance.inside.served import REFUSALS
from bridge.conformance.tensors.batch import DTYPES, Unread, describe_error
from bridge.errors import MendableError

Function = Callable[..., Any]
# Which keys `is_causal` hides where there are not as many queries as keys.
Aligned = Literal["top-left", "bottom-right"]
# The alignment by small calls; square: calls that would show it are refused.
Alignment = Literal[Aligned, "square", "not-found"]

# Feature → the argument by which it is used.
ARGUMENTS = {
    "scale": "scale",
    "is-causal": "is_causal",
    "boolean-mask": "attn_mask",
    "floating-mask": "attn_mask",
    "gqa": "enable_gqa",
    "window": "window",
    "alignment": "causal_alignment",
    "softcap": "softcap",
    "alibi": "alibi_slopes",
    "sinks": "sinks",
    "bias": "bias",
    "documents": "cu_seqlens",
    "lse": "return_lse",
}
# Features that no argument shows: whether autograd gives gradients by query, key and value, and by
# a bias or floating mask; whether from the log-sum-exp as well.
GRADIENTS = ("gradients", "bias-gradients", "lse-gradients")
NAMES = (*ARGUMENTS, *GRADIENTS)
# Features that SDPA has too: tried where the signature does not tell. Others are `pyimpl`'s.
_SDPA = ("scale", "is-causal", "boolean-mask", "floating-mask", "gqa")
# Head sizes that are tried, with columns of zeros, where a small one is refused.
_WIDTHS = (8, 16, 32, 64, 128)
# The sizes of a small call, in multiples of the number that has to divide each length.
_Q_LEN, _KV_LEN, _DIM = 2, 3, 4


class CallableError(MendableError, ValueError):
    """A function that cannot be called as SDPA is. The message is one sentence."""


@dataclass(frozen=True)
class Features:
    """The features of a function.

    dtypes: which it takes. supported: of `NAMES`. unsupported: why not the others. alignment: of
    `is_causal` and `window`, where there is no causal_alignment. lse_by: whether the log-sum-exp is
    asked for by return_lse or is always the second of a tuple. gqa_flag: whether fewer heads of
    keys need enable_gqa. width: the head size of which it takes multiples, None: it takes any;
    equal_dims: value_dim must be head_dim. multiple: the number of which it takes lengths.
    presumed: why nothing could be tried; then all that the signature has counts as taken.
    """

    dtypes: tuple[str, ...]
    supported: frozenset[str]
    unsupported: dict[str, str] = field(default_factory=dict)
    alignment: Alignment = "not-found"
    lse_by: Literal["return_lse", "tuple"] | None = None
    gqa_flag: bool = True
    width: int | None = None
    equal_dims: bool = False
    multiple: int = 1
    presumed: str | None = None

    def without(self, names: Iterable[str]) -> Features:
        """These features less those that the user declares (`names`), and less gradients of the
        missing ones."""
        return self.less(names).consistent()

    def less(self, names: Iterable[str]) -> Features:
        """These features less those that the user declares (`names`)."""
        given = frozenset(names)
        unsupported = {**self.unsupported, **dict.fromkeys(given, "declared by --without")}
        lse_by = None if "lse" in given else self.lse_by
        return replace(
            self, supported=self.supported - given, unsupported=unsupported, lse_by=lse_by
        )

    def consistent(self) -> Features:
        """These features without gradients of the missing ones."""
        has = self.supported
        needed = {
            "bias-gradients": ("gradients" in has and has & {"bias", "floating-mask"}, "bias"),
            "lse-gradients": ("gradients" in has and self.lse_by is not None, "lse"),
        }
        absent = {
            a: f"gradients or {other} unsupported"
            for a, (there, other) in needed.items()
            if not there
        }
        return replace(
            self, supported=has - absent.keys(), unsupported={**absent, **self.unsupported}
        )

    def columns(self, head_dim: int, value_dim: int) -> tuple[int, int]:
        """The columns of keys and of values that the function takes: the given ones, or with
        columns of zeros, which at a given scale change neither scores nor the other columns of the
        output."""
        if self.width is not None:
            return (-(-max(head_dim, value_dim) // self.width) * self.width,) * 2
        return (max(head_dim, value_dim),) * 2 if self.equal_dims else (head_dim, value_dim)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "supported": sorted(self.supported),
            "unsupported": dict(sorted(self.unsupported.items())),
            "alignment": self.alignment,
            "padded_to": self.width,
            "lengths_divided_by": self.multiple,
            "presumed": self.presumed,
        }


def probe(
    function: Function,
    device: str,
    asked: Iterable[str],
    about_to_call: Callable[[], None] = lambda: None,
    multiple: int = 1,
) -> Features:
    """The function's features in the dtypes asked for, found by calling it. Raises CallableError
    where it cannot be called with query, key and value. about_to_call: called before each call;
    multiple: of which all lengths have to be."""
    return _Probe(function, device, tuple(asked), about_to_call, multiple).features()


def presume(function: Function, asked: Iterable[str], why: str) -> Features:
    """The features by the signature, without a call. Raises CallableError as `probe` does."""
    candidates, unsupported, _ = _candidates(function)
    able = Features(
        tuple(asked),
        frozenset((*candidates, *GRADIENTS)),
        unsupported,
        lse_by="return_lse" if "lse" in candidates else None,
        presumed=why,
    )
    return able.consistent()


def _candidates(function: Function) -> tuple[list[str], dict[str, str], frozenset[str]]:
    """The features that the signature leaves open, why not the others, and the arguments that it
    names."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        # Functions written in C have none.
        absent = "its signature is not known, and SDPA has no argument {}"
        return list(_SDPA), _without_argument(_SDPA, absent), frozenset()
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    kinds = {p.kind for p in parameters}
    if len(positional) < 3 and inspect.Parameter.VAR_POSITIONAL not in kinds:
        raise CallableError(
            f"takes {len(positional)} positional arguments; query, key and value are accepted"
        )
    keywords = [p for p in parameters if p not in positional[:3]]
    keywords = [p for p in keywords if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = [p.name for p in keywords if p.default is p.empty]
    if needed:
        raise CallableError(
            f"needs {', '.join(needed)} beside query, key and value; such arguments must have "
            "a default, or a function around it must give them"
        )
    names = {p.name for p in keywords}
    any_name = inspect.Parameter.VAR_KEYWORD in kinds
    found = [
        feature
        for feature, argument in ARGUMENTS.items()
        if argument in names or (any_name and feature in _SDPA)
    ]
    return found, _without_argument(found, "has no argument {}"), frozenset(names)


def _without_argument(found: Iterable[str], sentence: str) -> dict[str, str]:
    return {a: sentence.format(name) for a, name in ARGUMENTS.items() if a not in found}


@dataclass
class _Probe:
    """Small calls of one function."""

    function: Function
    device: str
    asked: tuple[str, ...]
    about_to_call: Callable[[], None]
    multiple: int
    width: int | None = None
    dtype: str = "float32"

    def __post_init__(self) -> None:
        self.q_len, self.kv_len, self.dim = (self.multiple * n for n in (_Q_LEN, _KV_LEN, _DIM))

    def call(
        self,
        *,
        kv_heads: int = 1,
        heads: int = 1,
        q_len: int | None = None,
        value_dim: int | None = None,
        inputs: list[Tensor] | None = None,
        **options: Any,
    ) -> Any:
        """The function on small numbers; value j is 1 in column j alone. inputs: gets query,
        key and value, which then ask for gradients. May raise."""
        dim = self.dim if self.width is None else self.width
        q_len = q_len or self.q_len
        shape: dict[str, Any] = {"dtype": DTYPES[self.dtype], "device": self.device}
        query = torch.ones(1, heads, q_len, dim, **shape) / 2
        key = torch.ones(1, kv_heads, self.kv_len, dim, **shape) / 4
        value = torch.eye(self.kv_len, value_dim or dim, **shape).expand(1, kv_heads, -1, -1)
        value = value.contiguous()
        if inputs is not None:
            inputs += [x.requires_grad_() for x in (query, key, value)]
        return self.function(query, key, value, **options)

    def refusal(self, *, own: bool = False, **options: Any) -> str | None:
        """Why such a call is refused; None if it is not, or ends in another mistake. own: the
        signature names the argument that is tried."""
        self.about_to_call()
        try:
            self.call(**options)
        except Exception as error:
            if not isinstance(error, REFUSALS) and (own or not isinstance(error, RuntimeError)):
                return None
            return describe_error(error)
        return None

    def features(self) -> Features:
        candidates, unsupported, names = _candidates(self.function)
        refused = self.find_dtypes()
        dtypes = tuple(d for d in self.asked if d not in refused)
        if not dtypes:
            why = f"a plain call {next(iter(refused.values()))}"
            return presume(self.function, self.asked, why)
        unsupported |= {f"dtype {d}": why for d, why in refused.items()}
        self.dtype = dtypes[0]
        supported: set[str] = set()

        def settle(feature: str, reason: str | None) -> None:
            if reason is None:
                supported.add(feature)
                unsupported.pop(feature, None)
            else:
                supported.discard(feature)
                unsupported[feature] = reason

        for feature in candidates:
            settle(feature, self.try_feature(feature, own=ARGUMENTS[feature] in names))
        gqa_flag = "gqa" in supported
        if not gqa_flag and self.takes_fewer_heads():
            settle("gqa", None)
        lse_by, why = self.find_lse("lse" in supported)
        settle("lse", why if lse_by is None else None)
        for feature in GRADIENTS:
            settle(feature, self.try_gradients(feature, supported, lse_by))
        return Features(
            dtypes,
            frozenset(supported),
            unsupported,
            self.find_alignment(supported),
            lse_by,
            gqa_flag,
            self.width,
            self.refusal(value_dim=self.kv_len) is not None,
            self.multiple,
        )

    def find_dtypes(self) -> dict[str, str]:
        """The dtypes that a plain call refuses, and why; sets the width."""
        refused: dict[str, str] = {}
        for width in (None, *(n for n in _WIDTHS if n > self.dim)):
            self.width = width
            found = {}
            for dtype in self.asked:
                self.dtype = dtype
                reason = self.refusal()
                if reason is not None:
                    found[dtype] = reason
            # The errors of small head sizes say more than those of the last one.
            refused = refused or found
            if len(found) < len(self.asked):
                return found
        self.width = None
        return refused

    def try_feature(self, feature: str, *, own: bool) -> str | None:
        """Why the function does not take it; None if it does."""
        wide = torch.float64 if self.dtype == "float64" else torch.float32
        mask_shape = (1, 1, self.q_len, self.kv_len)
        seen = torch.ones(mask_shape, dtype=torch.bool, device=self.device)
        seen[..., 0, 1] = False
        added = torch.zeros(seen.shape, dtype=DTYPES[self.dtype], device=self.device)
        per_head = torch.ones(1, dtype=wide, device=self.device)
        options: dict[str, Any] = {
            "scale": 0.5,
            "is-causal": True,
            "boolean-mask": seen,
            "floating-mask": added.masked_fill(~seen, -torch.inf),
            "gqa": True,
            "window": (1, None),
            "alignment": "bottom-right",
            "softcap": 2.0,
            "alibi": per_head,
            "sinks": per_head,
            "bias": added,
            "documents": torch.tensor((0, 1, self.kv_len), dtype=torch.int32, device=self.device),
            "lse": True,
        }
        named: dict[str, Any] = {ARGUMENTS[feature]: options[feature]}
        if feature == "gqa":
            named |= {"heads": 4, "kv_heads": 2}
        if feature == "documents":
            named |= {"q_len": self.kv_len}
        reason = self.refusal(own=own, **named)
        if reason is not None and feature in ("is-causal", "window"):
            reason = self.refusal(own=own, q_len=self.kv_len, **named)
        return reason

    def try_gradients(
        self, feature: str, supported: set[str], lse_by: Literal["return_lse", "tuple"] | None
    ) -> str | None:
        """Why autograd does not give these gradients; None if it does, or if trying it ends in a
        mistake that is no refusal."""
        options: dict[str, Any] = {"return_lse": True} if lse_by == "return_lse" else {}
        added = None
        if feature != "gradients" and "gradients" not in supported:
            return "has no gradients"
        if feature == "bias-gradients":
            if not supported & {"bias", "floating-mask"}:
                return "takes no bias"
            added = torch.zeros(
                1, 1, self.q_len, self.kv_len, dtype=DTYPES[self.dtype], device=self.device,
                requires_grad=True,
            )  # fmt: skip
            options["bias" if "bias" in supported else "attn_mask"] = added
        if feature == "lse-gradients" and lse_by is None:
            return "returns no log-sum-exp"
        self.about_to_call()
        inputs: list[Tensor] = []
        try:
            result = self.call(inputs=inputs, **options)
            parts = result if isinstance(result, (tuple, list)) else (result,)
            output = parts[1 if feature == "lse-gradients" else 0]
            if not isinstance(output, Tensor) or not output.requires_grad:
                return "autograd knows of none: requires_grad is False"
            by = inputs[:2] if feature == "lse-gradients" else inputs
            named = dict(zip(("query", "key", "value"), by, strict=False))
            if added is not None:
                named = {"the bias": added}
            found = torch.autograd.grad(output.sum(), list(named.values()), allow_unused=True)
        except Exception as error:
            if not isinstance(error, (*REFUSALS, RuntimeError)):
                return None
            return describe_error(error)
        absent = [name for name, x in zip(named, found, strict=True) if x is None]
        return f"gives none by {absent[0]}" if absent else None

    def takes_fewer_heads(self) -> bool:
        """Whether keys may have fewer heads without enable_gqa."""
        try:
            out = self.call(heads=4, kv_heads=2)
        except Exception:
            return False
        out = out[0] if isinstance(out, (tuple, list)) and out else out
        return isinstance(out, Tensor) and out.ndim == 4 and out.shape[1] == 4

    def find_lse(self, asked_for: bool) -> tuple[Literal["return_lse", "tuple"] | None, str]:
        """The way to get the log-sum-exp, or the reason why there is none."""
        if asked_for:
            return "return_lse", ""
        try:
            result = self.call()
        except Exception as error:
            return None, f"a plain call raised {type(error).__name__}"
        if not isinstance(result, (tuple, list)):
            return None, "returns the output alone"
        second = result[1] if len(result) > 1 else None
        if isinstance(second, (Tensor, Unread)) and tuple(second.shape) == (1, 1, self.q_len):
            return "tuple", ""
        return None, "returns no second tensor of shape [batch, heads, q_len]"

    def find_alignment(self, supported: set[str]) -> Alignment:
        """Which keys is_causal, or else a window, hides where there are more keys than queries: a
        weight is 0 if and only if its key is hidden."""
        if "is-causal" in supported:
            options: dict[str, Any] = {"is_causal": True}
        elif "window" in supported:
            options = {"window": (None, 0)}
        else:
            return "not-found"
        if self.refusal(**options) is not None:
            return "square"
        try:
            out = self.call(**options)
            out = out[0] if isinstance(out, (tuple, list)) else out
            shown = (out[0, 0, :, : self.kv_len] != 0).tolist()
        except Exception:
            return "not-found"
        shifts: dict[Aligned, int] = {"top-left": 0, "bottom-right": self.kv_len - self.q_len}
        for alignment, shift in shifts.items():
            if shown == torch.ones(self.q_len, self.kv_len).tril(shift).bool().tolist():
                return alignment
        return "not-found"
