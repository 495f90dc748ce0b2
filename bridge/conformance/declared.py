"""What a judged process declares of its subject, as data: written there, and read with every value
looked at. Raises `wire.WireError` for what is not of the form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, cast, get_args

from bridge.conformance.abilities import NAMES, Abilities, Alignment
from bridge.conformance.adapter import ALL_DTYPES
from bridge.conformance.profile import Denominator, Format, Profile
from bridge.conformance.wire import (
    WireError,
    cut,
    flag,
    number,
    one_of,
    optional_text,
    sentences,
    shown,
    text,
    texts,
    whole,
)

_WIDEST = 1 << 16
_MOST_KEYS = 1 << 62
_LSE_BY = ("return_lse", "tuple")
# What an abilities' `lacks` may speak of.
_LACKED = (*NAMES, *(f"dtype {dtype}" for dtype in ALL_DTYPES))


@dataclass(frozen=True)
class Description:
    """What a subject says of itself: dtypes that it takes; abilities, of a function alone."""

    dtypes: tuple[str, ...]
    abilities: Abilities | None = None


def description_as_data(description: Description) -> dict[str, Any]:
    able = description.abilities
    return {
        "dtypes": list(description.dtypes),
        "abilities": None if able is None else _abilities_as_data(able),
    }


def description_of(data: dict[str, Any], function: bool) -> Description:
    """function: whether abilities have to be there, or must not."""
    _has(data, ("dtypes", "abilities"), "a description")
    dtypes = texts(data["dtypes"], "dtypes", ALL_DTYPES)
    if (data["abilities"] is not None) != function:
        raise WireError("abilities of an adapter, or none of a function")
    return Description(dtypes, _abilities_of(data["abilities"]) if function else None)


def _abilities_as_data(able: Abilities) -> dict[str, Any]:
    found: dict[str, Any] = {field.name: getattr(able, field.name) for field in fields(able)}
    return found | {
        "dtypes": list(able.dtypes),
        "takes": sorted(able.takes),
        "lacks": {name: cut(why) for name, why in able.lacks.items()},
        "presumed": None if able.presumed is None else cut(able.presumed),
    }


def _abilities_of(data: Any) -> Abilities:
    _has(data, [field.name for field in fields(Abilities)], "abilities")
    lse_by, width = data["lse_by"], data["width"]
    found = Abilities(
        texts(data["dtypes"], "dtypes", ALL_DTYPES),
        frozenset(texts(data["takes"], "abilities", NAMES)),
        sentences(data["lacks"], "lacking abilities", _LACKED),
        cast(Alignment, one_of(data["alignment"], "an alignment", get_args(Alignment))),
        None if lse_by is None else cast(Any, one_of(lse_by, "lse_by", _LSE_BY)),
        flag(data["gqa_flag"], "gqa_flag"),
        None if width is None else whole(width, "a width", 1, _WIDEST),
        flag(data["equal_dims"], "equal_dims"),
        optional_text(data["presumed"], "a presumption"),
    )
    # Where an ability is lacking, its reason is shown.
    unsaid = set(NAMES) - found.takes - found.lacks.keys()
    if unsaid:
        raise WireError(f"abilities without a word on {min(unsaid)}")
    if ("lse" in found.takes) != (found.lse_by is not None):
        raise WireError("abilities that have a log-sum-exp and no way to it, or a way to none")
    return found


_FORMATS = ("input", "output", "accumulator", "operands", "scores", "weights")


def profile_as_data(profile: Profile) -> dict[str, Any]:
    found: dict[str, Any] = {field.name: getattr(profile, field.name) for field in fields(Profile)}
    for name in _FORMATS:
        if found[name] is not None:
            parts = found[name]
            found[name] = [cut(parts.name), parts.unit, parts.smallest_normal]
            found[name].append(parts.smallest_subnormal)
    return found | {"name": cut(profile.name)}


def profile_of(data: Any) -> Profile:
    """The profile of somebody's adapter object, which alone brings its own."""
    _has(data, [field.name for field in fields(Profile)], "a profile")
    formats = {name: _format_of(data[name]) for name in _FORMATS}
    if None in (formats["input"], formats["output"], formats["accumulator"]):
        raise WireError("a profile without the format of input, output or accumulator")
    rows, keys = data["gradient_rows"], data["block_n"]
    found: dict[str, Any] = formats | {
        "name": text(data["name"], "the name of a profile"),
        "accumulation_unit": number(data["accumulation_unit"], "accumulation_unit"),
        "operand_roundings": whole(data["operand_roundings"], "operand_roundings", 0, 2),
        "weights_normalized": flag(data["weights_normalized"], "weights_normalized"),
        "denominator": one_of(data["denominator"], "a denominator", get_args(Denominator)),
        "exp_error": number(data["exp_error"], "exp_error"),
        "block_n": None if keys is None else whole(keys, "block_n", 1, _MOST_KEYS),
        "flush_to_zero": flag(data["flush_to_zero"], "flush_to_zero"),
        "gradient_rows": None if rows is None else whole(rows, "gradient_rows", 1, _MOST_KEYS),
    }
    return Profile(**found)


def _format_of(data: Any) -> Format | None:
    if data is None:
        return None
    if not isinstance(data, list) or len(data) != 4:
        raise WireError(f"a format that is {shown(data)}")
    name, *numbers = data
    return Format(text(name, "a format's name"), *(number(x, "a format") for x in numbers))


def _has(data: Any, names: Sequence[str], what: str) -> None:
    if not isinstance(data, dict) or set(data) != set(names):
        raise WireError(f"{what} that has not the fields {', '.join(names)}")
