"""Definitions and solutions in the form of FlashInfer-Bench, made for the tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("flashinfer_solutions.py").read_text("utf-8")
HEADS, KV_HEADS, HEAD_DIM = 4, 2, 16
_Q = ["num_qo_heads", "head_dim"]
_CACHE = ["num_pages", "page_size", "num_kv_heads", "head_dim"]


def definition(kind: str, page_size: int = 4, dtype: str = "bfloat16") -> dict[str, Any]:
    """kind: a right function of `flashinfer_solutions`."""
    rows = "batch_size" if kind.startswith("decode") else "total_q"
    shapes: dict[str, Any] = {"q": [rows, *_Q]}
    if kind == "ragged":
        shapes["k"] = shapes["v"] = ["total_kv", "num_kv_heads", "head_dim"]
    else:
        shapes |= {"k_cache": _CACHE, "v_cache": _CACHE}
    if not kind.startswith("decode"):
        shapes["qo_indptr"] = ["len_indptr"]
    shapes["kv_indptr"] = ["len_indptr"]
    if kind != "ragged":
        shapes["kv_indices"] = ["num_kv_indices"]
    if kind in ("decode", "prefill"):
        shapes["kv_last_page_len"] = ["batch_size"]
    floats = {"q", "k", "v", "k_cache", "v_cache"}
    inputs = {
        name: {"shape": shape, "dtype": dtype if name in floats else "int32"}
        for name, shape in shapes.items()
    }
    inputs["sm_scale"] = {"shape": None, "dtype": "float32"}
    const = {"num_qo_heads": HEADS, "num_kv_heads": KV_HEADS, "head_dim": HEAD_DIM}
    if kind != "ragged":
        const["page_size"] = page_size
    axes: dict[str, Any] = {name: {"type": "const", "value": n} for name, n in const.items()}
    used = {axis for shape in shapes.values() for axis in shape}
    axes |= {name: {"type": "var"} for name in sorted(used - const.keys())}
    return {
        "name": f"gqa_{kind}_h4_kv2_d16",
        "op_type": "gqa_ragged" if kind == "ragged" else "gqa_paged",
        "axes": axes,
        "inputs": inputs,
        "outputs": {
            "output": {"shape": [rows, *_Q], "dtype": dtype},
            "lse": {"shape": [rows, "num_qo_heads"], "dtype": "float32"},
        },
        "reference": f"{SOURCE}\n\ndef run(*given):\n    return {kind}(*given)\n",
    }


def solution(of: dict[str, Any], function: str, **changes: Any) -> dict[str, Any]:
    spec = {
        "language": "python",
        "target_hardware": ["cpu"],
        "entry_point": f"src/attention.py::{function}",
        "destination_passing_style": function in ("decode_to", "writes_no_lse"),
    }
    return {
        "name": f"tried_{function}",
        "definition": of["name"],
        "author": "tests",
        "spec": spec | changes,
        "sources": [{"path": "src/attention.py", "content": SOURCE}],
    }


def write(folder: Path, name: str, data: object) -> Path:
    path = folder / f"{name}.json"
    path.write_text(json.dumps(data), "utf-8")
    return path
