"""From the fields of an entry to a sequence in shards."""

from __future__ import annotations

from itertools import chain

from bridge.vectors.format.fields import Entry, Field
from bridge.vectors.format.read_options import given_scale
from bridge.vectors.format.read_results import check_plausible, row
from bridge.vectors.model.attention import Row
from bridge.vectors.model.shards import Device, DeviceRows, ShardsVector


def shards(entry: Entry) -> ShardsVector:
    """Attention of a sequence whose queries and keys lie on several devices."""
    data, devices = entry.data, entry["devices"]
    mask = entry["mask"]
    if mask.data["kind"] not in ("none", "causal", "causal-bottom-right", "window"):
        raise mask["kind"].fail("is neither none nor a window")
    for name, size in (("queries", "q_len"), ("keys", "kv_len")):
        places = list(chain.from_iterable(device[name] for device in data["devices"]))
        if sorted(places) != list(range(data[size])):
            raise devices.fail(f"does not have each of the {data[size]} places of {name} once")
    for device in devices:
        arrivals = device["arrivals"]
        for source in arrivals:
            if source.data >= len(devices):
                raise source.fail(f"is {source.data}, but there are {len(devices)} devices")
        if len(set(arrivals.data)) != len(arrivals):
            raise arrivals.fail("has a device twice")
    # Each query meets its keys in arrivals, and once more in the whole.
    entry.affordable(2 * data["q_len"] * data["kv_len"], data["head_dim"] + data["value_dim"])
    given = tuple(
        Device(*(tuple(device[name]) for name in ("queries", "keys", "arrivals")))
        for device in data["devices"]
    )
    results = entry["expected"].check_count(devices.number_of("entries"), "entries")
    fields: list[Field] = []

    def rows(part: Field, device: Field) -> tuple[Row, ...]:
        fields.extend(part.check_count(device["queries"].number_of("numbers"), "rows"))
        return tuple(map(row, part))

    def of_device(result: Field, device: Field) -> DeviceRows:
        partials = result["partials"].check_count(device["arrivals"].number_of("numbers"), "lists")
        return DeviceRows(
            tuple(rows(part, device) for part in partials), rows(result["merged"], device)
        )

    vector = ShardsVector(
        **entry.plain(ShardsVector),
        scale=given_scale(entry),
        q=entry["q"].numbers("q_len", "head_dim"),
        k=entry["k"].numbers("kv_len", "head_dim"),
        v=entry["v"].numbers("kv_len", "value_dim"),
        mask=mask.mask(),
        layout=data["layout"],
        devices=given,
        expected=tuple(map(of_device, results, devices)),
    )
    check_plausible(vector.attentions(), fields)
    return vector
